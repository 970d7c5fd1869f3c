"""Clock constraints from a trace: event pairs of two processes whose order is certain.

Nobody leaves an N-to-N collective before everybody has entered it, nobody gets a broadcast before the root entered, and
no message is received before its send started. Of an N-to-N collective the enters and leaves themselves are kept, two
numbers a process, because its latest enter and earliest leave hold all of its ranks x ranks constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.support.grouping import number_values
from advisor.trace import locations
from advisor.trace.counts import sum_call_bytes
from advisor.trace.events import Kind, Role, Trace

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.matching import Collectives, Messages
    from advisor.trace.nesting import Calls

#: Stretches of each process's time from each of which the tightest constraint of a pair of processes is kept.
STRETCHES = 32
#: Calls of N-to-N collectives that are kept of a whole run; of longer ones whole collectives are sampled evenly.
COLLECTIVE_CALLS_AT_MOST = 1 << 20
#: Bytes of a call up to which all are taken to leave a collective together: with more data some leave much later.
SMALL_BYTES = 4096
_N_TO_N = (Role.BARRIER, Role.ALL_TO_ALL)


@dataclass(frozen=True, slots=True)
class ClockConstraints:
    """Constraints between the processes' clocks; times in seconds of each process's own clock.

    ``before_s[i]`` on process ``earlier[i]`` lies before ``after_s[i]`` on ``later[i]``: the tightest constraint of
    each ordered pair of processes and stretch of the run. Collective k of ``communicator[k]`` is that of the calls
    ``first[k]:first[k + 1]``: each ``process[j]`` entered at ``enter_s[j]``, and left at ``leave_s[j]``, after all of
    them had entered. It is ``small`` if it is a barrier or every call is known to move few bytes.
    """

    earlier: IntArray
    later: IntArray
    before_s: FloatArray
    after_s: FloatArray
    communicator: IntArray
    small: npt.NDArray[np.bool_]
    first: IntArray
    process: IntArray
    enter_s: FloatArray
    leave_s: FloatArray


def collect_constraints(
    trace: Trace, calls: Calls, joint: Collectives, messages: Messages, whole: Trace | None = None, parts: int = 1
) -> ClockConstraints:
    """Return the constraints of a trace, or of one of ``parts`` windows of the ``whole`` trace."""
    process = locations.processes_of_locations(trace)[calls.location]
    pairs = _PairConstraints.constrain_calls(calls, process, *_ordered_calls(joint, messages))
    pairs = pairs.select_tightest(*locations.spans_of_processes(whole or trace))
    chosen = _sample_collectives(joint, COLLECTIVE_CALLS_AT_MOST // parts)
    call, first = _calls_of(joint, chosen)
    return ClockConstraints(
        pairs.earlier, pairs.later, pairs.before_s, pairs.after_s,
        joint.comm[chosen], _are_small(trace, calls, joint)[chosen], first,
        process[call], calls.start_s[call], calls.end_s[call],
    )  # fmt: skip


def combine_constraints(parts: Sequence[ClockConstraints], whole: Trace) -> ClockConstraints:
    """Return the constraints of all windows of the ``whole`` trace, as if these had been collected at once."""

    def join_columns(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    pairs = _PairConstraints(*(join_columns(name) for name in _PairConstraints.__slots__))
    pairs = pairs.select_tightest(*locations.spans_of_processes(whole))
    communicator, size = join_columns("communicator"), np.concatenate([np.diff(part.first) for part in parts])
    order = np.argsort(communicator, kind="stable")
    first = np.r_[0, np.cumsum(size[order])].astype(np.int64)
    call = np.repeat((np.cumsum(size) - size)[order] - first[:-1], size[order]) + np.arange(first[-1])
    return ClockConstraints(
        pairs.earlier, pairs.later, pairs.before_s, pairs.after_s,
        communicator[order], join_columns("small")[order], first,
        *(join_columns(name)[call] for name in ("process", "enter_s", "leave_s")),
    )  # fmt: skip


def are_clocks_consistent(calls: Calls, joint: Collectives, messages: Messages, resolution_s: float) -> bool:
    """Return whether all events fit together with the clocks as they are, to within ``resolution_s``."""
    first, last = _ordered_calls(joint, messages)
    if (calls.end_s[last] < calls.start_s[first] - resolution_s).any():
        return False
    call, edges = _calls_of(joint, np.flatnonzero(np.isin(joint.role, _N_TO_N)))
    if not len(call):
        return True
    latest_enter = np.maximum.reduceat(calls.start_s[call], edges[:-1])
    earliest_leave = np.minimum.reduceat(calls.end_s[call], edges[:-1])
    return bool((earliest_leave >= latest_enter - resolution_s).all())


@dataclass(frozen=True, slots=True)
class _PairConstraints:
    """As the first columns of ``ClockConstraints``."""

    earlier: IntArray
    later: IntArray
    before_s: FloatArray
    after_s: FloatArray

    @classmethod
    def constrain_calls(cls, calls: Calls, process: IntArray, first: IntArray, last: IntArray) -> _PairConstraints:
        """Return the constraints that call ``first[i]`` started before call ``last[i]`` of another process ended."""
        other = process[first] != process[last]
        first, last = first[other], last[other]
        return cls(process[first], process[last], calls.start_s[first], calls.end_s[last])

    def select_tightest(self, begin_s: FloatArray, end_s: FloatArray) -> _PairConstraints:
        """Return the constraint with the least slack of each ordered pair of processes and stretch of the run.

        The run lasts from ``begin_s`` to ``end_s`` by each process's own clock: clocks may be hours apart.
        """
        if not len(self.earlier):
            return self
        share = (self.before_s - begin_s[self.earlier]) / np.maximum(end_s - begin_s, 1e-300)[self.earlier]
        stretch = np.clip((share * STRETCHES).astype(np.int64), 0, STRETCHES - 1)
        processes = len(begin_s)
        key = (self.earlier * processes + self.later) * STRETCHES + stretch
        different, number = number_values(key, processes * processes * STRETCHES)
        slack, least = self.after_s - self.before_s, np.full(len(different), np.inf)
        np.minimum.at(least, number, slack)
        tight = np.flatnonzero(slack == least[number])[::-1]
        chosen = np.zeros(len(different), dtype=np.int64)
        chosen[number[tight]] = tight  # the first one where several are equal
        return _PairConstraints(*(getattr(self, name)[chosen] for name in _PairConstraints.__slots__))


def _ordered_calls(joint: Collectives, messages: Messages) -> tuple[IntArray, IntArray]:
    """Return pairs of calls of which the first began before the last ended: messages and rooted collectives."""
    size = np.diff(joint.first)
    roots = np.repeat(joint.call[joint.first[:-1] + np.maximum(joint.root, 0)], size)
    rooted = np.repeat(joint.root >= 0, size)
    role = np.repeat(joint.role, size)
    one_to_all, all_to_one = rooted & (role == Role.ONE_TO_ALL), rooted & (role == Role.ALL_TO_ONE)
    received = messages.send >= 0
    first = np.concatenate((messages.send[received], roots[one_to_all], joint.call[all_to_one]))
    last = np.concatenate((messages.receive[received], joint.call[one_to_all], roots[all_to_one]))
    return first, last


def _are_small(trace: Trace, calls: Calls, joint: Collectives) -> npt.NDArray[np.bool_]:
    """Return which collectives are barriers, or move no more than ``SMALL_BYTES`` in any call."""
    if not len(joint):
        return np.zeros(0, dtype=np.bool_)
    size = sum_call_bytes(trace, calls, (Kind.COLLECTIVE,))[joint.call]
    least, most = (extreme.reduceat(size, joint.first[:-1]) for extreme in (np.minimum, np.maximum))
    small: npt.NDArray[np.bool_] = (joint.role == Role.BARRIER) | ((least >= 0) & (most <= SMALL_BYTES))
    return small


def _sample_collectives(joint: Collectives, calls_at_most: int) -> IntArray:
    """Return N-to-N collectives, evenly over the run, that have no more than so many calls (but at least two)."""
    chosen = np.flatnonzero(np.isin(joint.role, _N_TO_N))
    calls = int(np.diff(joint.first)[chosen].sum())
    if calls <= calls_at_most:
        return chosen
    count = max(int(len(chosen) * calls_at_most / calls), min(2, len(chosen)))
    sampled: IntArray = chosen[np.linspace(0, len(chosen) - 1, count).astype(np.int64)]
    return sampled


def _calls_of(joint: Collectives, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """Return the calls of the chosen collectives, one collective after the other, and where each begins."""
    size = np.diff(joint.first)[chosen]
    first = np.r_[0, np.cumsum(size)].astype(np.int64)
    inside = np.arange(first[-1]) - np.repeat(first[:-1], size)
    return joint.call[np.repeat(joint.first[chosen], size) + inside], first
