"""Clock alignment: an offset, and a drift where it shows, of each clock domain against the first process.

A node has one clock: its processes are one clock domain unless their own events contradict that, and clocks that
contradict nothing are left alone. Otherwise each domain's clock is fitted to what happens at one time everywhere: all
processes leave an N-to-N collective together once the last one has entered, and a message and an answer to it take
equally long, each at their fastest. What is fitted is then moved by as little as the constraints ask for.

Processes that nothing ties together are islands, each of which is aligned by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.record_class import dataclass
from advisor.model.records import Note
from advisor.trace import locations
from advisor.trace.clock_fit import fit_clocks
from advisor.trace.clock_intervals import bound_offsets, largest_violation, project_offsets
from advisor.trace.clock_islands import find_islands, find_islands_of_processes, split_islands
from advisor.trace.clock_observations import ClockModel, observe_domains

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.clock_constraints import ClockConstraints
    from advisor.trace.clock_observations import DomainObservations
    from advisor.trace.events import Trace

#: Clocks that still contradict each other by more than this share of the run are no common clock.
CONTRADICTION_SHARE = 1e-3
#: Clocks that are no straight lines are off by up to so many times what their events contradict each other.
SHOWN_PART = 2.0
#: Drifts are looked for where offsets leave more than this misfit (mean square, in units of the expected error) or a
#: contradiction; they are believed where they leave less than this share of it, every domain was measured so often, and
#: none is larger than any clock's.
GOOD_MISFIT, DRIFT_MISFIT, MEASUREMENTS_FOR_DRIFT, DRIFT_AT_MOST = 1.0, 0.9, 4, 1e-2
#: Clocks on which the processes started up within this share of the run may be one clock, if nothing else is known.
STARTED_TOGETHER = 0.1


@dataclass(frozen=True, slots=True)
class ClockCorrection:
    """Corrected time = time + ``offset_s[p]`` + ``drift[p]`` x time; known to ± ``uncertainty_s[p]``.

    That is against the first process of the same ``island`` (processes,): nothing ties the clocks of different islands
    together; where they were recorded too far apart, they were ``moved`` so that all began at the same time.
    ``solved`` is False where the recorded events contradict each other under any such correction, or where they tie
    clocks in one direction only and these cannot be right as recorded (the uncertainty is then infinite). Clocks that
    are ``unproven`` contradict nothing, but no events show in both directions that they agree, and nothing says that
    they are of one node.
    """

    offset_s: FloatArray
    drift: FloatArray
    uncertainty_s: FloatArray
    solved: bool
    island: IntArray
    unproven: bool = False
    moved: bool = False


def align_clocks(found: ClockConstraints, hosts: IntArray, resolution_s: float) -> ClockCorrection:
    """Return the correction of every process; the first one of each island keeps its clock.

    ``hosts`` (processes,) numbers the node of each process, -1 where it is not known.
    """
    domain = _clock_domains(found, hosts, resolution_s)
    observed = observe_domains(found, domain, resolution_s)
    island = find_islands(observed)
    offset, drift, uncertainty = np.zeros((3, observed.domains))
    unproven = False
    for part in split_islands(observed, island):
        if largest_violation(part.observed) > 0:
            model, uncertainty[part.domains] = _fit_corrections(part.observed, resolution_s)
            offset[part.domains], drift[part.domains] = model
        else:
            unproven = unproven or _are_one_sided(part.observed)
    if not np.isfinite(uncertainty).all():
        nothing = np.zeros(len(domain))
        return ClockCorrection(nothing, nothing, uncertainty[domain], solved=False, island=island[domain])
    if not unproven and (hosts < 0).any():
        name = np.where(hosts >= 0, domain, len(domain) + np.arange(len(domain)))
        alone = observe_domains(found, np.unique(name, return_inverse=True)[1], resolution_s)
        unproven = any(_are_one_sided(part.observed) for part in split_islands(alone, find_islands(alone)))
    return ClockCorrection(
        offset[domain], drift[domain], uncertainty[domain], solved=True, island=island[domain], unproven=unproven
    )


def _are_one_sided(observed: DomainObservations) -> bool:
    """Return whether events tie some clocks of an island to the first in one direction only."""
    return not bool(np.isfinite(bound_offsets(observed)).all())


def _fit_corrections(observed: DomainObservations, resolution_s: float) -> tuple[ClockModel, FloatArray]:
    """Return the clocks that explain the events best, moved so that these fit, and how well each is known, seconds.

    Clocks drift where their events do not fit otherwise, or where that explains most of what is left.
    """
    fit = fit_clocks(observed, resolution_s)
    offset = project_offsets(observed.correct_clocks(fit.model))
    if offset is None or fit.misfit > GOOD_MISFIT:
        moving = fit_clocks(observed, resolution_s, fit.model)
        better = moving.misfit < DRIFT_MISFIT * fit.misfit and moving.least_measurements >= MEASUREMENTS_FOR_DRIFT
        if better and np.abs(moving.model.drift).max() <= DRIFT_AT_MOST:
            fit, offset = moving, project_offsets(observed.correct_clocks(moving.model))
    model = fit.model
    if offset is not None:
        moved = offset - offset[0]
        model = ClockModel(model.offset_s + moved, model.drift)
    if offset is not None and not observed.small.any() and len(observed.small):
        # nothing tells when all leave together: the middle of what is possible is as good as anything
        low, high = bound_offsets(observed.correct_clocks(model))
        middle = np.where(np.isfinite(high - low), (low + high) / 2, 0.0)
        model = ClockModel(model.offset_s + middle, model.drift)
    corrected = observed.correct_clocks(model)
    violation = largest_violation(corrected)
    low, high = bound_offsets(corrected)
    known = np.maximum(high, -low)
    if violation:  # the clocks are no straight lines: their contradictions show a part of how far they are off
        uncertainty = known + SHOWN_PART * violation
    else:
        uncertainty = np.where(np.isfinite(known), np.minimum(known, fit.scatter_s), np.inf)
    uncertainty[0] = 0.0
    first, last = corrected.time_spans()
    if violation > CONTRADICTION_SHARE * float(last.max() - first.min()):
        uncertainty[:] = np.inf
    return model, uncertainty


def place_islands(trace: Trace, started_s: FloatArray, correction: ClockCorrection) -> ClockCorrection:
    """Return ``correction`` with all processes on one clock, as far as their starts say what their events do not.

    Clocks that nothing proves to be one are believed as recorded while all processes were started up by them within a
    share of the run. Otherwise islands are moved to begin together, and clocks of one island are no solution.
    ``started_s`` (locations,) is when each was started up by its own clock, -inf where that is not recorded.
    """
    if not correction.solved:
        return _align_starts(trace, started_s, correction)
    start = correct_process_times(correction, _find_starts(trace, started_s), np.arange(len(correction.island)))
    first, last = np.full((2, int(correction.island.max(initial=-1)) + 1), np.inf)
    np.minimum.at(first, correction.island, start)
    np.minimum.at(last, correction.island, -start)
    begin, end = locations.spans_of_processes(trace)
    most = STARTED_TOGETHER * float((end - begin).max(initial=0.0))
    if correction.unproven and (-last - first).max() > most:
        return _align_starts(trace, started_s, replace(correction, solved=False))
    if float(np.ptp(first)) <= most:
        return correction
    offset = correction.offset_s + (first[0] - first)[correction.island]
    return replace(correction, offset_s=offset, moved=True)


def _align_starts(trace: Trace, started_s: FloatArray, correction: ClockCorrection) -> ClockCorrection:
    """Return ``correction`` with offsets that let all processes be started up at one time, for want of better ones."""
    start = _find_starts(trace, started_s)
    return replace(correction, offset_s=start[0] - start, drift=np.zeros(len(start)))


def _find_starts(trace: Trace, started_s: FloatArray) -> FloatArray:
    """Return when each process was started up by its own clock, or its first event where that is not recorded."""
    first = trace.time_s[np.minimum(trace.first[:-1], len(trace.time_s) - 1)]
    start = np.where(np.isfinite(started_s), started_s, first)
    result = np.zeros(trace.ranks)
    result[locations.processes_of_locations(trace)] = start[locations.first_locations(trace)]
    return result


def correct_times(trace: Trace, correction: ClockCorrection) -> FloatArray:
    """Return the time of every event on the common clock, seconds."""
    if not correction.offset_s.any() and not correction.drift.any():
        return trace.time_s
    return correct_process_times(
        correction, trace.time_s, np.repeat(locations.processes_of_locations(trace), np.diff(trace.first))
    )


def correct_process_times(correction: ClockCorrection, time_s: FloatArray, process: IntArray | int) -> FloatArray:
    """Return times of the processes' own clocks on the common clock, seconds; what is infinite stays so."""
    return time_s + correction.offset_s[process] + correction.drift[process] * np.where(np.isinf(time_s), 0.0, time_s)


def describe_clocks(correction: ClockCorrection) -> Note | None:
    """Return what the quality list should say about the clocks."""
    if not correction.solved:
        return Note(
            "clocks",
            "the processes' clocks cannot be brought together: their events contradict each other, or tie some of "
            "them to the rest in one direction only; waiting is estimated from the shortest calls of each kind",
            0.2,
        )
    doubts = []
    if correction.unproven:
        doubts.append(
            "no events show in both directions that the processes' clocks agree; they are taken as they were recorded"
        )
    processes = len(correction.island)
    apart = processes - int(np.bincount(correction.island).max(initial=0))
    if apart:
        how = "are taken to have started with the rest" if correction.moved else "keep their clocks as recorded"
        doubts.append(f"no matched message or collective ties {apart} of {processes} processes to the rest; they {how}")
    worst = float(correction.uncertainty_s.max(initial=0.0))
    if worst > 0 and not correction.unproven:
        doubts.insert(0, f"clocks of the processes agree to within ± {worst * 1e6:.1f} us")
    doubtful = correction.unproven or apart
    return Note("clocks", "; ".join(doubts), 0.05 if doubtful else 0.0) if doubts else None


def _clock_domains(found: ClockConstraints, hosts: IntArray, resolution_s: float) -> IntArray:
    """Return the clock domain of each process, numbered in the order of the processes.

    Processes of one node are one domain if their events fit together as they were recorded. So are those of one island
    of which no node is known.
    """
    island = find_islands_of_processes(found, len(hosts))
    node = np.where(hosts >= 0, hosts, hosts.max(initial=-1) + 1 + island)
    contradicted = np.zeros(int(node.max(initial=0)) + 1, dtype=np.bool_)
    inside = node[found.earlier] == node[found.later]
    broken = inside & (found.before_s > found.after_s + resolution_s)
    contradicted[node[found.earlier[broken]]] = True
    on_nodes = observe_domains(found, node, resolution_s)
    contradicted[on_nodes.domain[on_nodes.enter_s > on_nodes.leave_s]] = True
    name = np.where(contradicted[node], len(contradicted) + np.arange(len(hosts)), node)
    _, first, number = np.unique(name, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]
