"""What should be known about a recording: how it ended, what it cost, and what it leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from advisor.formats.recording.columns import begin_ns
from advisor.formats.recording.locks import note_locks, price_locks, select_locks
from advisor.formats.recording.recorded_threads import count_calls
from advisor.formats.recording.worlds import split_worlds
from advisor.model.lists import join_names
from advisor.model.records import Note
from advisor.model.units import format_seconds
from advisor.trace.recordings.families import name_program
from advisor.trace.recordings.layout import CALL, STATE

if TYPE_CHECKING:
    from advisor.formats.recording.contents import Recording
    from advisor.formats.recording.recorded_threads import RecordedThread
    from advisor.trace.recordings.processes import Process

#: What a sample takes, with the way into the kernel and back, seconds; all else is measured in each process.
SAMPLE_S: Final = 5e-6
#: From this share of the CPU time on, what recording took makes the seconds doubtful: by half of it, up to a most.
COSTLY: Final = 0.1
_MOST_PENALTY: Final = 0.3
_NAMED: Final = 4
#: From this share of the CPU time on, programs that are left out are missed; where so much was not even recorded,
#: nothing can be said. Those are named that used so much of it.
_UNSEEN_SHARE: Final = 0.1
_MOSTLY_UNSEEN: Final = 0.5
_NAMED_SHARE: Final = 0.05
#: Why recording stopped, in words, and what to do about it; the reason that says most first.
_FULL: Final = {
    "disk": ("the disk was full", "record to another disk (gapwatch run --profile PATH)"),
    "memory": ("the program's limit of its address space left no room", "let it set no limit (ulimit -v, RLIMIT_AS)"),
    "limit": ("the size limit was reached", "record a shorter run, or allow more (gapwatch run --limit 10GB)"),
}


def trace_notes(recording: Recording) -> tuple[Note, ...]:
    """Return the notes on a recording, the gravest first."""
    doubts = (
        *_of_death(recording), *_of_limit(recording), *_of_missing_ranks(recording),
        *_of_other_programs(recording),
    )  # fmt: skip
    reading = (*_of_other_runs(recording), *_of_helpers(recording), *note_locks(recording))
    return (*doubts, *reading, *_of_folding(recording), *_of_cost(recording))


def _name_process(process: Process) -> str:
    return f"rank {process.rank}" if process.rank is not None else f"process {process.pid}"


def _of_death(recording: Recording) -> Iterator[Note]:
    dead = [process for process in recording.processes if not process.ended]
    if not dead:
        return
    who = join_names([_name_process(process) for process in dead], _NAMED)
    last = {id(process): 0 for process in dead}
    for thread in recording.threads:
        if id(thread.process) in last and len(thread.records):
            moment = int(max(thread.records["start_ns"][-1], thread.records["end_ns"][-1])) + thread.offset_ns
            last[id(thread.process)] = max(last[id(thread.process)], moment)
    first = min(dead, key=lambda process: last[id(process)])
    after = format_seconds((last[id(first)] - begin_ns(recording)) / 1e9)
    text = (
        f"the recording died: {who} of {len(recording.processes)} did not come to their end, {_name_process(first)} "
        f"first, after {after}; it is read up to there"
    )
    yield Note("recording died", text, 0.3, "run it again, to its end")


def _of_limit(recording: Recording) -> Iterator[Note]:
    full = [process for process in recording.processes if process.full]
    if full:
        reasons = {process.full[0] for process in full if process.full}
        why, remedy = next((words for name, words in _FULL.items() if name in reasons), _FULL["limit"])
        text = f"{why}: processes recorded only in part: {len(full)} of {len(recording.processes)}"
        yield Note("recording cut short", text, 0.2, remedy)


def _of_missing_ranks(recording: Recording) -> Iterator[Note]:
    wanted = max(process.ranks for process in recording.processes)
    there = len({process.rank for process in recording.processes})
    if wanted > there:
        yield Note("ranks missing", f"ranks without a recording: {wanted - there} of {wanted}", 0.3)


def _of_other_programs(recording: Recording) -> Iterator[Note]:
    """Yield how much of the run passed in other programs, recorded or not, that it started or that ran beside it."""
    apart = [process for process in recording.others if process.rank is None]
    recorded_s = sum(process.used_s for process in apart)
    children = {(one.host, one.pid) for one in (*recording.processes, *recording.others)}
    own = {(one.host, one.pid) for one in recording.processes}
    roots = [one for one in recording.processes if one.forked_ns is None and (one.host, one.parent) not in own]
    started_s = sum(one.used_s for one in apart if (one.host, one.parent) in children)
    used_s = sum(one.used_s for one in (*recording.threads, *recording.helpers))
    seen_s = started_s + used_s - sum(one.used_s for one in roots)
    unseen_s = max(sum(one.children_s for one in roots) - seen_s, 0.0)
    elsewhere_s = recorded_s + unseen_s
    lived_s = max((_lived_s(one) for one in recording.threads), default=0.0)
    # Who waits for a program that waits itself misses little; one that waits for a core leaves none idle.
    whole_s = elsewhere_s + used_s
    whole_s = max(whole_s, min(lived_s, whole_s + _idle_s(recording)))
    if elsewhere_s < _UNSEEN_SHARE * whole_s or not elsewhere_s:
        return
    share = elsewhere_s / (elsewhere_s + used_s)
    busy = sorted(apart, key=lambda one: -one.used_s)
    names = list(dict.fromkeys(name_program(one) for one in busy if one.used_s >= _NAMED_SHARE * elsewhere_s))
    which = f" ({join_names(names, _NAMED)})" if names else ""
    text = (
        f"{share:.0%} of the CPU time, {format_seconds(elsewhere_s)}, passed in other programs that were started "
        f"beside this one{which}, which are left out"
    )
    unknown = unseen_s > _MOSTLY_UNSEEN * whole_s
    how = "gapwatch run --from-outside -- ./PROGRAM" if unseen_s > recorded_s else "record each by itself"
    yield Note("other programs started", text, 1.0 if unknown else 0.3, how)


def _idle_s(recording: Recording) -> float:
    """Return for how long the cores of a host had nothing to do, seconds of a core; infinity where that is unknown."""
    idle_s = [
        process.cores * _lived_s(thread) - (process.machine_end - process.machine_begin)
        for thread in recording.threads
        if (process := thread.process).machine_begin is not None and process.machine_end is not None
    ]
    return max(*idle_s, 0.0) if idle_s else math.inf


def _lived_s(thread: RecordedThread) -> float:
    return ((thread.span.end_ns or thread.span.begin_ns) - thread.span.begin_ns) / 1e9


def _of_other_runs(recording: Recording) -> Iterator[Note]:
    """Yield how many runs of MPI are left out, as scripts and runs themselves may start several."""
    worlds = split_worlds(process for process in recording.others if process.rank is not None and process.threads)
    if worlds:
        programs = sorted({PurePath(process.program).name for world in worlds for process in world})
        many = "another run of MPI" if len(worlds) == 1 else f"{len(worlds)} other runs of MPI"
        used = format_seconds(sum(process.used_s for process in recording.others))
        text = f"{many} ({join_names(programs, _NAMED)}) in this recording, {used} of CPU time, left out"
        yield Note("other runs", text, 0.05, "record each by itself")


def _of_helpers(recording: Recording) -> Iterator[Note]:
    """Yield how many threads are no processors of the run."""
    count = len(recording.helpers)
    if count:
        who = (
            "1 thread that only waited to be asked is"
            if count == 1
            else f"{count} threads that only waited to be asked are"
        )
        yield Note("helper threads", f"{who} left out; libraries such as OpenBLAS keep them in reserve")


def _of_folding(recording: Recording) -> Iterator[Note]:
    """Yield how many brief calls share records."""
    folded = [thread.folding for thread in recording.threads if thread.folding.records]
    if folded:
        calls, records = sum(one.calls for one in folded), sum(one.records for one in folded)
        shortest, longest = min(one.shortest_ns for one in folded), max(one.longest_ns for one in folded)
        text = (
            f"{calls} brief calls ({format_seconds(shortest / 1e9)} to {format_seconds(longest / 1e9)} each) were "
            f"folded into {records} records: their number, time and bytes are exact, their moments are known to 10 ms"
        )
        yield Note("calls folded", text)


def _of_cost(recording: Recording) -> Iterator[Note]:
    """Yield what the recording took of the processors, by what each part of it was measured to cost."""
    threads = recording.threads
    joined = [_count_joined(thread) for thread in threads]
    calls = sum(len(thread.records) for thread in threads) + sum(joined)
    samples = sum(len(thread.samples) for thread in threads)
    cost = sum(map(_price_records, threads, joined)) + samples * SAMPLE_S
    used = sum(process.used_s for process in recording.processes)
    share = cost / used if used > 0 else 0.0
    text = f"recorded {calls} calls and messages and {samples} samples; that took about {format_seconds(cost)}"
    text += f" ({share:.2%} of the CPU time)" if used > 0 else ""
    if share >= COSTLY:
        text += "; where calls are brief and many, so much of the time is not the program's"
    yield Note("cost of recording", text, min(share / 2, _MOST_PENALTY) if share >= COSTLY else 0.0)


def _count_joined(thread: RecordedThread) -> int:
    """Return how many calls have no record of their own: brief ones, and polls that found nothing."""
    return int((count_calls(thread.records) - 1)[thread.records["kind"] == CALL].sum())


def _price_records(thread: RecordedThread, joined: int) -> float:
    """Return what it took to write the records of a thread, and to add the ``joined`` calls to them, seconds."""
    prices, records, locks = thread.process.prices, thread.records, select_locks(thread)
    readings = int(((records["cpu_start_ns"] > 0) | (records["cpu_end_ns"] > 0)).sum())
    folded = joined - int(records["tag"][locks].sum(dtype="int64"))
    return (
        (len(records) - len(locks)) * prices.record_s + folded * prices.folded_s + readings * prices.reading_s
        + int((records["kind"] == STATE).sum()) * prices.state_s
        + float(price_locks(prices, records["tag"][locks]).sum())
    )  # fmt: skip
