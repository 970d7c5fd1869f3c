"""A program cut into steps for the fast engine: each moves a rank's clock, or leaves or reads one number in a slot.

A step that reads waits until what it reads is written: its condition. Message m has the conditions 2 m (sent) and
2 m + 1 (the receiver is ready), collective operation c of M messages has 2 M + c.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.traces.events import Role
from advisor_simulation.replay import collectives
from advisor_simulation.replay.network import nodes
from advisor_simulation.replay.program import Op

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model import FloatArray, IntArray
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program


class Step(IntEnum):
    """What a step does to the clock t and its slot; ``INNER`` is added for messages within a node."""

    BURST = 0  # t += value * ratio
    FIXED = 1  # t += value
    SEND = 2  # t += startup; slot = t + flight + value / BW
    ANNOUNCE = 3  # t += startup; slot = t
    READY = 4  # slot = t + startup
    NOTE = 5  # slot = t
    ARRIVE = 6  # slot = max(slot, t)
    RECEIVE = 7  # t = max(t + startup, slot); this and all that follow wait for their condition
    RELEASE = 8  # t = max(t, slot)
    ACCEPT = 9  # t = max(t + startup, max(both slots) + flight + value / BW)
    LEAVE = 10  # t = max(t, slot + cost[value])
    AFTER = 11  # t = max(t, slot + value)


INNER: Final = 16
#: Steps that wait for their condition; the others with one fulfil it.
WAITING: Final = (Step.RECEIVE, Step.RELEASE, Step.ACCEPT, Step.LEAVE, Step.AFTER)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of all ranks; ``first`` (ranks + 1,), columns ``kind``, ``value``, ``condition`` (-1 none).

    ``last`` (operations,) is the step with which each operation of the program ends (-1: it has none on its rank, and
    ends where the one before it does). ``needed`` (collectives,) counts the arrivals that fulfil the condition,
    ``costs`` (shapes, 2) holds latencies and bytes of collective operations, ``inner_shape`` (shapes,) whether they
    stay within a node. ``messages`` is M.
    """

    first: IntArray
    kind: npt.NDArray[np.uint8]
    value: FloatArray
    condition: npt.NDArray[np.int32]
    last: IntArray
    messages: int
    needed: npt.NDArray[np.int32]
    costs: FloatArray
    inner_shape: npt.NDArray[np.bool_]
    start_s: FloatArray

    @property
    def ranks(self) -> int:
        """The number of processes."""
        return len(self.first) - 1


@dataclass(slots=True)
class Lowering:
    """Columns that are being filled: how many steps each operation has, and what they are."""

    program: Program
    count: IntArray
    end: IntArray

    @classmethod
    def of(cls, program: Program, count: IntArray) -> Lowering:
        """Room for ``count`` steps of each operation."""
        return cls(program, count, np.cumsum(count))

    def columns(self) -> tuple[npt.NDArray[np.uint8], FloatArray, npt.NDArray[np.int32]]:
        """Return empty columns."""
        total = int(self.end[-1]) if len(self.end) else 0
        return np.zeros(total, dtype=np.uint8), np.zeros(total), np.full(total, -1, dtype=np.int32)

    def first(self) -> IntArray:
        """Return where the steps of each rank begin."""
        found: IntArray = np.r_[0, self.end][self.program.first].astype(np.int64)
        return found

    def last(self) -> IntArray:
        """Return the last step of each operation, or of the latest before it on its rank; -1 for none."""
        last = self.end - 1
        return np.where(last >= np.repeat(self.first()[:-1], np.diff(self.program.first)), last, -1)


def lowered(program: Program, network: Network) -> Steps:
    """Return the steps of ``program`` with the protocols, algorithms and nodes of ``network``; not with its speeds."""
    shapes = _Shapes(program, network)
    rendezvous = program.sizes > network.eager_bytes
    op = program.op
    large = np.zeros(len(op), dtype=bool)
    linked = (op >= Op.SEND) & (op <= Op.DONE)
    large[linked] = rendezvous[program.link[linked]]
    joining = np.flatnonzero(op == Op.JOIN)
    arrives, leaves = shapes.of_members(joining, program)
    count = _counts(op, large)
    count[joining] = arrives.astype(np.int64) + leaves
    lowering = Lowering.of(program, count)
    kind, value, condition = lowering.columns()
    _fill(program, network, large, lowering, (kind, value, condition))
    end = lowering.end[joining]
    there, gone = end[arrives] - 1 - leaves[arrives], end[leaves] - 1
    kind[there], kind[gone] = Step.ARRIVE, Step.LEAVE
    condition[there] = 2 * len(program.source) + program.link[joining[arrives]]
    condition[gone] = 2 * len(program.source) + program.link[joining[leaves]]
    value[gone] = shapes.number[program.link[joining[leaves]]]
    start = np.zeros(program.ranks) if program.start_s is None else program.start_s
    return Steps(
        lowering.first(), kind, value, condition, lowering.last(), len(program.source), shapes.needed,
        shapes.costs, shapes.inner, start,
    )  # fmt: skip


def _counts(op: npt.NDArray[np.uint8], large: npt.NDArray[np.bool_]) -> IntArray:
    """Return how many steps each operation has but for collective ones."""
    small_steps = np.zeros(len(Op), dtype=np.int64)
    small_steps[[Op.BURST, Op.FIXED, Op.SEND, Op.ISEND, Op.RECV, Op.DONE]] = 1
    large_steps = small_steps.copy()
    large_steps[[Op.SEND, Op.RECV]] = 2
    large_steps[[Op.SENT, Op.IRECV]] = 1
    return np.where(large, large_steps[op], small_steps[op])


def _fill(
    program: Program,
    network: Network,
    large: npt.NDArray[np.bool_],
    lowering: Lowering,
    columns: tuple[npt.NDArray[np.uint8], FloatArray, npt.NDArray[np.int32]],
) -> None:
    """Fill in computation and messages."""
    kind, value, condition = columns
    op, end = program.op, lowering.end
    for timed, step in ((Op.BURST, Step.BURST), (Op.FIXED, Step.FIXED)):
        at = np.flatnonzero(op == timed)
        kind[end[at] - 1] = step
        value[end[at] - 1] = program.value[at] * (ratios(program, network, at) if timed == Op.BURST else 1.0)
    inner = _inner(program, network)
    sizes = program.sizes

    def put(ops: tuple[Op, ...], of_large: bool, back: int, step: Step, ready: int) -> None:
        at = np.flatnonzero(np.isin(op, ops) & (large == of_large))
        link = program.link[at].astype(np.int64)
        place = end[at] - back
        kind[place] = step + INNER * inner[link]
        value[place] = sizes[link]
        condition[place] = 2 * link + ready

    put((Op.SEND, Op.ISEND), False, 1, Step.SEND, 0)
    put((Op.RECV, Op.DONE), False, 1, Step.RECEIVE, 0)
    put((Op.SEND,), True, 2, Step.ANNOUNCE, 0)
    put((Op.ISEND,), True, 1, Step.ANNOUNCE, 0)
    put((Op.SEND, Op.SENT), True, 1, Step.RELEASE, 1)
    put((Op.IRECV,), True, 1, Step.NOTE, 1)
    put((Op.RECV,), True, 2, Step.READY, 1)
    put((Op.RECV, Op.DONE), True, 1, Step.ACCEPT, 0)


def ratios(program: Program, network: Network, at: IntArray) -> FloatArray:
    """Return the factors on computation that are the same at all points: of ranks and regions."""
    of_rank = np.array([network.rank_ratios.get(rank, 1.0) for rank in range(program.ranks)])
    of_region = np.array([*(network.region_ratios.get(name, 1.0) for name in program.names), 1.0])
    if not network.rank_ratios and not network.region_ratios:
        return np.ones(1)
    result: FloatArray = of_rank[program.rank[at]] * of_region[program.region[at]]
    return result


def _inner(program: Program, network: Network) -> IntArray:
    """Return 1 for each message within a node, where these have costs of their own."""
    if network.one_kind:
        return np.zeros(len(program.source), dtype=np.int64)
    node = nodes(network, program)
    same: IntArray = (node[program.source] == node[program.target]).astype(np.int64)
    return same


class _Shapes:
    """The distinct costs of collective operations, and who waits in them for how many."""

    def __init__(self, program: Program, network: Network) -> None:
        joint = program.collectives
        node = nodes(network, program)
        members = [len(group) for group in program.communicators]
        together = [len(set(node[list(group)].tolist())) == 1 for group in program.communicators]
        known: dict[tuple[float, float, bool], int] = {}
        self.number = np.zeros(len(joint), dtype=np.int64)
        self.needed = np.zeros(len(joint), dtype=np.int32)
        self.rooted = np.zeros(len(joint), dtype=np.int64)
        costs: dict[tuple[str, int, int, float, int], tuple[int, bool]] = {}
        columns = (joint.name, joint.role.tolist(), joint.comm.tolist(), joint.size.tolist(), joint.root.tolist())
        for at, (name, role, comm, size, root) in enumerate(zip(*columns, strict=True)):
            key = (name, role, comm, size, root >= 0)
            if key not in costs:
                algorithm = collectives.chosen(network.collectives, name, size)
                found = collectives.cost(algorithm, name, role, members[comm], size)
                shape = (found.latencies, found.bytes, together[comm] and not network.one_kind)
                rooted = algorithm != "dimemas" and root >= 0 and role in (Role.ONE_TO_ALL, Role.ALL_TO_ONE)
                costs[key] = known.setdefault(shape, len(known)), rooted
            self.number[at], one_sided = costs[key]
            self.rooted[at] = role if one_sided else 0
            self.needed[at] = 1 if one_sided and role == Role.ONE_TO_ALL else members[comm]
        self.costs = np.array([shape[:2] for shape in known]).reshape(-1, 2)
        self.inner = np.array([shape[2] for shape in known], dtype=bool)

    def of_members(self, at: IntArray, program: Program) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return of each joining operation whether its arrival counts for others, and whether it waits for others."""
        link = program.link[at]
        is_root = program.rank[at] == program.collectives.root[link]
        arrives = (self.rooted[link] != Role.ONE_TO_ALL) | is_root
        leaves = (self.rooted[link] != Role.ALL_TO_ONE) | is_root
        return arrives, leaves
