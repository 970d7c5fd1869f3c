"""Faults with a strength, put into a program that has none.

Each takes a program, one of its phases and a strength, roughly the share of the run that it costs, and returns the
program with the fault, or None where the phase cannot have it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lab.adaptive import Adaptive
from lab.collectives import Pieces, Serial, Transpose
from lab.exchanges import Exchange, Wavefront, stencil
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
from lab.world import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.random import Generator

    from lab.patterns import Phase
    from lab.world import Code

    Fault = Callable[[Code, Phase, float, Generator], Code | None]

#: A run with small messages sends about so many.
MESSAGES: Final = 12000
#: Runs that are made shorter, so that as few messages as this matter, still compute for so long.
SHORTEST_S: Final = 0.15


def _loaded(code: Code, phase: Phase, kinds: tuple[str, ...], strength: float, generator: Generator) -> Code | None:
    if isinstance(phase, Tasks | Coupled | Served) or phase.work_s == 0 or phase.load.strength or code.ranks == 1:
        return None
    kind = kinds[int(generator.integers(len(kinds)))]
    load = Load(kind, strength, int(generator.integers(1 << 30)))
    return code.changed(phase.name, replace(phase, load=load))


def imbalance(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Give some ranks more work than others, the same in each iteration."""
    return _loaded(code, phase, ("linear", "heavy", "quarter", "fixed"), strength, generator)


def wandering_load(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Give another rank more work in each iteration."""
    return _loaded(code, phase, ("random", "wandering"), strength, generator)


def growing_load(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Let the work of one rank grow from iteration to iteration."""
    return _loaded(code, phase, ("growing",), 2 * strength, generator)


def late_sender(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Let half of the ranks do independent work before they send, while their partners wait and do it afterwards."""
    if not isinstance(phase, Exchange) or phase.style == "chain":
        return None
    return code.changed(phase.name, replace(phase, late=50, inner=min(strength, 0.8), boundary=0.1, wait_early=True))


def early_wait(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Wait for large messages although there is work that does not need them."""
    if not isinstance(phase, Exchange) or phase.style == "chain" or phase.work_s == 0:
        return None
    network = code.machine.network
    bandwidth = network.bandwidth if code.machine.ranks_per_host else network.inner_bandwidth
    size = max(int(strength * phase.work_s * bandwidth), network.eager_B * 2)
    return code.changed(phase.name, replace(phase, size_B=size, inner=0.7, boundary=0.1, wait_early=True))


def small_messages(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Send many small messages to each neighbour in the place of one."""
    if not isinstance(phase, Exchange) or phase.style == "chain" or code.ranks > 24:
        return None
    partners = max(2 * phase.dimensions, 2)
    cost = 2 * partners * code.machine.network.overhead_s
    most = max(MESSAGES // (code.ranks * code.iterations * partners), 2)
    wanted = cost * most / strength
    total = sum(each.work_s for each in code.phases)
    shorter = min(max(wanted / phase.work_s, SHORTEST_S / (total * code.iterations)), 1.0)
    work = phase.work_s * shorter
    fragments = min(max(round(strength * work / cost), 2), most)
    noise = replace(code.noise, disturbance_s=code.noise.disturbance_s * shorter)
    less = replace(code, noise=noise, phases=scaled(code.phases, shorter))
    changed = replace(phase, fragments=fragments, size_B=max(phase.size_B, 64 * fragments), work_s=work)
    return less.changed(phase.name, changed)


def sends_in_a_chain(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Let each rank send to the next before it works and receives: large or synchronous sends wait for each other."""
    if not isinstance(phase, Exchange) or code.ranks > 64 or phase.work_s == 0:
        return None
    inner = min(strength / max(code.ranks - 2, 1), 0.8)
    changed = replace(phase, style="chain", inner=inner, boundary=0.0, dimensions=1)
    if generator.random() < 0.5:
        return code.changed(phase.name, replace(changed, synchronous=True))
    return code.changed(phase.name, replace(changed, size_B=2 * code.machine.network.eager_B))


def coarse_pipeline(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Cut a pipeline into too few blocks."""
    if not isinstance(phase, Wavefront):
        return None
    depth = sum(each - 1 for each in _sides(code, phase))
    return code.changed(phase.name, replace(phase, blocks=max(round(depth * (1 - strength) / strength / 2), 1)))


def _sides(code: Code, phase: Wavefront) -> list[int]:
    return [
        max(stencil(code.ranks, phase.dimensions, rank, False)[2 * way][2] for rank in range(code.ranks)) + 1
        for way in range(phase.dimensions)
    ]


def needless_barriers(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Put a barrier after each piece of uneven work, or barriers behind a phase whose load wanders."""
    if isinstance(phase, Pieces):
        return code.changed(phase.name, replace(phase, call="MPI_Barrier", spread=min(2 * strength, 0.9)))
    closed = replace(phase, close=phase.close or "MPI_Barrier", needless=1 + int(10 * strength))
    return wandering_load(code, closed, strength, generator)


def many_reductions(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Reduce after each piece of work what could be reduced at once."""
    if not isinstance(phase, Pieces):
        return None
    return code.changed(phase.name, replace(phase, count=max(4, int(60 * strength)), spread=min(strength, 0.5)))


def blocking_reduction(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Wait at once for the result of a reduction that is needed an iteration later, under a wandering load."""
    if phase.close != "MPI_Allreduce":
        return None
    return wandering_load(code, replace(phase, later=True), strength, generator)


def large_transpose(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Transpose so much data that it takes this share, without overlap."""
    if not isinstance(phase, Transpose):
        return None
    network = code.machine.network
    bandwidth = network.bandwidth if code.machine.ranks_per_host else network.inner_bandwidth
    return code.changed(
        phase.name, replace(phase, size_B=max(int(strength * phase.work_s * bandwidth / code.ranks), 64))
    )


def serial_part(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Let the first rank compute alone."""
    total = sum(each.work_s for each in code.phases)
    return code.changed(phase.name, replace(phase, serial_s=strength * total)) if isinstance(phase, Serial) else None


def idle_master(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Let the first rank only hand out tasks, whose costs differ in a way that equal numbers do not balance."""
    if not isinstance(phase, Tasks):
        return None
    return code.changed(phase.name, replace(phase, mode="static", works=False, slope=strength))


def busy_master(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Let the first rank process every result."""
    if not isinstance(phase, Tasks):
        return None
    seconds = (0.8 + strength) * phase.work_s / (phase.per_rank * max(code.ranks - 1, 1))
    return code.changed(phase.name, replace(phase, mode="demand", result_s=seconds))


def static_loop(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Schedule a loop statically whose iterations cost differently."""
    if not isinstance(phase, Team):
        return None
    kind = ("linear", "quarter", "random")[int(generator.integers(3))]
    skew = Load(kind, min(2 * strength, 0.9), int(generator.integers(1 << 30)))
    return code.changed(phase.name, replace(phase, skew=skew, schedule="static"))


def serial_threads(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Let the first thread compute alone between parallel regions."""
    if not isinstance(phase, Team):
        return None
    return code.changed(phase.name, replace(phase, alone=strength / (code.threads - 1 + strength)))


def many_forks(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Start a team for each small loop."""
    if not isinstance(phase, Team):
        return None
    teams = code.machine.teams
    forks = int(strength * phase.work_s / (teams.fork_s + teams.join_s))
    return code.changed(phase.name, replace(phase, forks=min(max(forks, 2), 40)))


def thread_lock(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Let threads wait for a lock."""
    if not isinstance(phase, Team):
        return None
    return code.changed(phase.name, replace(phase, locked=min(strength / max(code.threads - 1, 1), 0.5)))


def one_writer(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Let the first rank collect and write everything."""
    if not isinstance(phase, Output):
        return None
    seconds = strength * sum(each.work_s for each in code.phases) * phase.every
    size = max(int(seconds * code.machine.storage.bandwidth / code.ranks), 64)
    return code.changed(phase.name, replace(phase, writer="one", size_B=size))


def small_writes(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Write in small pieces."""
    if not isinstance(phase, Output):
        return None
    seconds = strength * sum(each.work_s for each in code.phases) * phase.every
    pieces = min(max(int(seconds / code.machine.storage.operation_s), 4), 200)
    return code.changed(phase.name, replace(phase, pieces=pieces, size_B=max(phase.size_B, 64 * pieces)))


def frequent_fsync(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Force each piece to storage."""
    if not isinstance(phase, Output):
        return None
    seconds = strength * sum(each.work_s for each in code.phases) * phase.every
    pieces = max(int(seconds / code.machine.storage.sync_s), 1)
    return code.changed(phase.name, replace(phase, synced="each", pieces=max(pieces, 1), writer="all"))


def opened_each_time(code: Code, phase: Phase, _strength: float, _generator: Generator) -> Code | None:
    """Open and close files for each output."""
    return code.changed(phase.name, replace(phase, opens=True)) if isinstance(phase, Output) else None


def locked_file(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Let all write to one file under a lock."""
    if not isinstance(phase, Output):
        return None
    seconds = strength * sum(each.work_s for each in code.phases) * phase.every
    size = max(int(seconds * code.machine.storage.bandwidth / code.ranks), 64)
    return code.changed(phase.name, replace(phase, writer="locked", size_B=size))


def uneven_groups(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Give one of two coupled codes more work, and as many ranks as the other."""
    if not isinstance(phase, Coupled):
        return None
    share = 0.5 * (1.0 + strength * float(generator.choice([-1.0, 1.0])))
    return code.changed(phase.name, replace(phase, work_share=share))


def uneven_members(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Let members of an ensemble cost differently, so that groups with equally many of them end early."""
    if not isinstance(phase, Ensemble):
        return None
    kind = ("linear", "fixed", "random")[int(generator.integers(3))]
    return code.changed(phase.name, replace(phase, costs=Load(kind, min(2 * strength, 0.9), code.seed)))


def needless_fences(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Order puts by fences of all ranks, under a wandering load."""
    if not isinstance(phase, OneSided):
        return None
    return wandering_load(code, replace(phase, fenced=True), strength, generator)


def rare_repartition(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Never cut a mesh anew whose refined part moves."""
    if not isinstance(phase, Adaptive):
        return None
    load = Load("moving", 2 * strength, phase.load.seed)
    return code.changed(phase.name, replace(phase, load=load, every=0))


def waited_output(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Wait until a rank that only writes has written."""
    if not isinstance(phase, Served):
        return None
    size = max(int(strength * phase.work_s / phase.clients * code.machine.storage.bandwidth), 64)
    return code.changed(phase.name, replace(phase, buffers=1, size_B=size))


def late_results(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Let half of the ranks do tasks first whose results nobody waits for."""
    if not isinstance(phase, TaskGraph):
        return None
    return code.changed(phase.name, replace(phase, late=50, wanted=1.0 - min(2 * strength, 0.8)))


def blocks_after_work(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Send large blocks round a ring behind the work with them, though that changes none."""
    if not isinstance(phase, Ring):
        return None
    network = code.machine.network
    bandwidth = network.bandwidth if code.machine.ranks_per_host else network.inner_bandwidth
    size = max(int(strength * phase.work_s / code.ranks * bandwidth), 64)
    return code.changed(phase.name, replace(phase, size_B=size, ahead=False))


def skewed_buckets(code: Code, phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Cut the range of keys that are not spread evenly into buckets of one width."""
    if not isinstance(phase, SampleSort):
        return None
    kind = ("linear", "heavy", "quarter", "fixed")[int(generator.integers(4))]
    return code.changed(phase.name, replace(phase, buckets=Load(kind, 2 * strength, code.seed)))


def uneven_levels(code: Code, phase: Phase, strength: float, _generator: Generator) -> Code | None:
    """Give boxes to ranks by all their work together, so that each level is uneven."""
    return code.changed(phase.name, replace(phase, uneven=strength)) if isinstance(phase, Subcycled) else None


def slow_core(code: Code, _phase: Phase, strength: float, generator: Generator) -> Code | None:
    """Let one rank run on a slow core."""
    rank = int(generator.integers(code.ranks))
    return replace(code, noise=replace(code.noise, slow_rank=rank, slowness=1.0 + strength))


def oversubscription(code: Code, _phase: Phase, _strength: float, _generator: Generator) -> Code | None:
    """Start more ranks than there are cores."""
    each = code.machine.ranks_per_host or code.ranks
    if each < 4 or code.threads > 1 or code.ranks % each:
        return None
    return replace(code, machine=replace(code.machine, ranks_per_host=each, cores=each // 2))


FAULTS: Final[Mapping[str, Fault]] = {
    each.__name__: each
    for each in (
        imbalance, wandering_load, growing_load, late_sender, early_wait, small_messages, sends_in_a_chain,
        coarse_pipeline, needless_barriers, many_reductions, blocking_reduction, large_transpose, serial_part,
        idle_master, busy_master, static_loop, serial_threads, many_forks, thread_lock, one_writer, small_writes,
        frequent_fsync, opened_each_time, locked_file, slow_core, oversubscription, uneven_groups, uneven_members,
        needless_fences, rare_repartition, waited_output, late_results, blocks_after_work, skewed_buckets,
        uneven_levels,
    )
}  # fmt: skip
