"""What a thread spent its time on, from CPU times that are measured and states that were seen at the samples.

Time off the processor is measured: life - CPU time - time in the run queue. Of the latter only that counts in which the
processor was taken away: to get one again after a call that gave it up is part of that call. What time off the
processor was spent on is estimated: in proportion to the calls in which the thread was seen blocked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from advisor.collect.records import UNKNOWN, BlockedCall, Process, Thread

if TYPE_CHECKING:
    from advisor.collect.procfs import IoCounters
    from advisor.collect.roles import Lane

#: System CPU time counts as input and output up to so much for each call that reads or writes, and for each byte;
#: the rest of it is page faults, communication and memory management.
CALL_S: Final = 50e-6
BYTE_S: Final = 1e-9
#: The name for being blocked in a file where the call is not known.
ON_DISK: Final = "blocked on disk"

#: A call that does input or output, and the file where it is known.
Call = tuple[str, str | None]


@dataclass(slots=True)
class ThreadTime:
    """Seconds of a lane: ``cpu_s`` without the CPU time of ``io_s``, which holds what each call took in all."""

    start_s: float
    life_s: float
    cpu_s: float
    delay_s: float
    wait_s: float
    io_s: dict[Call, float] = field(default_factory=dict)


def compute_thread_time(lane: Lane, since_s: float, own: IoCounters | None, alone: bool) -> ThreadTime:
    """Return what the thread of a lane did from ``since_s`` on, when the one before it in the lane had ended.

    What it did between the last sample and its end is taken to be what it did on average. ``own`` is what the process
    itself read and wrote. A processor that is ``alone`` does not wait for others: input from a pipe is input to it.
    """
    thread = lane.thread
    start_s = max(thread.start_s, since_s)
    life_s = max((thread.end_s or 0.0) - start_s, 0.0)
    seen_s = thread.last_s - start_s
    factor = life_s / seen_s if seen_s > 0 else 1.0
    cpu_s = min(thread.cpu_s * factor, life_s)
    delay_s = min(thread.delay_s * factor, life_s - cpu_s)
    given_up_s = delay_s * _voluntary_switch_share(thread)
    found = ThreadTime(start_s, life_s, cpu_s, delay_s - given_up_s, life_s - cpu_s - delay_s + given_up_s)
    _attribute_file_time(found, _share_out_unknown(thread.blocked), alone)
    if own is not None:
        _attribute_cpu_time(found, lane, own, factor)
    return found


def _voluntary_switch_share(thread: Thread) -> float:
    """Return the share of its switches in which a thread gave up its processor by itself."""
    total = sum(thread.switches)
    return thread.switches[0] / total if total else 0.0


def compute_own_counters(processes: Sequence[Process]) -> dict[int, IoCounters]:
    """Return what each process read and wrote itself: the kernel adds what its children did when they end."""
    found: dict[int, IoCounters] = {}
    for process in processes:
        if process.counters is None:
            continue
        below = [
            child.counters for child in processes
            if child.parent == process.pid and child.counters is not None and child is not process
            and child.end_s is not None and child.end_s < (process.end_s or 0.0)
        ]  # fmt: skip
        sums = [sum(column) for column in zip(*below, strict=True)] or [0] * len(process.counters)
        left = [max(mine - theirs, 0) for mine, theirs in zip(process.counters, sums, strict=True)]
        found[id(process)] = process.counters._replace(**dict(zip(process.counters._fields, left, strict=True)))
    return found


def _share_out_unknown(blocked: Mapping[BlockedCall, float]) -> dict[BlockedCall, float]:
    """Return the weights with those of unknown calls on files shared out over the known ones."""
    known = {
        what: weight for what, weight in blocked.items() if what.sort == "file" and what.call != UNKNOWN and weight > 0
    }
    total = sum(known.values())
    unknown = sum(weight for what, weight in blocked.items() if what.sort == "file" and what.call == UNKNOWN)
    others = {what: weight for what, weight in blocked.items() if what.sort != "file"}
    if not known:
        return others | ({BlockedCall("file", ON_DISK): unknown} if unknown else {})
    return others | {what: weight * (1 + unknown / total) for what, weight in known.items()}


def _attribute_file_time(found: ThreadTime, blocked: Mapping[BlockedCall, float], alone: bool) -> None:
    """Move the time blocked in files from the waiting to the calls."""
    total = sum(blocked.values())
    away_s = found.wait_s
    for what, weight in blocked.items():
        if what.sort == "file" or (alone and what.sort == "input"):
            seconds = away_s * weight / total if total > 0 else 0.0
            call = (what.call, what.target)
            found.io_s[call] = found.io_s.get(call, 0.0) + seconds
            found.wait_s -= seconds
    found.wait_s = max(found.wait_s, 0.0)


def _attribute_cpu_time(found: ThreadTime, lane: Lane, own: IoCounters, factor: float) -> None:
    """Move the system CPU time of reading and writing from the CPU time to the calls."""
    needed = {"read": own.reads * CALL_S + own.read_B * BYTE_S, "write": own.writes * CALL_S + own.written_B * BYTE_S}
    system_s = sum(thread.system_s for thread in lane.process.threads.values())
    if system_s <= 0 or sum(needed.values()) <= 0:
        return
    share = lane.thread.system_s / system_s
    possible_s = min(lane.thread.system_s * factor, found.cpu_s)
    used = min(1.0, possible_s / (sum(needed.values()) * share)) if share > 0 else 0.0
    for name, seconds in needed.items():
        taken = seconds * share * used
        if taken > 0:
            call = _find_main_call(found.io_s, name)
            found.io_s[call] = found.io_s.get(call, 0.0) + taken
            found.cpu_s = max(found.cpu_s - taken, 0.0)


def _find_main_call(calls: Mapping[Call, float], name: str) -> Call:
    """Return the call of that name, or of its kind, in which most time was seen; else one on an unknown file."""
    alike = [call for call in calls if call[0] in (name, f"p{name}")]
    return max(alike, key=lambda call: calls[call], default=(name, None))


def sum_by_call(found: Iterable[ThreadTime]) -> dict[str, float]:
    """Return the seconds of each call over several lanes, the longest first."""
    total: dict[str, float] = defaultdict(float)
    for one in found:
        for (name, _), seconds in one.io_s.items():
            total[name] += seconds
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def find_blocking_call(thread: Thread) -> str | None:
    """Return the call in which a thread was blocked most of the time; None where it was never seen blocked."""
    calls: dict[str, float] = defaultdict(float)
    for what, weight in _share_out_unknown(thread.blocked).items():
        calls[what.call] += weight
    return max(calls, key=lambda call: calls[call], default=None)
