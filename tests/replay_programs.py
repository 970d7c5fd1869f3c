"""Programs for tests of the replay: written down by hand, and drawn at random."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from halo_exchange import halo

from advisor.trace.events import Role
from advisor_simulation.replay.collectives import TODAY
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Collectives, Op, Program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Do(NamedTuple):
    """One operation of a rank."""

    op: Op
    value: float = 0.0
    link: int = -1


def program(
    ranks: Sequence[Sequence[Do]],
    messages: Sequence[tuple[int, int]] = (),
    collectives: Collectives | None = None,
    communicators: tuple[tuple[int, ...], ...] = (),
) -> Program:
    """Return the program of the operations of each rank; ``messages`` are pairs of source and target."""
    ops = [op for rank in ranks for op in rank]
    nothing = np.full(len(ops), -1, dtype=np.int32)
    none = np.zeros(0, dtype=np.int64)
    return Program(
        first=np.cumsum([0, *map(len, ranks)]).astype(np.int64),
        op=np.array([each.op for each in ops], dtype=np.uint8),
        value=np.array([each.value for each in ops], dtype=np.float64),
        link=np.array([each.link for each in ops], dtype=np.int32),
        call=nothing,
        region=nothing.copy(),
        source=np.array([source for source, _ in messages], dtype=np.int32),
        target=np.array([target for _, target in messages], dtype=np.int32),
        collectives=collectives or Collectives(none, none, none, np.zeros(0), ()),
        communicators=communicators,
        names=(),
    )


__all__ = ["OPERATIONS", "Do", "halo", "networks", "program", "programs"]

#: Name, role, and whether it has a root.
OPERATIONS = (
    ("barrier", Role.BARRIER, False),
    ("allreduce", Role.ALL_TO_ALL, False),
    ("alltoall", Role.ALL_TO_ALL, False),
    ("bcast", Role.ONE_TO_ALL, True),
    ("reduce", Role.ALL_TO_ONE, True),
    ("gather", Role.ALL_TO_ONE, True),
)


class _Draft:
    """A program that is being drawn: everything happens in one order, so nobody waits in a circle."""

    def __init__(self, number: Callable[[int, int], int], ranks: int) -> None:
        self.number = number
        self.ranks: list[list[Do]] = [[] for _ in range(ranks)]
        self.messages: list[tuple[int, int]] = []
        self.joint: list[tuple[int, str, Role, int, float]] = []
        self.groups: list[tuple[int, ...]] = [tuple(range(ranks))]
        self._open: list[tuple[int, Do]] = []

    def burst(self) -> None:
        self.ranks[self.number(0, len(self.ranks) - 1)].append(Do(Op.BURST, self.number(1, 1000) * 1e-6))

    def message(self) -> None:
        source = self.number(0, len(self.ranks) - 1)
        target = (source + self.number(1, len(self.ranks) - 1)) % len(self.ranks)
        number, size = len(self.messages), float(self.number(0, 60000))
        self.messages.append((source, target))
        style = self.number(0, 3)
        if style & 1:
            self.ranks[target].append(Do(Op.IRECV, link=number))
            self._open.append((target, Do(Op.DONE, link=number)))
        if style & 2:
            self.ranks[source].append(Do(Op.ISEND, size, number))
            self._open.append((source, Do(Op.SENT, link=number)))
        else:
            self.ranks[source].append(Do(Op.SEND, size, number))
        if not style & 1:
            self.ranks[target].append(Do(Op.RECV, link=number))

    def wait(self) -> None:
        if self._open:
            rank, op = self._open.pop(self.number(0, len(self._open) - 1))
            self.ranks[rank].append(op)

    def join(self) -> None:
        if self.number(0, 2) == 0:
            members = tuple(rank for rank in range(len(self.ranks)) if self.number(0, 1))
            if members and members not in self.groups:
                self.groups.append(members)
        comm = self.number(0, len(self.groups) - 1)
        name, role, rooted = OPERATIONS[self.number(0, len(OPERATIONS) - 1)]
        group = self.groups[comm]
        root = group[self.number(0, len(group) - 1)] if rooted else -1
        for rank in group:
            self.ranks[rank].append(Do(Op.JOIN, 0.0, len(self.joint)))
        self.joint.append((comm, name, role, root, float(self.number(0, 50000))))

    def finish(self) -> Program:
        while self._open:
            self.wait()
        comm, name, role, root, size = zip(*self.joint, strict=True) if self.joint else ((),) * 5
        found = Collectives(
            np.array(comm, dtype=np.int64), np.array(role, dtype=np.int64), np.array(root, dtype=np.int64),
            np.array(size, dtype=np.float64), tuple(name),
        )  # fmt: skip
        return program(self.ranks, self.messages, found, tuple(self.groups))


@st.composite
def programs(draw: st.DrawFn, most: int = 40, broken: bool = False) -> Program:
    """Draw programs of 2 to 16 ranks; ``broken`` ones have two operations of a rank exchanged."""
    draft = _Draft(lambda low, high: draw(st.integers(low, high)), draw(st.integers(2, 16)))
    steps = (draft.burst, draft.message, draft.message, draft.wait, draft.join)
    for _ in range(draw(st.integers(1, most))):
        steps[draft.number(0, len(steps) - 1)]()
    if broken:
        rank = draft.ranks[draft.number(0, len(draft.ranks) - 1)]
        if len(rank) > 1:
            at = draft.number(0, len(rank) - 2)
            if rank[at].link != rank[at + 1].link:  # a request is used only once it exists
                rank[at], rank[at + 1] = rank[at + 1], rank[at]
    return draft.finish()


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Draw machine points of all protocols."""

    def number(high: int) -> int:
        return draw(st.integers(0, high))

    return Network(
        latency_s=number(100) * 1e-6,
        bandwidth=math.inf if number(9) == 0 else (1 + number(1000)) * 1e6,
        intra_latency_s=None if number(1) else number(10) * 1e-6,
        eager_bytes=(-1.0, 1000.0, 30000.0, math.inf)[number(3)],
        startup="wire" if number(1) else "processor",
        collectives=TODAY if number(1) else {"*": "dimemas"},
        ranks_per_node=1 + number(3),
        cpu_ratio=0.5 + number(4) / 2,
        rank_ratios={0: 2.0} if number(1) else {},
    )
