"""What a process that waits for its children tells of them: how they ended, and which of them left no files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from advisor.formats.recording.recorded_threads import WAITS_FOR_CHILDREN, RecordedThread, calls_of
from advisor.trace.recordings.processes import Process, ThreadSpan

#: Signals that end a process which went wrong: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGSYS.
_CRASHES: Final = frozenset({4, 5, 6, 7, 8, 9, 11, 31})
#: A child leaves no files if it lives for no longer than this, and uses no more CPU time than lies before a sample;
#: what used more has become another program.
_BRIEF_NS: Final = 2_000_000
_UNSAMPLED_NS: Final = 10_000_000
#: Host and number of a process.
ProcessKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child ended, when that was noticed by its parent's clock, and its CPU time with that of its children."""

    time_ns: int
    cpu_ns: int
    status: int

    @property
    def crashed(self) -> bool:
        """Whether a signal ended it that no program sends to its workers."""
        return self.status & 127 in _CRASHES


def find_child_ends(threads: Iterable[RecordedThread]) -> dict[ProcessKey, ChildEnd]:
    """Return how the children ended that some thread has waited for."""
    found = {}
    for one in threads:
        waits = one.records[calls_of(one, *WAITS_FOR_CHILDREN)]
        for wait in waits[waits["partner"] > 0]:
            end = ChildEnd(int(wait["end_ns"]), max(int(wait["size"]), 0), int(wait["request"]))
            found[one.process.host, int(wait["partner"])] = end
    return found


def end_killed_workers(threads: list[RecordedThread], ends: Mapping[ProcessKey, ChildEnd]) -> list[RecordedThread]:
    """Return the threads, those of workers that did not tell their own end with that which their parents saw."""
    lives: dict[int, int] = defaultdict(int)
    for one in threads:
        lives[id(one.process)] += 1
    done = []
    for one in threads:
        end = ends.get((one.process.host, one.process.pid))
        if one.process.ended or end is None:
            done.append(one)
            continue
        span = one.span
        if span.end_ns is None:
            alone = lives[id(one.process)] == 1
            cpu_ns = max(_last_cpu_ns(one), end.cpu_ns - _waited_ns(one) if alone else 0)
            span = replace(span, end_ns=max(end.time_ns, span.begin_ns), end_cpu_ns=cpu_ns)
            number = next(n for n, told in one.process.threads.items() if told.begin_ns == span.begin_ns)
            told = replace(one.process.threads[number], end_ns=span.end_ns, end_cpu_ns=cpu_ns)
            one.process.threads[number] = told
        done.append(replace(one, span=span))
    for one in done:
        end = ends.get((one.process.host, one.process.pid))
        one.process.ended |= end is not None and not end.crashed
    return done


def add_brief_workers(
    threads: list[RecordedThread], processes: Iterable[Process], ends: Mapping[ProcessKey, ChildEnd]
) -> list[RecordedThread]:
    """Return the threads and, behind them, the children that were forked and lived too briefly to leave files."""
    recorded = {(one.host, one.pid) for one in processes}
    number: dict[int, int] = defaultdict(int)
    for one in threads:
        number[one.rank] = max(number[one.rank], one.span.number + 1)
    found = list(threads)
    for one in threads:
        forks = one.records[calls_of(one, "fork")]
        for pid, begin in zip(forks["partner"].tolist(), forks["end_ns"].tolist(), strict=True):
            end = ends.get((one.process.host, pid))
            if (one.process.host, pid) in recorded or end is None or not begin or end.cpu_ns > _UNSAMPLED_NS:
                continue
            until = max(begin, min(end.time_ns, begin + max(end.cpu_ns, _BRIEF_NS)))
            span = ThreadSpan(number[one.rank], begin, 0, until, end.cpu_ns)
            nothing = (one.records[:0], one.samples[:0], one.registers[:0])
            found.append(RecordedThread(one.process, span, one.rank, *nothing, one.offset_ns))
            number[one.rank] += 1
    return found


def _waited_ns(thread: RecordedThread) -> int:
    """Return the CPU time of the children that a thread has waited for."""
    waits = thread.records[calls_of(thread, *WAITS_FOR_CHILDREN)]
    return int(waits["size"][waits["partner"] > 0].sum())


def _last_cpu_ns(thread: RecordedThread) -> int:
    """Return the last reading of a thread's CPU clock."""
    told = (thread.records["cpu_start_ns"], thread.samples["cpu_ns"])
    return max(thread.span.begin_cpu_ns, *(int(one.max(initial=0)) for one in told))
