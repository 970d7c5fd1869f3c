"""Cut the run at synchronizations of all processors, and assign each piece to a phase.

Iterations are those of the program's loop, which is found in the sequence of its synchronizations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace import locations
from advisor.trace.clocks import ClockCorrection, correct_process_times
from advisor.trace.events import Role, Trace
from advisor.trace.nesting import count_previous

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.matching import Collectives
    from advisor.trace.nesting import Calls
    from advisor.trace.records import RunSurvey
    from advisor.trace.teams import ThreadTeams

#: Moments of a location below which a search of its own takes longer than one together with all others.
FEW_TIMES = 256
#: Longest cycle looked for, in synchronizations per iteration.
LONGEST = 2000


@dataclass(frozen=True, slots=True)
class RunDivision:
    """The run cut into K instances.

    ``edges_s`` (K + 1,): instance k lasts from ``edges_s[k]`` to ``edges_s[k + 1]`` for everybody. ``leaves_s`` holds
    (K - 1, locations) when each location left the synchronizations. ``closing_region`` (K, locations) is the region
    in which each location closes the instance, -1 where it takes no part. ``inside`` are the user regions entered in
    each instance, and ``first`` is the number of its first synchronization: those before belong to the start-up.
    """

    edges_s: FloatArray
    leaves_s: FloatArray
    closing_region: IntArray
    inside: tuple[IntArray, ...]
    first: int

    @property
    def instances(self) -> int:
        """The number of instances."""
        return len(self.edges_s) - 1


def divide_run(trace: Trace, found: RunSurvey, correction: ClockCorrection, end_s: float) -> RunDivision:
    """Return the instances of ``trace``, which ends at ``end_s``: from the start-up's end to the shutdown's begin."""
    process = locations.processes_of_locations(trace)

    def to_common_clock(time_s: FloatArray) -> FloatArray:
        return correct_process_times(correction, time_s, process)

    begin, finish = _find_run_edges(trace, found, to_common_clock, end_s)
    ends = to_common_clock(found.closing_end_s)
    last = ends.max(axis=1, initial=-np.inf)
    first = int(np.count_nonzero(last <= begin))
    edges = np.maximum.accumulate(np.r_[begin, last[first:], finish])
    return RunDivision(
        edges_s=edges,
        leaves_s=_fill_leave_times(trace, ends[first:]),
        closing_region=np.vstack((found.closing_region[first:], found.stopping)),
        inside=found.inside[first:],
        first=first,
    )


def identify_phases(division: RunDivision) -> tuple[IntArray, IntArray]:
    """Return phase and iteration of each instance from its closing call and the user regions inside it."""
    closed: dict[bytes, tuple[int, bytes]] = {}
    seen: dict[tuple[object, ...], int] = {}
    numbers = []
    for closing, inside in zip(division.closing_region, division.inside, strict=True):
        told = closing.tobytes()
        if told not in closed:
            part = closing >= 0
            closed[told] = (int(closing[part].min(initial=np.iinfo(np.int64).max)), part.tobytes())
        numbers.append(seen.setdefault((closed[told], inside.tobytes()), len(seen)))
    return identify_elements(np.array(numbers, dtype=np.int64))


def find_synchronizations(trace: Trace, calls: Calls, joint: Collectives, teams: ThreadTeams) -> IntArray:
    """Return (synchronizations, locations) in the order of time: the call of each location, -1 where it has none."""
    masters = locations.first_locations(trace)
    processes = len(np.unique(masters))
    size = np.diff(joint.first)
    everybody = np.isin(joint.role, (Role.BARRIER, Role.ALL_TO_ALL)) & (size == processes)
    table = [_call_table(joint.call, joint.first, np.flatnonzero(everybody), calls, len(masters))]
    if processes == 1 and len(masters) > 1:
        whole = np.flatnonzero(np.diff(teams.first) == len(masters))
        table.append(_call_table(teams.barrier, teams.first, whole, calls, len(masters)))
    rows = np.vstack(table)
    witness = rows[np.arange(len(rows)), np.argmax(rows >= 0, axis=1)]
    return rows[np.argsort(calls.end_s[witness], kind="stable")]


def compute_leave_times(trace: Trace, calls: Calls, closing: IntArray) -> FloatArray:
    """Return (synchronizations, locations): when each location left them, by the times of ``calls``."""
    return _fill_leave_times(trace, np.where(closing >= 0, calls.end_s[np.maximum(closing, 0)], -np.inf))


def instances_at(leaves_s: FloatArray, location: IntArray, start_s: FloatArray) -> IntArray:
    """Return the instance in which each location is at the given times, by its own leaves."""
    if len(location) < FEW_TIMES * leaves_s.shape[1]:
        return _bisect_leaves(leaves_s, location, start_s)
    if (location[1:] < location[:-1]).any():
        order = np.argsort(location, kind="stable")
        instance = np.empty(len(location), dtype=np.int64)
        instance[order] = instances_at(leaves_s, location[order], start_s[order])
        return instance
    edges = np.searchsorted(location, np.arange(leaves_s.shape[1] + 1))
    parts = zip(leaves_s.T, np.split(start_s, edges[1:-1]), strict=True)
    return np.concatenate([np.searchsorted(leaves, starts, side="right") for leaves, starts in parts])


def _bisect_leaves(leaves_s: FloatArray, location: IntArray, start_s: FloatArray) -> IntArray:
    """Return how many leaves of its location lie no later than each moment, halving what is open for all at once."""
    low, high = np.zeros(len(location), dtype=np.int64), np.full(len(location), len(leaves_s))
    for _ in range(len(leaves_s).bit_length()):
        middle = (low + high) // 2
        later = start_s < leaves_s[np.minimum(middle, len(leaves_s) - 1), location]
        narrowed = low < high
        high = np.where(narrowed & later, middle, high)
        low = np.where(narrowed & ~later, middle + 1, low)
    return low


def find_stopping_calls(trace: Trace, calls: Calls, role: IntArray) -> IntArray:
    """Return (locations,) the call that shuts each process down, -1 where it is not recorded."""
    found = np.full(len(trace.locations), -1, dtype=np.int64)
    if is_shutdown_recorded(trace):
        stopping = np.flatnonzero((role == Role.FINALIZE) & (calls.anchor == np.arange(len(role))))
        found[calls.location[stopping[::-1]]] = stopping[::-1]
    return found


def is_shutdown_recorded(trace: Trace) -> bool:
    """Return whether the trace shows when processes shut down, and not only when the tracer did."""
    names = {region.name for region in trace.regions if region.role == Role.FINALIZE}
    return not names or any(name.startswith("MPI_") for name in names)


def _fill_leave_times(trace: Trace, ends_s: FloatArray) -> FloatArray:
    """Return when each location left: a thread that took no part left with the first thread of its process."""
    return np.maximum.accumulate(
        np.where(np.isneginf(ends_s), ends_s[:, locations.first_locations(trace)], ends_s), axis=0
    )


def _call_table(call: IntArray, first: IntArray, chosen: IntArray, calls: Calls, locations: int) -> IntArray:
    """Return the calls of the chosen groups as a table (groups, locations)."""
    rows = np.full((len(chosen), locations), -1, dtype=np.int64)
    if len(chosen):
        size = int(first[chosen[0] + 1] - first[chosen[0]])
        members = call[first[chosen][:, None] + np.arange(size)]
        rows[np.arange(len(chosen))[:, None], calls.location[members]] = members
    return rows


def _find_run_edges(
    trace: Trace, found: RunSurvey, on_common_clock: Callable[[FloatArray], FloatArray], end_s: float
) -> tuple[float, float]:
    """Return when the last process is started up, and when the last one begins to shut down.

    Tracers let the processes write their files one after the other, which is no imbalance of the program: where only
    the tracer's shutdown is recorded, the run ends with the last call.
    """
    started = on_common_clock(found.started_s).max(initial=-np.inf)
    occupied = (np.diff(trace.first) > 0) & locations.are_first_threads(trace)
    begins = on_common_clock(trace.time_s[np.minimum(trace.first[:-1], len(trace.time_s) - 1)])
    begin = float(started) if np.isfinite(started) else float(begins[occupied].max(initial=0.0))
    stops = found.stopping >= 0
    done = float(on_common_clock(found.done_s).max(initial=-np.inf))
    finish = done if np.isfinite(done) and not is_shutdown_recorded(trace) else end_s
    finish = float(on_common_clock(found.stopping_s)[stops].max()) if stops.any() else finish
    return begin, max(finish, begin)


@dataclass(frozen=True, slots=True)
class Cycle:
    """``sequence[start:end]`` repeats every ``period`` elements; empty (period 0) when nothing repeats."""

    start: int
    end: int
    period: int


def find_longest_cycle(sequence: IntArray) -> Cycle:
    """Return the repetition that covers most of ``sequence``, the shortest period and the earliest start on ties.

    A cycle stands at least twice in a row.
    """
    best = Cycle(0, 0, 0)
    for period in range(1, min(len(sequence) // 2, LONGEST) + 1):
        if _is_confined(sequence, best, period):
            continue
        start, length = _find_longest_run(sequence[:-period] == sequence[period:])
        if length >= period and length + period > best.end - best.start:
            best = Cycle(start, start + length + period, period)
    return best


def _is_confined(sequence: IntArray, best: Cycle, period: int) -> bool:
    """Return whether no repetition by ``period`` can be longer than ``best``, told from two places.

    A longer one would have to contain the middle of the sequence, so it would be that which contains the middle of
    ``best``, and that ends where ``best`` does.
    """
    count, covered = len(sequence), best.end - best.start
    if not covered or count - covered > covered - period:
        return False
    before, behind = best.start - 1, best.end - period
    ends_before = before < 0 or sequence[before] != sequence[before + period]
    return bool(ends_before and (best.end == count or sequence[behind] != sequence[behind + period]))


def identify_elements(sequence: IntArray) -> tuple[IntArray, IntArray]:
    """Return the phase and the iteration of each element of ``sequence``.

    Inside the longest cycle the phase is the position in it; before and after it equal elements are one phase, those
    before apart from those after. Phases are numbered by first occurrence; the iteration counts occurrences.
    """
    cycle = find_longest_cycle(sequence)
    place = np.arange(len(sequence))
    inside = (place >= cycle.start) & (place < cycle.end)
    part = np.where(inside, 1, np.where(place < cycle.start, 0, 2))
    position = np.where(inside, (place - cycle.start) % max(cycle.period, 1), 0)
    key = np.stack((part, position, np.where(inside, 0, sequence)))
    _, first, phase = np.unique(key, axis=1, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    phases = number[phase.reshape(-1)]
    return phases, count_previous(phases)


def _find_longest_run(same: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return start and length of the first longest run of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, same, False]))
    if not len(edges):
        return 0, 0
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    best = int(np.argmax(lengths))
    return int(starts[best]), int(lengths[best])
