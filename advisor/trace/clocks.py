"""Clock alignment: an offset, and a drift where it shows, of each clock domain against the first process.

A node has one clock: its processes are one clock domain unless their own events contradict that, and clocks that
contradict nothing are left alone. Otherwise each domain's clock is fitted to what happens at one time everywhere: all
processes leave an N-to-N collective together once the last one has entered, and a message and an answer to it take
equally long, each at their fastest. What is fitted is then moved by as little as the constraints ask for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.records import Note
from advisor.trace import locations
from advisor.trace.clock_fit import fit_clocks
from advisor.trace.clock_intervals import bound_offsets, largest_violation, project_offsets
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


@dataclass(frozen=True, slots=True)
class ClockCorrection:
    """Corrected time = time + ``offset_s[p]`` + ``drift[p]`` x time; known to ± ``uncertainty_s[p]`` against rank 0.

    ``solved`` is False where the recorded events contradict each other under any such correction, or where
    nothing ties a process to the others (its uncertainty is then infinite). Clocks that are ``unproven`` contradict
    nothing, but no events show in both directions that they agree, and nothing says that they are of one node.
    """

    offset_s: FloatArray
    drift: FloatArray
    uncertainty_s: FloatArray
    solved: bool
    unproven: bool = False


def align_clocks(found: ClockConstraints, hosts: IntArray, resolution_s: float) -> ClockCorrection:
    """Return the correction of every process; the first one keeps its clock.

    ``hosts`` (processes,) numbers the node of each process, -1 where it is not known.
    """
    domain = _clock_domains(found, hosts, resolution_s)
    observed = observe_domains(found, domain, resolution_s)
    consistent = largest_violation(observed) == 0
    model, uncertainty = _keep_clocks(observed) if consistent else _fit_corrections(observed, resolution_s)
    if not np.isfinite(uncertainty).all():
        nothing = np.zeros(len(domain))
        return ClockCorrection(nothing, nothing, uncertainty[domain], solved=False)
    unproven = False
    if (hosts < 0).any():
        alone = observe_domains(found, np.arange(len(hosts)), resolution_s)
        unproven = not bool(np.isfinite(bound_offsets(alone)).all())
    return ClockCorrection(
        model.offset_s[domain], model.drift[domain], uncertainty[domain], solved=True, unproven=unproven
    )


def _keep_clocks(observed: DomainObservations) -> tuple[ClockModel, FloatArray]:
    """Return the clocks as they are, as good as can be told where every domain is tied to the first in both ways."""
    width = np.subtract(*reversed(bound_offsets(observed)))
    nothing = np.zeros(observed.domains)
    return ClockModel(nothing, nothing), np.where(np.isfinite(width), 0.0, np.inf)


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


def align_starts(trace: Trace, started_s: FloatArray, correction: ClockCorrection) -> ClockCorrection:
    """Return ``correction`` with offsets that let all processes be started up at one time, for want of better ones.

    ``started_s`` (locations,) is when each was by its own clock, -inf where that is not recorded: then its first event.
    """
    first = trace.time_s[np.minimum(trace.first[:-1], len(trace.time_s) - 1)]
    start = np.where(np.isfinite(started_s), started_s, first)[locations.first_locations(trace)]
    offset = np.zeros(len(correction.offset_s))
    offset[locations.processes_of_locations(trace)] = start[0] - start
    return replace(correction, offset_s=offset)


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
            "the processes' clocks cannot be brought together: their events contradict each other, or nothing ties "
            "some of them to the rest; waiting is estimated from the shortest calls of each kind",
            0.2,
        )
    if correction.unproven:
        text = (
            "no events show in both directions that the processes' clocks agree; they are taken as they were recorded"
        )
        return Note("clocks", text, 0.05)
    worst = float(correction.uncertainty_s.max(initial=0.0))
    return Note("clocks", f"clocks of the processes agree to within ± {worst * 1e6:.1f} us") if worst > 0 else None


def _clock_domains(found: ClockConstraints, hosts: IntArray, resolution_s: float) -> IntArray:
    """Return the clock domain of each process, numbered in the order of the processes.

    Processes of one node are one domain if their events fit together as they were recorded. So are those of which no
    node is known, if events tie each of them to others.
    """
    node = np.where(hosts >= 0, hosts, hosts.max(initial=-1) + 1)
    contradicted = np.zeros(int(node.max(initial=0)) + 1, dtype=np.bool_)
    inside = node[found.earlier] == node[found.later]
    broken = inside & (found.before_s > found.after_s + resolution_s)
    contradicted[node[found.earlier[broken]]] = True
    on_nodes = observe_domains(found, node, resolution_s)
    contradicted[on_nodes.domain[on_nodes.enter_s > on_nodes.leave_s]] = True
    tied = hosts >= 0
    tied[found.earlier[inside]] = tied[found.later[inside]] = True
    tied[found.process[np.repeat(np.diff(found.first) > 1, np.diff(found.first))]] = True
    contradicted[node[~tied]] = True
    name = np.where(contradicted[node], len(contradicted) + np.arange(len(hosts)), node)
    _, first, number = np.unique(name, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]
