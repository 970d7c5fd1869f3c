"""Phases whose ranks form groups with communicators of their own: coupled codes, ensembles, pencils of a grid."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lab.collectives import Transpose
from lab.exchanges import grid
from lab.loads import Load
from lab.operations import Collective, Enter, Irecv, Isend, Leave, StartCollective, Wait, Work
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.loads import Floats
    from lab.operations import Program
    from lab.world import World

#: Tags of messages between coupled codes.
_COUPLING: Final = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupled(Phase):
    """Two codes on ranks of their own that exchange boundary values after some ``substeps`` of each.

    The first one has the share ``work_share`` of all work and ``rank_share`` of the ranks. Each step ends in a
    reduction within the code.
    """

    partner: str = "advance_ocean"
    couple: str = "exchange_fluxes"
    work_share: float = 0.5
    rank_share: float = 0.5
    substeps: int = 2
    size_B: int = 16384

    def regions(self) -> tuple[str, ...]:
        """Return the regions of both codes, and of their exchange."""
        return (self.name, self.partner, self.couple)

    def cut(self, ranks: int) -> int:
        """Return how many ranks the first code has."""
        return min(max(round(self.rank_share * ranks), 1), ranks - 1)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the steps of a rank's code and its part of the exchange."""
        cut = self.cut(world.ranks)
        first = rank < cut
        members = tuple(range(cut)) if first else tuple(range(cut, world.ranks))
        share = self.work_share if first else 1.0 - self.work_share
        seconds = world.seconds(self, rank, iteration) * share * world.ranks / len(members)
        for _ in range(self.substeps):
            yield from computing(self.name if first else self.partner, seconds / self.substeps)
            yield Collective("MPI_Allreduce", 8, -1, members)
        partners = _opposite(cut, world.ranks, rank)
        yield Enter(self.couple)
        for number, other in enumerate(partners):
            yield Irecv(other, 2 * number, _COUPLING)
            yield Isend(other, self.size_B, 2 * number + 1, _COUPLING)
        yield Wait(tuple(range(2 * len(partners))))
        yield Leave(self.couple)


def _opposite(cut: int, ranks: int, rank: int) -> list[int]:
    """Return the ranks of the other code whose part of the interface touches that of a rank."""
    size, other = (cut, ranks - cut) if rank < cut else (ranks - cut, cut)
    place, begin = (rank, cut) if rank < cut else (rank - cut, 0)
    first, last = place * other // size, max(((place + 1) * other - 1) // size, place * other // size)
    return [begin + each for each in range(first, last + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble(Phase):
    """Members of an ensemble, each computed by a group of ``width`` ranks, ``members`` for each group.

    ``costs`` spreads the work over the members. ``assigned`` says who computes them: "equally" many for each group,
    "measured" (equal work), or "demand" (the next one by the group that is free). A group that is done early waits.
    """

    width: int = 4
    members: int = 3
    substeps: int = 3
    costs: Load = field(default_factory=Load)
    assigned: str = "equally"

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the members of a rank's group."""
        groups = max(world.ranks // self.width, 1)
        group = min(rank // self.width, groups - 1)
        last = world.ranks if group == groups - 1 else (group + 1) * self.width
        ranks = tuple(range(group * self.width, last))
        shares = self.costs.shares(groups * self.members, world.code.iterations)
        weight = len(ranks) * groups / world.ranks * self.members
        own = world.seconds(self, rank, iteration) / weight
        for member in _assign(shares, groups, self.assigned, iteration)[group]:
            yield Enter(self.name)
            for _ in range(self.substeps):
                yield Work(own * float(shares[member, iteration]) / self.substeps)
                yield Collective("MPI_Allreduce", 8, -1, ranks)
            yield Leave(self.name)


def _assign(shares: Floats, groups: int, how: str, iteration: int) -> list[list[int]]:
    """Return the members of each group."""
    count = len(shares)
    given: list[list[int]] = [[] for _ in range(groups)]
    if how == "equally":
        for member in range(count):
            given[member * groups // count].append(member)
        return given
    cost = shares.sum(axis=1) if how == "measured" else shares[:, iteration]
    order = sorted(range(count), key=lambda member: -cost[member]) if how == "measured" else list(range(count))
    free = [(0.0, group) for group in range(groups)]
    for member in order:
        time, group = free[0]
        given[group].append(member)
        heapq.heapreplace(free, (time + float(cost[member]), group))
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Pencils(Transpose):
    """A transform on a grid of ranks: half of the work, an all-to-all of each row of ranks, then of each column."""

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield work and both transpositions of a rank."""
        side = grid(world.ranks, 2)[1]
        row = tuple(range(rank // side * side, rank // side * side + side))
        column = tuple(range(rank % side, world.ranks, side))
        seconds = world.seconds(self, rank, iteration) / 2
        for number, members in enumerate((row, column)):
            yield from self._transform(seconds, members, 2000 + 100 * number)

    def _transform(self, seconds: float, members: tuple[int, ...], request: int) -> Program:
        if self.pieces == 1 or len(members) == 1:
            yield from computing(self.name, seconds)
            yield Enter(self.transpose)
            yield Collective("MPI_Alltoall", self.size_B, -1, members)
            yield Leave(self.transpose)
            return
        for piece in range(self.pieces):
            yield from computing(self.name, seconds / self.pieces)
            yield Enter(self.transpose)
            yield StartCollective("MPI_Alltoall", self.size_B // self.pieces, request + piece, members)
            yield Leave(self.transpose)
        yield Enter(self.transpose)
        yield Wait(tuple(range(request, request + self.pieces)))
        yield Leave(self.transpose)
