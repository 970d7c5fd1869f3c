"""Clock alignment: an offset, and a drift where it shows, of each clock domain against the first process.

A node has one clock: its processes are one clock domain unless their own events contradict that, and clocks that
contradict nothing are left alone. Otherwise each domain's clock is fitted to what happens at one time everywhere: all
processes leave an N-to-N collective together once the last one has entered, and a message and an answer to it take
equally long, each at their fastest. What is fitted is then moved by as little as the constraints ask for.

Processes that nothing ties together are islands, each of which is aligned by itself; one whose events contradict each
other leaves the others as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.records import FloatArray, IntArray, Note
from advisor.trace import locations
from advisor.trace.clock_fit import fit_clocks
from advisor.trace.clock_islands import (
    bound_offsets,
    find_islands,
    find_islands_of_processes,
    largest_violation,
    project_offsets,
    split_islands,
)
from advisor.trace.clock_observations import ClockModel, DomainObservations, observe_domains

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.trace.clock_constraints import ClockConstraints
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
#: Penalties of a run whose clocks cannot be brought together, in proportion where that is so of some processes, and of
#: one where nothing proves that they agree.
UNSOLVED_PENALTY, DOUBT_PENALTY = 0.2, 0.05
#: So many ranks are named whose clocks cannot be brought together.
SHOWN_RANKS = 8


@dataclass(frozen=True, slots=True)
class ClockCorrection:
    """Corrected time = time + ``offset_s[p]`` + ``drift[p]`` x time; known to ± ``uncertainty_s[p]``.

    That is against the first process of the same ``island`` (processes,): nothing ties the clocks of different islands
    together; where they were recorded too far apart, they were ``moved`` so that all began at the same time.
    ``solved`` (processes,) is False on islands whose events contradict each other under any such correction, or tie
    clocks in one direction only that cannot be right as recorded (the uncertainty is then infinite). Clocks that are
    ``unproven`` (processes,) contradict nothing, but no events show in both directions that they agree, and nothing
    says that they are of one node.
    """

    offset_s: FloatArray
    drift: FloatArray
    uncertainty_s: FloatArray
    solved: npt.NDArray[np.bool_]
    island: IntArray
    unproven: npt.NDArray[np.bool_]
    moved: bool = False


def align_clocks(found: ClockConstraints, hosts: IntArray, resolution_s: float) -> ClockCorrection:
    """Return the correction of every process; the first one of each island keeps its clock.

    ``hosts`` (processes,) numbers the node of each process, -1 where it is not known.
    """
    domain = _clock_domains(found, hosts, resolution_s)
    observed = observe_domains(found, domain, resolution_s)
    island = find_islands(observed)
    offset, drift, uncertainty = np.zeros((3, observed.domains))
    unproven = np.zeros(observed.domains, dtype=np.bool_)
    for part in split_islands(observed, island):
        if largest_violation(part.observed) > 0:
            model, known = _fit_corrections(part.observed, resolution_s)
            if np.isfinite(known).all():
                offset[part.domains], drift[part.domains] = model
            uncertainty[part.domains] = known if np.isfinite(known).all() else np.inf
        else:
            unproven[part.domains] = _are_one_sided(part.observed)
    solved = np.isfinite(uncertainty)[domain]
    doubted = unproven[domain] | _find_one_sided_processes(found, hosts, domain, resolution_s)
    return ClockCorrection(
        offset[domain], drift[domain], uncertainty[domain], solved, island[domain],
        unproven=solved & _spread_over_islands(doubted, island[domain]),
    )  # fmt: skip


def _find_one_sided_processes(
    found: ClockConstraints, hosts: IntArray, domain: IntArray, resolution_s: float
) -> npt.NDArray[np.bool_]:
    """Return the processes that events tie in one direction only, were each of unknown node on a clock of its own."""
    doubted = np.zeros(len(domain), dtype=np.bool_)
    if (hosts >= 0).all():
        return doubted
    name = np.where(hosts >= 0, domain, len(domain) + np.arange(len(domain)))
    number = np.unique(name, return_inverse=True)[1]
    alone = observe_domains(found, number, resolution_s)
    for part in split_islands(alone, find_islands(alone)):
        doubted |= np.isin(number, part.domains) & _are_one_sided(part.observed)
    return doubted


def _spread_over_islands(chosen: npt.NDArray[np.bool_], island: IntArray) -> npt.NDArray[np.bool_]:
    """Return all processes (processes,) of the islands of some."""
    return np.bincount(island, chosen)[island] > 0


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
    own, island = _find_starts(trace, started_s), correction.island
    start = correct_process_times(correction, own, np.arange(len(island)))
    first, last = np.full((2, int(island.max(initial=-1)) + 1), np.inf)
    np.minimum.at(first, island, start)
    np.minimum.at(last, island, -start)
    begin, end = locations.spans_of_processes(trace)
    most = STARTED_TOGETHER * float((end - begin).max(initial=0.0))
    solved = correction.solved & ~(correction.unproven & ((-last - first)[island] > most))
    if not solved.any():
        return _align_starts(correction, solved, own, float(own[0]))
    reference = float(first[island[solved][0]])
    if float(np.ptp(first[island[solved]])) > most:
        moved = correction.offset_s + (reference - first)[island]
        correction = replace(correction, offset_s=np.where(solved, moved, correction.offset_s), moved=True)
    return correction if solved.all() else _align_starts(correction, solved, own, reference)


def _align_starts(
    correction: ClockCorrection, solved: npt.NDArray[np.bool_], start_s: FloatArray, reference_s: float
) -> ClockCorrection:
    """Return ``correction`` with offsets that let all processes that are not ``solved`` be started up at one time.

    There is nothing better to go by. ``start_s`` (processes,) is when each was started up by its own clock.
    """
    return replace(
        correction,
        offset_s=np.where(solved, correction.offset_s, reference_s - start_s),
        drift=np.where(solved, correction.drift, 0.0),
        solved=solved,
        unproven=correction.unproven & solved,
    )


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


def describe_clocks(correction: ClockCorrection, rank: IntArray) -> Note | None:
    """Return what the quality list should say about the clocks; ``rank`` (processes,) is that of each process."""
    processes, solved = len(correction.island), correction.solved
    lost = processes - int(np.count_nonzero(solved))
    unproven = bool(correction.unproven.any())
    doubts = []
    if lost:
        whose = "the processes' clocks"
        if lost < processes:
            whose = f"the clocks of {_name_ranks(rank[~solved], processes)}"
        doubts.append(
            f"{whose} cannot be brought together: their events "
            "contradict each other, or tie some of them to the rest in one direction only; waiting is estimated from "
            "the shortest calls of each kind"
        )
    if unproven:
        doubts.append(
            "no events show in both directions that the processes' clocks agree; they are taken as they were recorded"
        )
    apart = processes - lost - int(np.bincount(correction.island[solved]).max(initial=0))
    if apart:
        how = "are taken to have started with the rest" if correction.moved else "keep their clocks as recorded"
        doubts.append(f"no matched message or collective ties {apart} of {processes} processes to the rest; they {how}")
    worst = float(correction.uncertainty_s[solved].max(initial=0.0))
    if worst > 0 and not unproven:
        whose = "the other processes" if lost else "the processes"
        doubts.insert(0, f"clocks of {whose} agree to within ± {worst * 1e6:.1f} us")
    penalty = max(UNSOLVED_PENALTY * lost / max(processes, 1), DOUBT_PENALTY if unproven or apart else 0.0)
    return Note("clocks", "; ".join(doubts), penalty) if doubts else None


def _name_ranks(ranks: IntArray, processes: int) -> str:
    shown = ", ".join(map(str, ranks[:SHOWN_RANKS].tolist()))
    return f"{len(ranks)} of {processes} processes (ranks {shown}{', …' if len(ranks) > SHOWN_RANKS else ''})"


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
