"""From operations to steps: which of them a message takes depends on its size, a collective operation's on its root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay import collectives
from advisor_simulation.replay.network import Network, rank_nodes
from advisor_simulation.replay.numba_compiler import choose_compiled, numba_helper
from advisor_simulation.replay.program import Op, Program
from advisor_simulation.replay.steps import INNER, Step, Steps, computation_ratios

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Kinds = npt.NDArray[np.uint8]
    Numbers = npt.NDArray[np.int32]

BURST, FIXED, SEND, ISEND, SENT, RECV, IRECV, DONE, JOIN = (int(op) for op in Op)
_SEND, _ANNOUNCE, _READY, _NOTE = int(Step.SEND), int(Step.ANNOUNCE), int(Step.READY), int(Step.NOTE)
_ARRIVE, _RECEIVE, _RELEASE = int(Step.ARRIVE), int(Step.RECEIVE), int(Step.RELEASE)
_ACCEPT, _LEAVE, _INNER = int(Step.ACCEPT), int(Step.LEAVE), INNER
_ONE_TO_ALL, _ALL_TO_ONE = int(Role.ONE_TO_ALL), int(Role.ALL_TO_ONE)
#: An operation has so many steps at most.
_MOST: Final = 2


class OperationColumns(NamedTuple):
    """Columns of a program's operations; ``first`` (ranks + 1,) delimits those of a rank."""

    first: IntArray
    op: Kinds
    link: Numbers
    value: FloatArray


class MessageColumns(NamedTuple):
    """Of each message its bytes, whether it waits for its receiver, and 1 where it stays within a node."""

    sizes: FloatArray
    large: npt.NDArray[np.bool_]
    inner: npt.NDArray[np.uint8]


class CollectiveColumns(NamedTuple):
    """Of each collective operation root, shape of its cost, and its role where one rank waits or is waited for."""

    root: IntArray
    shape: IntArray
    rooted: IntArray


class StepColumns(NamedTuple):
    """What is filled: kind, value and condition of the steps, last step of each operation, first of each rank."""

    kind: Kinds
    value: FloatArray
    condition: Numbers
    last: IntArray
    first: IntArray


def lower_program(program: Program, network: Network) -> Steps:
    """Return the steps of ``program`` with the protocols, algorithms and nodes of ``network``; not with its speeds."""
    shapes = _CollectiveShapes(program, network)
    sizes, bursts = program.sizes, np.flatnonzero(program.op == Op.BURST)
    seconds = program.value.copy()
    seconds[bursts] *= computation_ratios(program, network, bursts)
    count = len(program.op)
    found = StepColumns(
        np.empty(_MOST * count, dtype=np.uint8), np.zeros(_MOST * count),
        np.full(_MOST * count, -1, dtype=np.int32), np.empty(count, dtype=np.int64),
        np.zeros(program.ranks + 1, dtype=np.int64),
    )  # fmt: skip
    filled = choose_compiled(lower_operations, count)(
        OperationColumns(program.first, program.op, program.link, seconds),
        MessageColumns(sizes, sizes > network.eager_bytes, _mark_inner(program, network)),
        CollectiveColumns(program.collectives.root.astype(np.int64), shapes.number, shapes.rooted),
        found,
    )
    start = np.zeros(program.ranks) if program.start_s is None else program.start_s
    return Steps(
        found.first, found.kind[:filled].copy(), found.value[:filled].copy(), found.condition[:filled].copy(),
        found.last, len(program.source), shapes.arrivals, shapes.costs, shapes.inner, start,
    )  # fmt: skip


@numba_helper
def put_step(found: StepColumns, n: int, kind: int, value: float, condition: int) -> int:
    """Add a step; return how many there are."""
    found.kind[n], found.value[n], found.condition[n] = kind, value, condition
    return n + 1


@numba_helper
def put_message(found: StepColumns, n: int, op: int, link: int, messages: MessageColumns) -> int:
    """Add the steps of an operation on a message; return how many there are."""
    inner, size, large = messages.inner[link] * _INNER, messages.sizes[link], messages.large[link]
    if op in (SEND, ISEND):
        n = put_step(found, n, inner + (_ANNOUNCE if large else _SEND), size, 2 * link)
    if op == RECV and large:
        n = put_step(found, n, inner + _READY, size, 2 * link + 1)
    if op == IRECV and large:
        n = put_step(found, n, inner + _NOTE, size, 2 * link + 1)
    if op in (SEND, SENT) and large:
        n = put_step(found, n, inner + _RELEASE, size, 2 * link + 1)
    if op in (RECV, DONE):
        n = put_step(found, n, inner + (_ACCEPT if large else _RECEIVE), size, 2 * link)
    return n


def lower_operations(
    operations: OperationColumns, messages: MessageColumns, joint: CollectiveColumns, found: StepColumns
) -> int:
    """Fill in the steps of all operations; return how many there are."""
    n = 0
    joints = 2 * len(messages.sizes)
    for rank in range(len(operations.first) - 1):
        begin = n
        for i in range(operations.first[rank], operations.first[rank + 1]):
            op, link = operations.op[i], operations.link[i]
            if op <= FIXED:
                n = put_step(found, n, op, operations.value[i], -1)
            elif op == JOIN:
                rooted, is_root = joint.rooted[link], joint.root[link] == rank
                if is_root or rooted != _ONE_TO_ALL:
                    n = put_step(found, n, _ARRIVE, 0.0, joints + link)
                if is_root or rooted != _ALL_TO_ONE:
                    n = put_step(found, n, _LEAVE, float(joint.shape[link]), joints + link)
            else:
                n = put_message(found, n, op, link, messages)
            found.last[i] = n - 1 if n > begin else -1
        found.first[rank + 1] = n
    return n


def _mark_inner(program: Program, network: Network) -> npt.NDArray[np.uint8]:
    """Return 1 for each message within a node, where these have costs of their own."""
    if network.is_uniform:
        return np.zeros(len(program.source), dtype=np.uint8)
    node = rank_nodes(network, program)
    same: npt.NDArray[np.uint8] = (node[program.source] == node[program.target]).astype(np.uint8)
    return same


class _CollectiveShapes:
    """The distinct costs of collective operations, and who waits in them for how many."""

    def __init__(self, program: Program, network: Network) -> None:
        joint = program.collectives
        node = rank_nodes(network, program)
        members = [len(group) for group in program.communicators]
        together = [len(set(node[list(group)].tolist())) == 1 for group in program.communicators]
        known: dict[tuple[float, float, bool], int] = {}
        self.number = np.zeros(len(joint), dtype=np.int64)
        self.arrivals = np.zeros(len(joint), dtype=np.int32)
        self.rooted = np.zeros(len(joint), dtype=np.int64)
        costs: dict[tuple[str, int, int, float, int], tuple[int, bool]] = {}
        columns = (joint.name, joint.role.tolist(), joint.comm.tolist(), joint.size.tolist(), joint.root.tolist())
        for at, (name, role, comm, size, root) in enumerate(zip(*columns, strict=True)):
            key = (name, role, comm, size, root >= 0)
            if key not in costs:
                algorithm = collectives.choose_algorithm(network.collectives, name, size)
                found = collectives.compute_cost(algorithm, name, role, members[comm], size)
                shape = (found.latencies, found.bytes, together[comm] and not network.is_uniform)
                rooted = algorithm != "dimemas" and root >= 0 and role in (Role.ONE_TO_ALL, Role.ALL_TO_ONE)
                costs[key] = known.setdefault(shape, len(known)), rooted
            self.number[at], one_sided = costs[key]
            self.rooted[at] = role if one_sided else 0
            self.arrivals[at] = 1 if one_sided and role == Role.ONE_TO_ALL else members[comm]
        self.costs = np.array([shape[:2] for shape in known]).reshape(-1, 2)
        self.inner = np.array([shape[2] for shape in known], dtype=bool)
