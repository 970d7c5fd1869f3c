"""The changes that rules name under ``change``, carried out on a measured run.

Each takes a run and the numbers of the phases that it is about (all, if there are none), and returns the changed run,
or None where the profile does not hold what the change is about. What is assumed of a remedy stands here and in
docs/plugins/simulation.md, nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.whatif import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from advisor.model.records import FloatArray
    from advisor_simulation.whatif.runs import PhaseRun, Run

    Change = Callable[[Run, set[int]], Run | None]

#: The share of communication or files that computation of the same instance can hide: not all of it is ready in time.
HIDDEN: Final = 0.8
#: The pieces into which a pipeline is cut for each processor in it.
PIECES: Final = 4
#: The pieces that ranks fetch themselves, for each rank in each phase: more of them cost more messages and locality.
RANK_PIECES: Final = 64
#: Largest over mean work of the ranks, from which on a phase is uneven.
UNEVEN: Final = 1.02
#: A phase with less work than this share of its time only synchronizes.
EMPTY: Final = 0.01


def _these(run: Run, chosen: set[int], serial: bool | None = False) -> list[PhaseRun]:
    """Return the phases that are meant, of one kind or (None) of both."""
    return [p for p in run.phases if (not chosen or p.number in chosen) and (serial is None or p.serial == serial)]


def _scaled(phase: PhaseRun, factor: FloatArray) -> PhaseRun:
    """Return the phase with each processor's work times its factor, and as much work in all as before."""
    total = float((phase.work * factor).sum())
    factor = factor * (float(phase.work.sum()) / total if total > 0 else 1.0)
    return replace(phase, work=phase.work * factor, alone=phase.alone * factor)


def _ratio(wanted: FloatArray, have: FloatArray) -> FloatArray:
    """Return wanted / have, 1 where there is nothing."""
    return np.divide(wanted, have, out=np.ones_like(have), where=have > 0)


def by_rank(run: Run, work: FloatArray) -> FloatArray:
    """Return the mean of a rank's threads for each of its processors, of an array (Q, …)."""
    masters, inverse = np.unique(run.team.master, return_inverse=True)
    total = np.zeros((len(masters), *work.shape[1:]))
    np.add.at(total, inverse, work)
    mean: FloatArray = (total / np.bincount(inverse).reshape(-1, *[1] * (work.ndim - 1)))[inverse]
    return mean


def decomposed(run: Run, chosen: set[int]) -> Run | None:
    """Cut the domain by measured work: one factor for each rank, that makes the ranks' totals equal.

    All uneven phases share the decomposition. Phases whose ranks have equal work keep it: it does not depend on the
    cut.
    """
    phases = [phase for phase in _these(run, chosen) if _uneven(run, phase)]
    if not phases:
        return run
    if len(phases) == 1:
        return run.changed([_even(run, phases[0])])
    total = by_rank(run, np.sum([phase.work.sum(axis=1) for phase in phases], axis=0))
    factor = _ratio(np.full_like(total, total.mean()), total)[:, None]
    return run.changed([_scaled(phase, factor) for phase in phases])


def _uneven(run: Run, phase: PhaseRun) -> bool:
    total = by_rank(run, phase.work.sum(axis=1))
    return float(total.max()) > UNEVEN * float(total.mean())


def per_phase(run: Run, chosen: set[int]) -> Run | None:
    """Give each phase a decomposition of its own, constant over the iterations."""
    return run.changed([_even(run, phase) for phase in _these(run, chosen)])


def _even(run: Run, phase: PhaseRun) -> PhaseRun:
    """Return a phase in which each rank has the same total; who had nothing to do gets its part of each iteration."""
    total = by_rank(run, phase.work.sum(axis=1))
    if (total < EMPTY * total.max()).any():
        return replace(phase, work=np.broadcast_to(phase.work.mean(axis=0), phase.work.shape).copy())
    return _scaled(phase, _ratio(np.full_like(total, total.mean()), total)[:, None])


def critical(run: Run, chosen: set[int]) -> Run | None:
    """Balance the phase that loses most, and let the others have its decomposition."""
    phases = _these(run, set())
    if not phases:
        return None
    lost = [float(phase.work.sum(axis=1).max() - phase.work.sum(axis=1).mean()) for phase in phases]
    total = by_rank(run, phases[int(np.argmax(lost))].work.sum(axis=1))
    factor = _ratio(np.full_like(total, total.mean()), total)[:, None]
    return run.changed([_scaled(phase, factor) for phase in phases])


def followed(run: Run, chosen: set[int]) -> Run | None:
    """Cut the domain anew each iteration by the loads of the one before."""
    changed = []
    for phase in _these(run, chosen):
        total = by_rank(run, phase.work)
        factor = np.ones_like(total)
        factor[:, 1:] = _ratio(np.broadcast_to(total[:, :-1].mean(axis=0), total[:, 1:].shape), total[:, :-1])
        changed.append(_scaled(phase, factor))
    return run.changed(changed)


def scheduled(run: Run, chosen: set[int]) -> Run | None:
    """Hand out work to whoever is free: threads share inside their rank where there are threads, else all share.

    Ranks fetch pieces, ``RANK_PIECES`` for each; when the last ones are done, they are apart by half a piece on
    average.
    """
    changed = []
    for phase in _these(run, chosen):
        if run.team.hybrid:
            own = phase.work - phase.alone
            changed.append(replace(phase, work=phase.alone + by_rank(run, own)))
        else:
            changed.append(_fetched(phase))
    return run.changed(changed)


def _fetched(phase: PhaseRun) -> PhaseRun:
    """Return a phase whose work the ranks fetch in pieces; the last one to be done alternates between them."""
    mean = phase.work.mean(axis=0)
    apart = np.linspace(-0.5, 0.5, len(phase.work)) / RANK_PIECES if len(phase.work) > 1 else np.zeros(1)
    turns = np.stack([np.roll(apart, turn) for turn in range(phase.work.shape[1])], axis=1)
    return replace(phase, work=mean * (1.0 + turns))


def spread_serial(run: Run, chosen: set[int]) -> Run | None:
    """Share what one processor does alone by all of them."""
    phases = _these(run, chosen, True)
    changed = [
        replace(p, work=np.broadcast_to(p.work.max(axis=0) / run.processors, p.work.shape).copy()) for p in phases
    ]
    return run.changed(changed) if changed else None


def overlapped_serial(run: Run, chosen: set[int]) -> Run | None:
    """Let a serial part run beside the phase that follows it."""
    phases = list(run.phases)
    for place, phase in enumerate(phases[:-1]):
        follower = phases[place + 1]
        same = phase.work.shape == follower.work.shape
        if phase.serial and same and (not chosen or phase.number in chosen):
            room = np.maximum(phase.durations() - follower.durations(), 0.0)
            nothing = np.zeros_like(phase.work)
            hidden = replace(phase, work=nothing, transfer=nothing, io=nothing, sync=nothing, inner=room)
            return run.changed([hidden])
    return None


def threaded(run: Run, chosen: set[int]) -> Run | None:
    """Share what the first threads do alone by all threads of their rank."""
    if not run.team.hybrid:
        return None
    threads = by_rank(run, np.ones(run.processors))
    count = np.bincount(run.team.master, minlength=run.processors)[run.team.master]
    changed = []
    for phase in _these(run, chosen):
        part = phase.alone / (count * threads)[:, None]
        changed.append(replace(phase, work=phase.work - phase.alone + part, alone=np.zeros_like(part)))
    return run.changed(changed)


def unguarded(run: Run, chosen: set[int]) -> Run | None:
    """Leave out the synchronizations in front of which nobody has done anything."""
    empty = {phase.number for phase in _these(run, chosen) if is_empty(phase)}
    return run.without(empty) if empty else fused(run, chosen)


def is_empty(phase: PhaseRun) -> bool:
    """Return whether a phase only synchronizes, or waits for one collective."""
    lasted = float(phase.durations().sum())
    return lasted > 0 and float(phase.work.max(axis=0).sum() + phase.io.sum()) < EMPTY * lasted


def repeated(run: Run, chosen: set[int]) -> Run | None:
    """Make one collective call of several in a row: what lies between them is nothing but the calls."""
    empty = [phase for phase in run.phases if is_empty(phase) and not phase.serial and len(phase.start) > 1]
    return run.without({phase.number for phase in empty}) if empty else None


def fused(run: Run, chosen: set[int]) -> Run | None:
    """Take away the synchronization between a phase and the next one."""
    changed = [
        replace(p, end="none", sync=np.zeros_like(p.sync)) for p in _these(run, chosen)[:-1] or _these(run, chosen)
    ]
    return run.changed(changed) if changed else None


def relaxed(run: Run, chosen: set[int]) -> Run | None:
    """Let processors wait for their neighbours in rank only."""
    return run.changed([replace(phase, end="neighbours") for phase in _these(run, chosen)])


def early(run: Run, chosen: set[int]) -> Run | None:
    """Send before the work that does not need to come first: nobody waits inside a phase any more."""
    changed = [replace(phase, inner=np.minimum(phase.inner, 0.0)) for phase in _these(run, chosen)]
    return run.changed(changed) if changed else None


def pipelined(run: Run, chosen: set[int]) -> Run | None:
    """Cut a pipeline into finer pieces: of its filling one part in ``PIECES`` is left."""
    changed = [replace(p, inner=np.where(p.inner > 0, p.inner / PIECES, p.inner)) for p in _these(run, chosen)]
    return run.changed(changed) if changed else None


def hidden_transfer(run: Run, chosen: set[int]) -> Run | None:
    """Let communication go on while the processors compute."""
    changed = [replace(p, transfer=np.maximum(p.transfer - HIDDEN * p.work, 0.0)) for p in _these(run, chosen)]
    return run.changed(changed) if changed else None


def hidden_io(run: Run, chosen: set[int]) -> Run | None:
    """Write in the background: what is written in one iteration goes on during the computation of the next."""
    work = sum((p.work.max(axis=0).sum() for p in _these(run, set())), start=0.0)
    total = sum((p.io.max(axis=0).sum() for p in _these(run, chosen, None)), start=0.0)
    left = max(1.0 - HIDDEN * work / total, 0.0) if total else 1.0
    return run.changed([replace(phase, io=phase.io * left) for phase in _these(run, chosen, None)])


def shared_io(run: Run, chosen: set[int]) -> Run | None:
    """Let all processors write their part of what one of them writes."""
    changed = [replace(p, io=np.broadcast_to(p.io.mean(axis=0), p.io.shape).copy()) for p in _these(run, chosen, None)]
    return run.changed(changed)


CHANGES: Final[Mapping[tuple[str, str], Change]] = {
    ("rebalance", "ranks"): decomposed,
    ("rebalance", "phases"): per_phase,
    ("rebalance", "each phase"): per_phase,
    ("rebalance", "critical phase"): critical,
    ("rebalance", "iterations"): followed,
    ("rebalance", "periods"): per_phase,
    ("schedule", "dynamic"): scheduled,
    ("schedule", "subdomains"): scheduled,
    ("serial", "parallel"): spread_serial,
    ("serial", "overlapped"): overlapped_serial,
    ("threads", "everywhere"): threaded,
    ("barriers", "removed"): unguarded,
    ("barriers", "merged"): unguarded,
    ("barriers", "fuzzy"): relaxed,
    ("barriers", "pairwise"): relaxed,
    ("barriers", "relaxed"): relaxed,
    ("phases", "fused"): fused,
    ("regions", "merged"): counted.merged_regions,
    ("reductions", "fused"): repeated,
    ("collectives", "grouped"): repeated,
    ("collectives", "nonblocking"): hidden_transfer,
    ("messages", "grouped"): counted.grouped_messages,
    ("messages", "collective"): counted.grouped_messages,
    ("access", "blocks"): counted.grouped_messages,
    ("messages", "overlapped"): hidden_transfer,
    ("alltoall", "overlapped"): hidden_transfer,
    ("remote", "prefetched"): hidden_transfer,
    ("send", "early"): early,
    ("receive", "early"): early,
    ("pipeline", "finer"): pipelined,
    ("io", "collective"): counted.grouped_io,
    ("io", "buffered"): counted.grouped_io,
    ("io", "fewer files"): counted.grouped_io,
    ("io", "asynchronous"): hidden_io,
    ("io", "parallel"): shared_io,
    ("fsync", "rare"): counted.rare_fsync,
}
