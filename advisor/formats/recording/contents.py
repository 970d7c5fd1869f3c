"""A recording's files, opened: its processes in the order of their ranks, their records and samples mapped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats.recording.helper_threads import split_helper_threads
from advisor.formats.recording.recorded_threads import RecordedThread, unfold_records
from advisor.formats.recording.slots import assign_slots
from advisor.formats.recording.worlds import split_worlds
from advisor.model.errors import InputError
from advisor.trace.recordings.command import read_command
from advisor.trace.recordings.layout import FOLDED, RECORD, map_records, map_registers, map_samples
from advisor.trace.recordings.places import Places, read_places
from advisor.trace.recordings.processes import process_files, read_process, share_members

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from advisor.trace.recordings.command import RunCommand
    from advisor.trace.recordings.processes import Members, Process, ThreadSpan


#: Kinds of events that a record may tell (``advisor.trace.events.Kind``); 0 is none.
_EVENTS: Final = (0, 3, 4, 5, 6, 7, 8, 9, 14)
#: No clock of a host runs for so long: 100 years.
_LATEST_NS: Final = 3_200_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class Recording:
    """The processes that count, their threads, what addresses stand for, and the processes that were left out.

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
    lists: dict[Members, Members] = {}
    everything = [share_members(read_process(file), lists) for file in process_files(path)]
    if not everything:
        raise InputError(path, "no recording here (*.process)")
    chosen = _chosen(everything)
    working, helpers = split_helper_threads(assign_slots(_threads(chosen)))
    threads = tuple(_until_full(working))
    if not any(len(thread.records) for thread in threads):
        raise InputError(path, "the recording holds no events: no process got so far")
    ours = {id(process) for process in chosen}
    others = tuple(process for process in everything if id(process) not in ours)
    return Recording(path, tuple(chosen), threads, read_places(path), others, read_command(path), tuple(helpers))


def _chosen(processes: list[Process]) -> list[Process]:
    """Return the ranks of the run of MPI that used most CPU time; without any, the process that did."""
    ranked = [process for process in processes if process.rank is not None and process.threads]
    if not ranked:
        return [max(processes, key=lambda process: (process.used_s, len(process.threads)))]
    return max(split_worlds(ranked), key=lambda world: sum(process.used_s for process in world))


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


def _until_full(threads: list[RecordedThread]) -> list[RecordedThread]:
    """Return the threads up to where the first process had to stop recording: behind that partners are missing."""
    stops = [thread.process.full[1] + thread.offset_ns for thread in threads if thread.process.full]
    if not stops:
        return threads
    cut = []
    for thread in threads:
        count = int(np.searchsorted(thread.records["start_ns"], np.uint64(min(stops) - thread.offset_ns)))
        records = np.array(thread.records[:count])
        records["end_ns"][records["end_ns"] > min(stops) - thread.offset_ns] = 0
        span = replace(thread.span, end_ns=None, end_cpu_ns=None)
        cut.append(replace(thread, records=records, span=span))
    return cut


def _threads(processes: list[Process]) -> list[RecordedThread]:
    reference: dict[str, int] = {}
    first = processes[0]
    found = []
    for place, process in enumerate(processes):
        drift = (process.real_s - process.monotonic_s) - (first.real_s - first.monotonic_s)
        offset = reference.setdefault(process.clock or process.host, 0 if process is first else round(drift * 1e9))
        rank = place if process.rank is None else process.rank
        files: dict[int, list[ThreadSpan]] = {}
        threads = []
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
                threads.append(
                    RecordedThread(
                        process, span, rank, mine, samples[told], registers[told], offset, unfold_records(mine)
                    )
                )
        found += sorted(threads, key=lambda one: one.span.number)
    return found
