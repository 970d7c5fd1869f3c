"""Remedies as changes of a program: the truth of a gain is the run of the changed program.

Each takes a program and one of its phases and returns the changed phase, or None where there is nothing to change.
Which action of the rules means which remedy is said in ``actions.yaml``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lab.adaptive import Adaptive
from lab.collectives import Pieces, Serial, Transpose
from lab.exchanges import Exchange, Wavefront
from lab.groups import Coupled, Ensemble
from lab.loads import Load
from lab.masters import Tasks
from lab.one_sided import OneSided
from lab.output import Output
from lab.refinement import Subcycled
from lab.rings import Ring
from lab.servers import Served
from lab.sorting import SampleSort
from lab.task_graphs import TaskGraph
from lab.teams import Team
from lab.world import Code, scaled, work_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lab.patterns import Phase

    Remedy = Callable[[Code, Phase], Phase | None]

#: Ranks whose work differs by less than this share of the mean are balanced.
EVEN: Final = 0.005
#: How many times finer a pipeline is cut, and how many tasks more a worker gets at a time.
FINER: Final = 4
#: What the eager limit is raised to.
EAGER_B: Final = 1 << 20


def balance(code: Code, phase: Phase) -> Phase | None:
    """Cut the domain by measured work, once for the whole run.

    Of tasks the master takes its part, too; coupled codes get ranks, and groups of ranks members, by their work; who
    only writes gets work as well.
    """
    if isinstance(phase, Coupled):
        fitting = replace(phase, rank_share=phase.work_share)
        if fitting.cut(code.ranks) != phase.cut(code.ranks):
            return fitting
    if isinstance(phase, Ensemble) and phase.costs.strength and phase.assigned == "equally":
        return replace(phase, assigned="measured")
    if isinstance(phase, Served) and (working := _let_servers_work(code, phase)):
        return balance(code, working) or working
    if isinstance(phase, SampleSort | Subcycled) and (even := _even_parts(phase)) != phase:
        return balance(code, even) or even
    if isinstance(phase, Tasks):
        if phase.mode == "static":
            return replace(phase, mode="measured", works=True)
        return replace(phase, mode="counter", works=True) if phase.mode == "demand" and not phase.result_s else None
    total = work_of(code, phase).sum(axis=1)
    uneven = total.mean() > 0 and total.max() > total.mean() * (1 + EVEN)
    return replace(phase, load=replace(phase.load, remedy="measured")) if uneven else None


def use_first_rank(code: Code, phase: Phase) -> Phase | None:
    """Let the first rank take its part of the tasks, which are divided as before."""
    if not isinstance(phase, Tasks) or phase.works:
        return None
    return balance(code, phase) if phase.mode == "demand" else replace(phase, works=True)


def _let_servers_work(code: Code, phase: Served) -> Served | None:
    """Let those who only write compute what they have time for; nothing where writing takes as long as computing."""
    if phase.works:
        return None
    storage, served = code.machine.storage, phase.find_clients(code.ranks)
    once_s = storage.operation_s + phase.size_B / storage.bandwidth
    busy_s = once_s * max(max(map(len, served.values())), (code.ranks - len(served)) / storage.servers)
    part = 1.0 - busy_s / phase.work_s
    return replace(phase, works=part) if part > 0 else None


def _even_parts(phase: SampleSort | Subcycled) -> SampleSort | Subcycled:
    """Return a phase with splitters that make buckets equal, or with the boxes of each level shared evenly."""
    return replace(phase, buckets=Load()) if isinstance(phase, SampleSort) else replace(phase, uneven=0.0)


def schedule_on_demand(code: Code, phase: Phase) -> Phase | None:
    """Let ranks that are free take the next piece of work."""
    if isinstance(phase, Tasks):
        return replace(phase, mode="counter", works=True) if phase.mode in ("static", "measured") else None
    if isinstance(phase, Ensemble) and phase.costs.strength and phase.assigned != "demand":
        return replace(phase, assigned="demand")
    work = work_of(code, phase)
    uneven = work.mean() > 0 and (work.max(axis=0) > work.mean(axis=0) * (1 + EVEN)).any()
    changed = replace(phase, load=replace(phase.load, remedy="demand")) if uneven else phase
    if isinstance(changed, Pieces):
        changed = replace(changed, spread=0.0)
    if isinstance(changed, SampleSort | Subcycled):
        changed = _even_parts(changed)
    return changed if changed != phase else None


def schedule_loops(_code: Code, phase: Phase) -> Phase | None:
    """Let threads that are free take the next chunk of a loop."""
    if isinstance(phase, Team) and phase.schedule == "static" and phase.skew.strength > 0:
        return replace(phase, schedule="dynamic")
    return None


def repartition(code: Code, phase: Phase) -> Phase | None:
    """Cut the domain again, four times in the run, by the loads since the last time."""
    period = max(code.iterations // 5, 2)
    again = phase.load.remedy == "repeated" and phase.load.period <= period
    if isinstance(phase, Tasks | Team | Coupled | Ensemble) or again or balance(code, phase) is None:
        return None
    changed = replace(phase, load=replace(phase.load, remedy="repeated", period=period))
    return replace(changed, every=period) if isinstance(changed, Adaptive) else changed


def send_early(_code: Code, phase: Phase) -> Phase | None:
    """Send before the work that the messages do not depend on, and post receives before it."""
    if isinstance(phase, TaskGraph):
        return replace(phase, late=0) if phase.late else None
    if not isinstance(phase, Exchange) or not (phase.late or phase.style == "chain"):
        return None
    return replace(phase, late=0, style="nonblocking" if phase.style == "chain" else phase.style)


def receive_early(_code: Code, phase: Phase) -> Phase | None:
    """Post receives before the work, so that no sender waits for them."""
    if not isinstance(phase, Exchange) or not (phase.synchronous or phase.style == "chain"):
        return None
    waits_late = phase.style == "chain"  # it receives behind the work that comes after sending
    return replace(phase, synchronous=False, style="nonblocking", wait_early=phase.wait_early and not waits_late)


def overlap(_code: Code, phase: Phase) -> Phase | None:
    """Wait for messages behind the work that does not need them."""
    if isinstance(phase, Ring):
        return None if phase.ahead else replace(phase, ahead=True)
    if not isinstance(phase, Exchange) or not phase.inner or phase.style == "chain":
        return None
    changed = replace(phase, style="nonblocking", synchronous=False, wait_early=False)
    return changed if changed != phase else None


def group_messages(_code: Code, phase: Phase) -> Phase | None:
    """Send one message in the place of many, and hand out more tasks at a time."""
    if isinstance(phase, Tasks) and phase.mode == "demand":
        return replace(phase, batch=phase.batch * FINER)
    return replace(phase, fragments=1) if isinstance(phase, Exchange) and phase.fragments > 1 else None


def use_neighbor_collective(_code: Code, phase: Phase) -> Phase | None:
    """Exchange with all neighbours in one call."""
    if not isinstance(phase, Exchange) or (phase.fragments == 1 and phase.style == "nonblocking"):
        return None
    return replace(phase, fragments=1, style="nonblocking", synchronous=False) if phase.style != "chain" else None


def cut_finer(_code: Code, phase: Phase) -> Phase | None:
    """Cut the work of a pipeline into more blocks."""
    return replace(phase, blocks=phase.blocks * FINER) if isinstance(phase, Wavefront) else None


def fuse_reductions(_code: Code, phase: Phase) -> Phase | None:
    """Reduce everything in one call."""
    if isinstance(phase, Pieces) and phase.call == "MPI_Allreduce" and phase.count > 1 and not phase.fused:
        return replace(phase, fused=True)
    return None


def use_nonblocking_collectives(_code: Code, phase: Phase) -> Phase | None:
    """Reduce in the background where the result is needed an iteration later."""
    return replace(phase, lag=True) if phase.close == "MPI_Allreduce" and phase.later and not phase.lag else None


def merge_barriers(_code: Code, phase: Phase) -> Phase | None:
    """Leave one of several barriers in a row."""
    return replace(phase, needless=0) if phase.needless else None


def drop_barriers(_code: Code, phase: Phase) -> Phase | None:
    """Leave out all barriers: messages, or notices of neighbours, keep the order."""
    if isinstance(phase, OneSided) and phase.fenced:
        return replace(phase, fenced=False)
    close = "" if phase.close == "MPI_Barrier" else phase.close
    changed = replace(phase, close=close, needless=0)
    if isinstance(changed, Pieces) and changed.call == "MPI_Barrier":
        changed = replace(changed, fused=True)
    return changed if changed != phase else None


def overlap_alltoall(_code: Code, phase: Phase) -> Phase | None:
    """Transpose what is ready while the rest is computed."""
    return replace(phase, pieces=4) if isinstance(phase, Transpose) and phase.pieces == 1 else None


def parallelize(_code: Code, phase: Phase) -> Phase | None:
    """Share what one rank does alone; workers process their results themselves."""
    if isinstance(phase, Serial):
        return replace(phase, remedy="parallel")
    return replace(phase, spread_results=True) if isinstance(phase, Tasks) and phase.result_s else None


def overlap_serial(_code: Code, phase: Phase) -> Phase | None:
    """Let a helper thread do the serial part beside the next phases."""
    return replace(phase, remedy="overlapped") if isinstance(phase, Serial) else None


def thread_everything(code: Code, phase: Phase) -> Phase | None:
    """Let all threads share what the first one does outside of parallel regions."""
    if code.threads == 1:
        return None
    if isinstance(phase, Team):
        return replace(phase, alone=0.0) if phase.alone else None
    return replace(phase, work_s=phase.work_s / code.threads) if phase.work_s else None


def merge_parallel_regions(_code: Code, phase: Phase) -> Phase | None:
    """Start the team once."""
    return replace(phase, forks=1) if isinstance(phase, Team) and phase.forks > 1 else None


def use_private_copies(_code: Code, phase: Phase) -> Phase | None:
    """Give each thread a copy of what the lock guards, and add the copies up."""
    return replace(phase, locked=0.0) if isinstance(phase, Team) and phase.locked else None


def write_large_blocks(_code: Code, phase: Phase) -> Phase | None:
    """Buffer small operations; who writes for others puts their data together."""
    if isinstance(phase, Served):
        return None if phase.gathered or phase.direct else replace(phase, gathered=True)
    return replace(phase, pieces=1) if isinstance(phase, Output) and phase.pieces > 1 else None


def write_collectively(_code: Code, phase: Phase) -> Phase | None:
    """Write collectively: large blocks of all ranks, without a lock."""
    if not isinstance(phase, Output) or not (phase.pieces > 1 or phase.writer != "all"):
        return None
    return replace(phase, pieces=1, writer="all")


def force_less_often(_code: Code, phase: Phase) -> Phase | None:
    """Force data to storage once for an output, or not at all where that was so."""
    if not isinstance(phase, Output) or phase.synced == "never":
        return None
    return replace(phase, synced="once" if phase.synced == "each" and phase.pieces > 1 else "never")


def write_in_background(_code: Code, phase: Phase) -> Phase | None:
    """Write while the program goes on."""
    if isinstance(phase, Served):
        return replace(phase, buffers=2) if phase.buffers == 1 and not phase.direct else None
    return replace(phase, background=True) if isinstance(phase, Output) and not phase.background else None


def write_in_parallel(code: Code, phase: Phase) -> Phase | None:
    """Let each rank write its own data."""
    if isinstance(phase, Served):
        return None if phase.direct else replace(phase, direct=True)
    if not isinstance(phase, Output) or phase.writer == "all":
        return None
    return replace(phase, writer="all", pieces=max(phase.pieces // code.ranks, 1))


def open_fewer_files(_code: Code, phase: Phase) -> Phase | None:
    """Keep files open."""
    return replace(phase, opens=False) if isinstance(phase, Output) and phase.opens else None


REMEDIES: Final[Mapping[str, Remedy]] = {
    each.__name__: each
    for each in (
        balance, use_first_rank, schedule_on_demand, schedule_loops, repartition, send_early, receive_early, overlap,
        group_messages, use_neighbor_collective, cut_finer, fuse_reductions, use_nonblocking_collectives,
        merge_barriers, drop_barriers, overlap_alltoall, parallelize, overlap_serial, thread_everything,
        merge_parallel_regions, use_private_copies, write_large_blocks, write_collectively, force_less_often,
        write_in_background, write_in_parallel, open_fewer_files,
    )
}  # fmt: skip


def start_fewer_ranks(code: Code) -> Code | None:
    """Start as many ranks as there are cores; each has more of the same work."""
    machine = code.machine
    if machine.cores is None or machine.ranks_per_host is None:
        return None
    each = max(machine.cores // code.threads, 1)
    ranks = code.ranks // machine.ranks_per_host * each
    fewer = replace(machine, ranks_per_host=each, cores=None)
    phases = scaled(code.phases, code.ranks / ranks)
    return replace(code, ranks=ranks, machine=fewer, phases=phases, once=scaled(code.once, code.ranks / ranks))


def raise_eager_limit(code: Code) -> Code | None:
    """Let the library send messages of up to a mebibyte at once."""
    largest = max((each.size_B for each in code.phases if isinstance(each, Exchange | Wavefront)), default=0)
    network = code.machine.network
    if not network.eager_B < largest <= EAGER_B:
        return None
    return replace(code, machine=replace(code.machine, network=replace(network, eager_B=EAGER_B)))


#: Remedies that are about the whole run.
RUN_REMEDIES: Final[Mapping[str, Callable[[Code], Code | None]]] = {
    each.__name__: each for each in (start_fewer_ranks, raise_eager_limit)
}


def apply(code: Code, remedy: str, phases: tuple[str, ...] = ()) -> Code | None:
    """Return the program with a remedy in these phases (all, if there are none), or None where it changes nothing."""
    if remedy in RUN_REMEDIES:
        return RUN_REMEDIES[remedy](code)
    changed = code
    for phase in code.phases:
        new = REMEDIES[remedy](code, phase) if not phases or phase.name in phases else None
        if new is not None:
            changed = changed.changed(phase.name, new)
    return changed if changed is not code else None
