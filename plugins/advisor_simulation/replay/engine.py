"""The fast engine: match and order once, then one sweep for a point, or for many points at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import AdvisorError
from advisor.model.lists import join_clauses, join_names
from advisor_simulation.replay import kernels
from advisor_simulation.replay.lowering import lower_program
from advisor_simulation.replay.numba_compiler import choose_compiled
from advisor_simulation.replay.program import Op, Program

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.steps import Steps

#: Ranks named in the message.
NAMED_AT_MOST = 8
#: Points that go through the steps together.
TOGETHER: Final = 64
#: Numbers in slots and clocks that stay close to the processor.
_CACHED: Final = 1 << 20


class DeadlockError(AdvisorError):
    """No rank can go on; ``waiting`` holds each rank that has not ended, and the call in which it waits."""

    def __init__(self, waiting: tuple[tuple[int, str], ...]) -> None:
        self.waiting = waiting
        named = join_clauses([f"rank {rank} in {call}" for rank, call in waiting], NAMED_AT_MOST)
        super().__init__(f"the replay ends in a deadlock: {named}")


@dataclass(frozen=True, slots=True)
class OrderedSteps:
    """Steps, how they are arranged in order of execution, and how many slots this takes; valid for one protocol."""

    steps: Steps
    arranged: kernels.ArrangedSteps
    slots: int


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """A replay at one point: the end of each step, and whether it waited for another rank until then."""

    end_s: FloatArray
    waited: npt.NDArray[np.bool_]
    clock: FloatArray

    @property
    def time_s(self) -> float:
        """The run time: the latest end of all ranks, seconds."""
        return float(self.clock.max(initial=0.0))


def order_steps(steps: Steps, program: Program | None, replays: int = 1) -> OrderedSteps:
    """Return the order of the steps; raises ``DeadlockError`` where ranks wait for each other.

    ``replays`` is how many times this will be asked: whether compiling pays. Without a ``program`` the error names no
    calls.
    """
    kind = steps.kind.copy()
    reads = _count_reads(steps)
    marks = _make_marks(steps, reads)
    room = int(reads.sum()) + steps.ranks
    stretch_rank = np.zeros(room, dtype=np.int32)
    begin, end = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    slot = np.zeros(len(kind), dtype=np.int32)
    place = np.zeros(steps.ranks, dtype=np.int64)
    count = choose_compiled(kernels.order_stretches, len(kind) * replays)(
        steps.first, kind, steps.condition, steps.messages, marks, slot, stretch_rank, begin, end, place
    )
    stuck = place < steps.first[1:]
    if stuck.any() and program is None:
        raise DeadlockError(())
    if stuck.any() and program is not None:
        last = np.searchsorted(np.maximum.accumulate(steps.last), place[stuck])
        raise build_error(program, last.tolist())
    stretches = stretch_rank[:count].copy(), begin[:count].copy(), end[:count].copy()
    arranged = kernels.ArrangedSteps(*stretches, np.empty_like(kind), np.empty_like(steps.value), np.empty_like(slot))
    choose_compiled(kernels.arrange_steps, len(kind) * replays)(arranged, kind, steps.value, slot)
    return OrderedSteps(steps, arranged, int(marks.counts[2]))


def _count_reads(steps: Steps) -> npt.NDArray[np.int32]:
    """Return how often each message and meeting is waited for (messages + meetings,)."""
    condition = steps.condition[(steps.kind & 15) >= kernels.RECEIVE]
    base = np.where(condition >= 2 * steps.messages, condition - steps.messages, condition >> 1)
    return np.bincount(base, minlength=steps.messages + len(steps.arrivals)).astype(np.int32)


def _make_marks(steps: Steps, left: npt.NDArray[np.int32]) -> kernels.OrderMarks:
    """Return the initial marks; the first two slots are for values that no step reads."""
    joint = len(steps.arrivals)
    return kernels.OrderMarks(
        waiter=np.full(2 * steps.messages + joint, -1, dtype=np.int32),
        next_waiter=np.full(steps.ranks, -1, dtype=np.int32),
        pending_reads=left,
        slots=np.full(steps.messages + joint, -1, dtype=np.int32),
        missing_arrivals=steps.arrivals.copy(),
        runnable=np.zeros(steps.ranks, dtype=np.int32),
        free=np.zeros(steps.messages + joint, dtype=np.int32),
        counts=np.array([0, 0, 2], dtype=np.int64),
    )


def prepare_program(program: Program, network: Network) -> OrderedSteps:
    """Return the program ready for sweeps with the protocols of ``network``; raises ``DeadlockError``."""
    return order_steps(lower_program(program, network), program)


def replay_steps(plan: OrderedSteps, network: Network, keep: bool = True, replays: int = 1) -> ReplayRun:
    """Return the replay at one point; without ``keep`` only the clocks of the ranks at the end.

    ``replays`` is how many times this will be asked: whether compiling pays.
    """
    steps = len(plan.arranged.kind)
    noted = steps if keep else 0
    end_s, waited, clock = np.zeros(noted), np.zeros(noted, dtype=bool), plan.steps.start_s.copy()
    sweep = choose_compiled(kernels.sweep_point, steps * replays)
    speeds = point_speeds(plan.steps, network)
    sweep(plan.arranged, speeds, clock, np.zeros(plan.slots), end_s, waited, keep)
    return ReplayRun(end_s, waited, clock)


def operation_ends(plan: OrderedSteps, found: ReplayRun, program: Program) -> FloatArray:
    """Return the end of every operation of the program, seconds."""
    last = plan.steps.last
    ends = np.repeat(plan.steps.start_s, np.diff(program.first))
    ends[last >= 0] = found.end_s[last[last >= 0]]
    return ends


def replay_times(
    plan: OrderedSteps, networks: Sequence[Network], done: Callable[[int], None] | None = None
) -> FloatArray:
    """Return the run time at each point (points,), seconds; the points share protocols, algorithms and nodes."""
    size = min(TOGETHER, max(_CACHED // max(plan.steps.ranks + plan.slots, 1), 4))
    result = np.zeros(len(networks))
    sweep = choose_compiled(kernels.sweep_points, len(plan.arranged.kind) * len(networks))
    for low in range(0, len(networks), size):
        part = networks[low : low + size]
        clock = np.repeat(plan.steps.start_s[:, None], len(part), axis=1)
        sweep(plan.arranged, _speeds_at(plan.steps, part), clock, np.zeros((plan.slots, len(part))))
        result[low : low + len(part)] = clock.max(axis=0)
        if done:
            done(low + len(part))
    return result


def point_speeds(steps: Steps, network: Network) -> kernels.Speeds:
    """Return what steps cost at one point."""
    return kernels.Speeds(*(column[:, 0].copy() for column in _speeds_at(steps, [network])))


def _speeds_at(steps: Steps, networks: Sequence[Network]) -> kernels.Speeds:
    """Return what they cost at several points, the last axis."""
    ratio = np.array([[network.cpu_ratio for network in networks]], dtype=np.float64)
    startup = np.array([network.latencies for network in networks], dtype=np.float64).T
    gap = np.ascontiguousarray(np.array([network.gaps for network in networks], dtype=np.float64).T)
    on_wire = np.array([network.startup == "wire" for network in networks])
    inner = steps.inner_shape.astype(np.int64)
    cost = steps.costs[:, :1] * startup[inner] + steps.costs[:, 1:] * gap[inner]
    return kernels.Speeds(ratio, np.where(on_wire, 0.0, startup), np.where(on_wire, startup, 0.0), gap, cost)


def to_bandwidth(seconds_per_byte: float) -> float:
    """Return bytes a second, infinite for 0 seconds per byte."""
    return 1.0 / seconds_per_byte if seconds_per_byte > 0 else math.inf


def build_error(program: Program, places: Sequence[int]) -> DeadlockError:
    """Return the error for the operations in which ranks are stuck."""
    rank = program.rank
    found = [(int(rank[at]), program.describe_operation(at)) for at in places]
    members = [at for at in places if program.op[at] == Op.JOIN]
    missing = {int(program.link[at]) for at in members}
    if missing:
        there = {link: {int(rank[at]) for at in members if int(program.link[at]) == link} for link in missing}
        comm = program.collectives.comm
        lost = {link: sorted(set(program.communicators[int(comm[link])]) - there[link]) for link in missing}
        calls = {int(rank[at]): lost[int(program.link[at])] for at in members}
        found = [(who, f"{call}, without {_format_ranks(calls[who])}" if who in calls else call) for who, call in found]
    return DeadlockError(tuple(found))


def _format_ranks(ranks: Sequence[int]) -> str:
    return f"ranks {join_names([*map(str, ranks)], NAMED_AT_MOST)}"
