"""A recording's files, opened: its processes in the order of their ranks, their records and samples mapped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats.recording.helper_threads import split_helper_threads
from advisor.formats.recording.recorded_threads import RecordedThread, unfold_records
from advisor.formats.recording.slots import assign_slots
from advisor.formats.recording.workers import add_brief_workers, end_killed_workers, find_child_ends
from advisor.formats.recording.worlds import split_worlds
from advisor.model.errors import InputError
from advisor.trace.recordings.command import RunCommand, read_command
from advisor.trace.recordings.families import Family, find_workers, gather_families, read_processes
from advisor.trace.recordings.layout import FOLDED, RECORD, map_records, map_registers, map_samples
from advisor.trace.recordings.places import Places, read_places

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.trace.recordings.processes import Process, ThreadSpan


#: Kinds of events that a record may tell (``advisor.trace.events.Kind``); 0 is none.
_EVENTS: Final = (0, 3, 4, 5, 6, 7, 8, 9, 14, 15)
#: No clock of a host runs for so long: 100 years.
_LATEST_NS: Final = 3_200_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class Recording:
    """The processes that count, their threads, what addresses stand for, and the processes that were left out.

    The processes are the ranks of a run of MPI, or one program, each followed by its workers.
    ``helpers`` are threads that libraries keep in reserve: they are no processors of the run.
    """

    path: Path
    processes: tuple[Process, ...]
    threads: tuple[RecordedThread, ...]
    places: Places
    others: tuple[Process, ...]
    command: RunCommand | None = None
    helpers: tuple[RecordedThread, ...] = ()


def read_recording(path: Path) -> Recording:
    """Return what was recorded into a directory; raises ``InputError`` for what is damaged, or holds nothing."""
    everything = read_processes(path)
    if not everything:
        raise InputError(path, "no recording here (*.process)")
    families = _chosen(everything)
    threads = _threads(families)
    ends = find_child_ends(threads)
    threads = add_brief_workers(end_killed_workers(threads, ends), everything, ends)
    working, helpers = split_helper_threads(assign_slots(threads))
    # The threads up to where the first process had to stop recording: behind that partners are missing.
    # A worker (a child of fork) has none: it ends alone.
    stops = [(thread.process, thread.process.full[1] + thread.offset_ns) for thread in working if thread.process.full]
    common_ns = min((stop for process, stop in stops if process.forked_ns is None), default=_LATEST_NS)
    own_ns = {id(process): stop for process, stop in stops}
    threads = [_cut(thread, min(common_ns, own_ns.get(id(thread.process), _LATEST_NS))) for thread in working]
    if not any(_lasted(thread) for thread in threads):
        raise InputError(path, "the recording holds no events: no process got so far")
    chosen = tuple(one for family in families for one in (family.root, *family.workers))
    ours = {id(process) for process in chosen}
    others = tuple(process for process in everything if id(process) not in ours)
    return Recording(path, chosen, tuple(threads), read_places(path), others, read_command(path), tuple(helpers))


def _lasted(thread: RecordedThread) -> bool:
    """Return whether more than its beginning is known of a thread."""
    return len(thread.records) + len(thread.samples) > 1 or (len(thread.records) > 0 and bool(thread.span.end_ns))


def _chosen(processes: list[Process]) -> list[Family]:
    """Return the ranks of the run of MPI that used most CPU time; without any, the program that did."""
    ranked = [process for process in processes if process.rank is not None and process.threads]
    if not ranked:
        return [max(gather_families(processes), key=lambda family: (family.used_s, len(family.root.threads)))]
    world = max(split_worlds(ranked), key=lambda world: sum(process.used_s for process in world))
    return [Family(process, find_workers(process, processes)) for process in world]


def _sound_records(path: Path) -> npt.NDArray[Any]:
    """Return the records of a file; raises ``InputError`` with the byte at which the first impossible one begins."""
    records = map_records(path)
    start, end = records["start_ns"], records["end_ns"]
    bad = (records["kind"] > FOLDED) | ~np.isin(records["event"], _EVENTS) | ((end > 0) & (end < start))
    bad[1:] |= (start[1:] < start[:-1]) & (end[1:] < start[:-1])  # MPI_Init began before there was a file
    bad |= (start > _LATEST_NS) | (end > _LATEST_NS)
    if bad.any():
        raise InputError(path, "no record that the recorder writes", f"byte {int(np.argmax(bad)) * RECORD.itemsize}")
    return records


def _cut(thread: RecordedThread, stop_ns: int) -> RecordedThread:
    if stop_ns == _LATEST_NS:
        return thread
    count = int(np.searchsorted(thread.records["start_ns"], np.uint64(stop_ns - thread.offset_ns)))
    records = np.array(thread.records[:count])
    records["end_ns"][records["end_ns"] > stop_ns - thread.offset_ns] = 0
    return replace(thread, records=records, span=replace(thread.span, end_ns=None, end_cpu_ns=None))


def _threads(families: list[Family]) -> list[RecordedThread]:
    reference: dict[str, int] = {}
    first = families[0].root
    found = []
    for family in families:
        number = 0
        for process in (family.root, *family.workers):
            drift = (process.real_s - process.monotonic_s) - (first.real_s - first.monotonic_s)
            offset = reference.setdefault(process.clock or process.host, 0 if process is first else round(drift * 1e9))
            threads = list(_threads_of(process, family.root.rank or 0, offset))
            threads.sort(key=lambda each: each.span.number)
            for one in threads:
                span = replace(one.span, number=number + one.span.number)
                found.append(replace(one, span=span, leads_worker=number > 0 and one.span.number == 0))
            number += max(process.threads, default=-1) + 1
    return found


def _threads_of(process: Process, rank: int, offset_ns: int) -> Iterator[RecordedThread]:
    files: dict[int, list[ThreadSpan]] = {}
    for number, span in sorted(process.threads.items()):
        files.setdefault(number if span.file is None else span.file, []).append(span)
    for file, spans in files.items():
        records = _sound_records(process.thread_file(file, "records"))
        samples = map_samples(process.thread_file(file, "samples"))
        registers = map_registers(process.thread_file(file, "registers"), len(samples))
        ends = [*(span.first for span in spans[1:]), (len(records), len(samples))]
        for span, (record, sample) in zip(spans, ends, strict=True):
            mine = records[span.first[0] : record]
            told = slice(span.first[1], sample)
            yield RecordedThread(
                process, span, rank, mine, samples[told], registers[told], offset_ns, unfold_records(mine)
            )
