"""The changes that rules name under ``change``, carried out on a measured run.

Each takes a run and the numbers of the phases that it is about (all, if there are none), and returns the changed run,
or None where the profile does not hold what the change is about. What is assumed of a remedy stands here and in
docs/plugins/simulation.md, nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.loads.computation import compute_alone, cores_per_processor
from advisor_simulation.whatif import call_grouping, sharing_work

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray
    from advisor_simulation.whatif.measured_run import MeasuredRun, PhaseRun

    Change = Callable[[MeasuredRun, set[int]], MeasuredRun | None]

#: The share of communication or files that computation of the same instance can hide: not all of it is ready in time.
HIDDEN: Final = 0.8
#: The pieces into which a pipeline is cut for each processor in it.
PIECES: Final = 4
#: The pieces that ranks fetch themselves, for each rank in each phase: with fewer than ten the last ones decide, with
#: a hundred messages and lost locality do; this is their geometric mean.
RANK_PIECES: Final = 32
#: The part of the output of a phase that nothing follows, where it is not known how often that writes.
LAST: Final = 0.2
#: Largest over mean work of the ranks, from which on a phase is uneven.
UNEVEN: Final = 1.02
#: A phase with less work than this share of its time only synchronizes.
EMPTY: Final = 0.01


def _select_phases(run: MeasuredRun, chosen: set[int], serial: bool | None = False) -> list[PhaseRun]:
    """Return the phases that are meant, of one kind or (None) of both."""
    return [p for p in run.phases if (not chosen or p.number in chosen) and (serial is None or p.serial == serial)]


def _scale_phase(phase: PhaseRun, factor: FloatArray) -> PhaseRun:
    """Return the phase with each processor's work times its factor, and the same total."""
    total = float((phase.work * factor).sum())
    factor = factor * (float(phase.work.sum()) / total if total > 0 else 1.0)
    return replace(phase, work=phase.work * factor, alone=phase.alone * factor)


def _divide_loads(wanted: FloatArray, have: FloatArray) -> FloatArray:
    """Return wanted / have, 1 where there is nothing."""
    return np.divide(wanted, have, out=np.ones_like(have), where=have > 0)


def mean_by_rank(run: MeasuredRun, work: FloatArray) -> FloatArray:
    """Return the mean of a rank's threads for each of its processors, of an array (Q, …)."""
    masters, inverse = np.unique(run.team.master, return_inverse=True)
    total = np.zeros((len(masters), *work.shape[1:]))
    np.add.at(total, inverse, work)
    mean: FloatArray = (total / np.bincount(inverse).reshape(-1, *[1] * (work.ndim - 1)))[inverse]
    return mean


def decompose_by_work(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Cut the domain by measured work: one factor for each rank, that makes the ranks' totals equal.

    All uneven phases share the decomposition. Phases whose ranks have equal work keep it: it does not depend on the
    cut.
    """
    phases = [phase for phase in _select_phases(run, chosen) if _is_uneven(run, phase)]
    if not phases:
        return run
    if len(phases) == 1:
        return run.with_phases([_balance_phase(run, phases[0])])
    total = np.sum([_sum_by_rank(run, phase) for phase in phases], axis=0)
    factor = _divide_loads(np.full_like(total, total.mean()), total)[:, None]
    return run.with_phases([_scale_phase(phase, factor) for phase in phases])


def _sum_by_rank(run: MeasuredRun, phase: PhaseRun) -> FloatArray:
    """Return the work of each processor's rank in all instances, a mean over its threads, without disturbances."""
    return mean_by_rank(run, _find_structure(phase.work).sum(axis=1))


def _is_uneven(run: MeasuredRun, phase: PhaseRun) -> bool:
    total = _sum_by_rank(run, phase)
    return float(total.max()) > UNEVEN * float(total.mean())


def give_to_first(total: FloatArray, first: npt.NDArray[np.bool_]) -> float:
    """Return the part of the others' work that makes the first rank's as much as their mean; 0 where it has as much.

    ``total`` (Q,) is the work of each processor, ``first`` (Q,) which are those of the first rank.
    """
    others = float(total[~first].mean()) if first.any() and not first.all() else 0.0
    return max(1.0 - float(total[first].mean()) / others, 0.0) * float(first.mean()) if others > 0 else 0.0


def use_first_rank(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Let the first rank have as much work as the mean of the others, who keep their proportions among themselves."""
    first = np.array([processor.rank == 0 for processor in run.profile.processors])
    changed = []
    for phase in _select_phases(run, chosen):
        given = give_to_first(_sum_by_rank(run, phase), first)
        if given > 0:
            more = given * phase.work[~first].sum(axis=0) / np.count_nonzero(first)
            work = np.where(first[:, None], phase.work + more, phase.work * (1.0 - given))
            alone = np.where(first[:, None], phase.alone, phase.alone * (1.0 - given))
            changed.append(replace(phase, work=work, alone=alone))
    return run.with_phases(changed) if changed else run


def balance_each_phase(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Decompose each phase separately, constant over the iterations."""
    return run.with_phases([_balance_phase(run, phase) for phase in _select_phases(run, chosen)])


def _balance_phase(run: MeasuredRun, phase: PhaseRun) -> PhaseRun:
    """Return a phase in which each rank has the same total; idle ranks get their part of each iteration."""
    total = _sum_by_rank(run, phase)
    if (total < EMPTY * total.max()).any():
        return replace(phase, work=np.broadcast_to(phase.work.mean(axis=0), phase.work.shape).copy())
    return _scale_phase(phase, _divide_loads(np.full_like(total, total.mean()), total)[:, None])


def balance_critical_phase(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Balance the phase that loses most, and let the others have its decomposition."""
    phases = _select_phases(run, set())
    if not phases:
        return None
    lost = [float(phase.work.sum(axis=1).max() - phase.work.sum(axis=1).mean()) for phase in phases]
    total = mean_by_rank(run, phases[int(np.argmax(lost))].work.sum(axis=1))
    factor = _divide_loads(np.full_like(total, total.mean()), total)[:, None]
    return run.with_phases([_scale_phase(phase, factor) for phase in phases])


def follow_loads(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Cut the domain anew each iteration by the loads of the one before."""
    changed = []
    for phase in _select_phases(run, chosen):
        total = mean_by_rank(run, phase.work)
        factor = np.ones_like(total)
        factor[:, 1:] = _divide_loads(np.broadcast_to(total[:, :-1].mean(axis=0), total[:, 1:].shape), total[:, :-1])
        changed.append(_scale_phase(phase, factor))
    return run.with_phases(changed)


def schedule_dynamically(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Hand out work on demand: threads share inside their rank if there are threads, else all share.

    Ranks fetch pieces, ``RANK_PIECES`` for each. Where ranks differ by more than their threads do, they share as well.
    What only one thread has a function for stays with it.
    """
    changed = []
    for phase in _select_phases(run, chosen):
        if run.team.is_hybrid:
            own = phase.work - phase.alone
            structure = _find_structure(own)
            by_rank = mean_by_rank(run, structure)
            among_threads = float((structure.max(axis=0) - by_rank.max(axis=0)).sum())
            if float((by_rank.max(axis=0) - by_rank.mean(axis=0)).sum()) > among_threads:
                even = _fetch_work(replace(phase, work=own)).work
            else:
                even = _share_by_rank(run, own, np.minimum(run.find_single_work(phase), own))
            changed.append(replace(phase, work=phase.alone + even))
        else:
            changed.append(_fetch_work(phase))
    return run.with_phases(changed)


def _share_by_rank(run: MeasuredRun, work: FloatArray, kept: FloatArray) -> FloatArray:
    """Return the work (Q, I) if threads of a rank that are done with what they keep of it share the rest."""
    shared = np.empty_like(work)
    for master in np.unique(run.team.master):
        mine = run.team.master == master
        least = np.sort(kept[mine], axis=0)
        helping = np.arange(1, len(least) + 1)[:, None]
        level = ((work - kept)[mine].sum(axis=0) + np.cumsum(least, axis=0)) / helping
        last = np.maximum((level >= least).sum(axis=0) - 1, 0)
        shared[mine] = np.maximum(kept[mine], level[last, np.arange(level.shape[1])])
    return shared


def _find_structure(work: FloatArray) -> FloatArray:
    """Return the recurring part of work (Q, I); noise stays with its processor, whoever does the work."""
    from advisor_simulation.whatif.traced.noise import split_noise  # and nothing that replays traces before

    return split_noise(work, work.shape[1])[0]


def _fetch_work(phase: PhaseRun) -> PhaseRun:
    """Return a phase whose work the ranks fetch in pieces."""
    structure = _find_structure(phase.work)
    return replace(phase, work=fetch_pieces(structure) + phase.work - structure)


def fetch_pieces(work: FloatArray) -> FloatArray:
    """Return when each rank is done (Q, I) where whoever is free fetches the next of ``RANK_PIECES`` for each rank.

    ``work`` (Q, I) is who has it before; pieces come in that order, and a rank has equal ones.
    """
    free = np.zeros(work.shape[::-1])
    instances = np.arange(len(free))
    for seconds in work / RANK_PIECES:
        for _ in range(RANK_PIECES):
            free[instances, free.argmin(axis=1)] += seconds
    return free.T


def spread_serial(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Share what one processor does alone by all of them."""
    phases = _select_phases(run, chosen, True)
    changed = [
        replace(p, work=np.broadcast_to(p.work.max(axis=0) / run.processors, p.work.shape).copy()) for p in phases
    ]
    return run.with_phases(changed) if changed else None


def overlap_serial(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Let a serial part run beside the phase that follows it."""
    phases = list(run.phases)
    for place, phase in enumerate(phases[:-1]):
        follower = phases[place + 1]
        same = phase.work.shape == follower.work.shape
        if phase.serial and same and (not chosen or phase.number in chosen):
            room = np.maximum(phase.durations() - follower.durations(), 0.0)
            nothing = np.zeros_like(phase.work)
            hidden = replace(phase, work=nothing, transfer=nothing, io=nothing, sync=nothing, inner=room)
            return run.with_phases([hidden])
    return None


def share_among_threads(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Share what the first threads do alone by all threads of their rank, but for text, memory and files."""
    if not run.team.is_hybrid:
        return None
    threads = np.bincount(run.team.master, minlength=run.processors)[run.team.master]
    helping = np.maximum(threads * cores_per_processor(run.profile), 1.0)
    changed = []
    for phase in _select_phases(run, chosen):
        whole, left = compute_alone(run.profile, phase.number)
        alone = phase.alone * (1.0 - np.divide(left, whole, out=np.zeros_like(whole), where=whole > 0))
        part = alone / helping[:, None]
        changed.append(replace(phase, work=phase.work - alone + part, alone=phase.alone - alone))
    return run.with_phases(changed)


def drop_empty_phases(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Drop synchronizations without any work before them."""
    empty = {phase.number for phase in _select_phases(run, chosen) if is_empty_phase(phase)}
    return run.without_phases(empty) if empty else fuse_phases(run, chosen)


def is_empty_phase(phase: PhaseRun) -> bool:
    """Return whether a phase only synchronizes, or waits for one collective."""
    lasted = float(phase.durations().sum())
    return lasted > 0 and float(phase.work.max(axis=0).sum() + phase.io.sum()) < EMPTY * lasted


def merge_repeated(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Make one collective call of several in a row: what lies between them is nothing but the calls."""
    empty = [phase for phase in run.phases if is_empty_phase(phase) and not phase.serial and len(phase.start) > 1]
    return run.without_phases({phase.number for phase in empty}) if empty else None


def fuse_phases(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Take away the synchronization between a phase and the next one."""
    changed = [
        replace(p, end="none", sync=p.sync - run.sum_closing_sync(p))
        for p in _select_phases(run, chosen)[:-1] or _select_phases(run, chosen)
    ]
    return run.with_phases(changed) if changed else None


def relax_barriers(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Let processors wait for their neighbours in rank only."""
    return run.with_phases([replace(phase, end="neighbours") for phase in _select_phases(run, chosen)])


def send_early(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Send before work that can wait: inside a phase, only locks are waited for."""
    changed = [
        replace(phase, inner=np.minimum(phase.inner, call_grouping.find_lock_waits(run, phase)))
        for phase in _select_phases(run, chosen)
    ]
    return run.with_phases(changed) if changed else None


def refine_pipelines(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Cut a pipeline into finer pieces: of its filling one part in ``PIECES`` is left, and all waiting for locks."""
    changed = []
    for phase in _select_phases(run, chosen):
        filling = np.maximum(phase.inner - call_grouping.find_lock_waits(run, phase), 0.0)
        changed.append(replace(phase, inner=phase.inner - filling * (1 - 1 / PIECES)))
    return run.with_phases(changed) if changed else None


def hide_transfer(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Let communication go on while the processors compute."""
    changed = [replace(p, transfer=np.maximum(p.transfer - HIDDEN * p.work, 0.0)) for p in _select_phases(run, chosen)]
    return run.with_phases(changed) if changed else None


def hide_io(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Write in the background: each write overlaps the computation up to the next one.

    So nothing hides what is written last, unless computation follows: of a phase that comes once, and of which nothing
    tells how often it writes, ``LAST``. What the operating system takes stays.
    """
    phases = _select_phases(run, chosen, None)
    starts = np.concatenate([phase.start for phase in run.phases])
    order = np.argsort(starts, kind="stable")
    work = np.concatenate([phase.work.max(axis=0) for phase in run.phases])[order]
    starts, done = starts[order], np.r_[0.0, np.cumsum(work)]
    passed = [call_grouping.find_moved_data(run, phase) for phase in phases]
    busy = [phase.start[seconds.max(axis=0) > 0] for phase, seconds in zip(phases, passed, strict=True)]
    written = np.sort(np.concatenate(busy or [np.zeros(0)]))
    changed = []
    for phase, seconds in zip(phases, passed, strict=True):
        io, own = seconds.max(axis=0), phase.work.max(axis=0)
        outputs = max((phase.outputs or phase.passes) / len(phase.start), 1.0)
        last = LAST if outputs == len(phase.start) == 1 else 1.0 / outputs
        until = np.r_[written, np.inf][np.searchsorted(written, phase.start, side="right")]
        begin, end = (np.searchsorted(starts, time, side="right") for time in (phase.start, until))
        inside = np.minimum(HIDDEN * own, io) * (1.0 - last)
        behind = np.minimum(HIDDEN * (done[end] - done[begin]), io * last)
        left = np.divide(io - inside - behind, io, out=np.ones_like(io), where=io > 0)
        changed.append(replace(phase, io=phase.io - seconds * (1.0 - left)))
    return run.with_phases(changed)


def share_io(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Let all processors take their part of what one or some of them write; what the operating system takes stays."""
    changed = []
    for phase in _select_phases(run, chosen, None):
        own = call_grouping.find_io(run, phase)
        changed.append(replace(phase, io=phase.io - own + own.mean(axis=0)))
    return run.with_phases(changed)


CHANGES: Final[Mapping[tuple[str, str], Change]] = {
    ("rebalance", "ranks"): decompose_by_work,
    ("rebalance", "first rank"): use_first_rank,
    ("rebalance", "phases"): balance_each_phase,
    ("rebalance", "each phase"): balance_each_phase,
    ("rebalance", "critical phase"): balance_critical_phase,
    ("rebalance", "iterations"): follow_loads,
    ("rebalance", "periods"): balance_each_phase,
    ("schedule", "dynamic"): schedule_dynamically,
    ("schedule", "subdomains"): schedule_dynamically,
    ("serial", "parallel"): spread_serial,
    ("serial", "overlapped"): overlap_serial,
    ("threads", "everywhere"): share_among_threads,
    ("barriers", "removed"): drop_empty_phases,
    ("barriers", "merged"): drop_empty_phases,
    ("barriers", "fuzzy"): relax_barriers,
    ("barriers", "pairwise"): relax_barriers,
    ("barriers", "relaxed"): relax_barriers,
    ("phases", "fused"): fuse_phases,
    ("regions", "merged"): call_grouping.merge_regions,
    ("locks", "private"): call_grouping.remove_locks,
    ("workers", "processes"): sharing_work.leave_interpreter,
    ("jobs", "larger"): sharing_work.hand_over_more,
    ("arguments", "smaller"): sharing_work.send_less,
    ("reductions", "fused"): merge_repeated,
    ("collectives", "grouped"): merge_repeated,
    ("collectives", "nonblocking"): hide_transfer,
    ("messages", "grouped"): call_grouping.group_messages,
    ("messages", "collective"): call_grouping.group_messages,
    ("access", "blocks"): call_grouping.group_messages,
    ("messages", "overlapped"): hide_transfer,
    ("alltoall", "overlapped"): hide_transfer,
    ("remote", "prefetched"): hide_transfer,
    ("send", "early"): send_early,
    ("receive", "early"): send_early,
    ("pipeline", "finer"): refine_pipelines,
    ("io", "collective"): call_grouping.group_io,
    ("io", "buffered"): call_grouping.group_io,
    ("io", "fewer files"): call_grouping.fewer_files,
    ("io", "asynchronous"): hide_io,
    ("io", "parallel"): share_io,
    ("io", "balanced"): share_io,
    ("fsync", "rare"): call_grouping.reduce_fsync,
    ("ranks", "cores"): sharing_work.start_fewer,
    ("sleep", "removed"): call_grouping.remove_sleep,
}
