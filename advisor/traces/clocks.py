"""One clock for all processes: offsets, and drifts where needed, from what cannot have happened otherwise.

Nobody leaves an all-to-all collective before everybody has entered it, and no message is received before its send
started. Each such pair of events says ``t_p + x_p <= t_q + x_q`` for the corrections x of two processes. All these
difference constraints are solved jointly: shortest paths give the interval in which each correction must lie, and
its middle satisfies every constraint. Where constant corrections contradict each other, a linear programme adds a
drift per process and keeps as far from all constraints as possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.grouping import numbered
from advisor.model import Note
from advisor.traces import locations
from advisor.traces.events import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.model import FloatArray, IntArray
    from advisor.traces.events import Trace
    from advisor.traces.matching import Collectives, Messages
    from advisor.traces.nesting import Calls

#: Pairs of events looked at per round; longer traces are sampled evenly over their length.
PAIRS_AT_MOST = 50_000_000
#: Pairs of events of collectives that are looked at together.
PAIRS_AT_ONCE = 1 << 16
#: Stretches of the run from each of which the tightest constraint of a pair of processes enters the linear programme.
STRETCHES = 32
#: Constraints that the linear programme takes at most, the tightest first.
CONSTRAINTS_AT_MOST = 40_000


@dataclass(frozen=True, slots=True)
class Constraints:
    """The tightest ones: ``before_s[i]`` on process ``earlier[i]`` lies before ``after_s[i]`` on ``later[i]``."""

    earlier: IntArray
    later: IntArray
    before_s: FloatArray
    after_s: FloatArray


@dataclass(frozen=True, slots=True)
class Correction:
    """Corrected time = time + ``offset_s[p]`` + ``drift[p]`` x time; known to ± ``uncertainty_s[p]`` against rank 0.

    ``solved`` is False where the recorded events contradict each other under any such correction, or where
    nothing ties a process to the others (its uncertainty is then infinite).
    """

    offset_s: FloatArray
    drift: FloatArray
    uncertainty_s: FloatArray
    solved: bool


def constraints(
    trace: Trace, calls: Calls, joint: Collectives, messages: Messages, stretches: int = STRETCHES
) -> Constraints:
    """Return the tightest constraint of every pair of processes and of ``stretches`` parts of the run."""
    process = locations.processes(trace)
    parts = [
        *_of_collectives(calls, joint, process[calls.location], stretches),
        _of_messages(calls, messages, process[calls.location]),
    ]
    return Constraints(*(np.concatenate([getattr(part, name) for part in parts]) for name in Constraints.__slots__))


def agree(calls: Calls, joint: Collectives, messages: Messages, resolution_s: float) -> bool:
    """Return whether all events fit together with the clocks as they are; far quicker than ``constraints``."""
    told = messages.send >= 0
    if (calls.end_s[messages.receive[told]] < calls.start_s[messages.send[told]] - resolution_s).any():
        return False
    if not len(joint):
        return True
    entered, left = calls.start_s[joint.call], calls.end_s[joint.call]
    roots = joint.first[:-1] + np.maximum(joint.root, 0)
    last = np.where(joint.role == Role.ONE_TO_ALL, entered[roots], np.maximum.reduceat(entered, joint.first[:-1]))
    soonest = np.where(joint.role == Role.ALL_TO_ONE, left[roots], np.minimum.reduceat(left, joint.first[:-1]))
    told = joint.role != Role.SCAN
    return bool((soonest[told] >= last[told] - resolution_s).all())


def tightest(parts: Sequence[Constraints]) -> Constraints:
    """Return the tightest constraint of every pair of processes and stretch of the run among those of its parts."""
    return _tightest(
        Constraints(*(np.concatenate([getattr(p, name) for p in parts]) for name in Constraints.__slots__))
    )


def solve(found: Constraints, ranks: int, resolution_s: float) -> Correction:
    """Return the correction of every process; rank 0 keeps its clock."""
    still = _constant(found, ranks, resolution_s)
    if still is not None:
        return still
    offset, drift = _drifting(found, ranks)
    after = found.after_s + offset[found.later] + drift[found.later] * found.after_s
    before = found.before_s + offset[found.earlier] + drift[found.earlier] * found.before_s
    rest = _constant(replace(found, before_s=before, after_s=after), ranks, resolution_s)
    if rest is None:
        return Correction(np.zeros(ranks), np.zeros(ranks), np.full(ranks, np.inf), solved=False)
    return Correction(offset + rest.offset_s, drift, rest.uncertainty_s, rest.solved)


def corrected(trace: Trace, correction: Correction) -> FloatArray:
    """Return the time of every event on the common clock, seconds."""
    if not correction.offset_s.any() and not correction.drift.any():
        return trace.time_s
    return by_location(
        trace, correction, trace.time_s, np.repeat(np.arange(len(trace.locations)), np.diff(trace.first))
    )


def by_location(trace: Trace, correction: Correction, time_s: FloatArray, location: IntArray) -> FloatArray:
    """Return times of the locations' own clocks on the common clock, seconds; what is infinite stays so."""
    process = locations.processes(trace)[location]
    return time_s + correction.offset_s[process] + correction.drift[process] * np.where(np.isinf(time_s), 0.0, time_s)


def note(correction: Correction) -> Note | None:
    """Return what the quality list should say about the clocks."""
    if not correction.solved:
        return Note(
            "clocks",
            "the processes' clocks cannot be brought together: their events contradict each other, or nothing ties "
            "some of them to the rest; waiting cannot be told from work",
            0.3,
        )
    worst = float(correction.uncertainty_s.max(initial=0.0))
    return Note("clocks", f"clocks of the processes agree to within ± {worst * 1e6:.1f} us") if worst > 0 else None


def _of_collectives(calls: Calls, joint: Collectives, process: IntArray, stretches: int) -> Iterator[Constraints]:
    """Yield the tightest constraints of the collectives, those of one communicator and role together."""
    for comm in np.unique(joint.comm):
        for role in (Role.BARRIER, Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE):
            chosen = np.flatnonzero((joint.comm == comm) & (joint.role == role))
            if not len(chosen):
                continue
            size = int(joint.first[chosen[0] + 1] - joint.first[chosen[0]])
            at_most = max(PAIRS_AT_MOST // (size * size), 2)
            chosen = chosen[np.linspace(0, len(chosen) - 1, min(len(chosen), at_most)).astype(np.int64)]
            call = joint.call[joint.first[chosen][:, None] + np.arange(size)]
            for part in np.array_split(np.arange(len(call)), min(stretches, len(call))):
                yield _of_one_stretch(calls, call[part], process, role, joint.root[chosen[part]])


def _of_one_stretch(calls: Calls, call: IntArray, process: IntArray, role: Role, root: IntArray) -> Constraints:
    """Return who must have entered before whom leaves, the tightest of instances (K, m) of one kind."""
    roots = call[np.arange(len(call)), root]
    if role == Role.ONE_TO_ALL:
        return _tightest(_between(calls, np.repeat(roots, call.shape[1]), call.ravel(), process))
    if role == Role.ALL_TO_ONE:
        return _tightest(_between(calls, call.ravel(), np.repeat(roots, call.shape[1]), process))
    entered, left = calls.start_s[call], calls.end_s[call]
    best = np.zeros((call.shape[1], call.shape[1]), dtype=np.int64)
    slack = np.full(best.shape, np.inf)
    for turns in np.array_split(np.arange(len(call)), len(call) * best.size // PAIRS_AT_ONCE + 1):
        each = left[turns][:, None, :] - entered[turns][:, :, None]
        tighter = each.min(axis=0)
        early, late = np.nonzero(tighter < slack)
        slack[early, late] = tighter[early, late]
        best[early, late] = turns[np.argmin(each[:, early, late], axis=0)]
    first, last = np.nonzero(~np.eye(call.shape[1], dtype=bool))
    tightest = best[first, last]
    return _between(calls, call[tightest, first], call[tightest, last], process)


def _of_messages(calls: Calls, messages: Messages, process: IntArray) -> Constraints:
    """Return constraints of the messages: the send started before the receive ended."""
    return _tightest(_between(calls, messages.send, messages.receive, process))


def _between(calls: Calls, first: IntArray, last: IntArray, process: IntArray) -> Constraints:
    """Return the constraints that call ``first[i]`` started before call ``last[i]`` of another process ended."""
    other = process[first] != process[last]
    first, last = first[other], last[other]
    return Constraints(process[first], process[last], calls.start_s[first], calls.end_s[last])


def _tightest(found: Constraints) -> Constraints:
    """Return the constraint with the least slack for each pair of processes and stretch of the run."""
    if not len(found.earlier):
        return found
    low, high = float(found.before_s.min()), float(found.before_s.max())
    stretch = ((found.before_s - low) / max(high - low, 1e-300) * (STRETCHES - 1)).astype(np.int64)
    processes = int(max(found.earlier.max(), found.later.max())) + 1
    key = (found.earlier * processes + found.later) * STRETCHES + stretch
    different, number = numbered(key, processes * processes * STRETCHES)
    slack, least = found.after_s - found.before_s, np.full(len(different), np.inf)
    np.minimum.at(least, number, slack)
    tight = np.flatnonzero(slack == least[number])[::-1]
    chosen = np.zeros(len(different), dtype=np.int64)
    chosen[number[tight]] = tight  # the first one where several are equal
    return Constraints(*(getattr(found, name)[chosen] for name in Constraints.__slots__))


def _constant(found: Constraints, ranks: int, resolution_s: float) -> Correction | None:
    """Return constant corrections from shortest paths (Bellman-Ford) to and from rank 0, None in contradiction."""
    slack = found.after_s - found.before_s
    nothing = np.zeros(ranks)
    highest = _shortest(found.earlier, found.later, slack, ranks)
    lowest = _shortest(found.later, found.earlier, slack, ranks)
    if highest is None or lowest is None:
        return None
    reached = np.isfinite(highest) & np.isfinite(lowest)
    width = np.where(reached, highest + lowest, np.inf)
    if (slack >= -resolution_s).all() and reached.all():
        return Correction(nothing, nothing, nothing, solved=True)
    offset = np.where(reached, (np.where(reached, highest, 0) - np.where(reached, lowest, 0)) / 2, 0.0)
    return Correction(offset, nothing, width / 2, solved=bool(reached.all()))


def _shortest(start: IntArray, end: IntArray, slack: FloatArray, ranks: int) -> FloatArray | None:
    """Return the shortest path from each process to rank 0, None where the constraints contradict each other."""
    path = np.full(ranks, np.inf)
    path[0] = 0.0
    for _ in range(ranks + 1):
        shorter = path.copy()
        np.minimum.at(shorter, start, slack + path[end])
        if np.array_equal(shorter, path):
            return path
        path = shorter
    return None


def _drifting(found: Constraints, ranks: int) -> tuple[FloatArray, FloatArray]:
    """Return offsets and drifts that keep the largest distance from the tightest constraints."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    order = np.argsort(found.after_s - found.before_s, kind="stable")[:CONSTRAINTS_AT_MOST]
    earlier, later = found.earlier[order], found.later[order]
    before, after = found.before_s[order], found.after_s[order]
    scale = max(float(after.max()), 1e-9)
    rows = np.tile(np.arange(len(order)), 5)
    columns = np.concatenate((earlier, later, ranks + earlier, ranks + later, np.full(len(order), 2 * ranks)))
    ones = np.ones(len(order))
    values = np.concatenate((ones, -ones, before / scale, -after / scale, ones))
    matrix = csr_array((values, (rows, columns)), shape=(len(order), 2 * ranks + 1))
    limits = [(-np.inf, np.inf)] * (2 * ranks) + [(-np.inf, scale)]
    limits[0] = limits[ranks] = (0.0, 0.0)
    objective = np.zeros(2 * ranks + 1)
    objective[-1] = -1.0
    result = linprog(objective, A_ub=matrix, b_ub=after - before, bounds=limits, method="highs")
    if not result.success:
        return np.zeros(ranks), np.zeros(ranks)
    return result.x[:ranks], result.x[ranks : 2 * ranks] / scale
