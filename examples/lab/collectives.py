"""Phases whose communication is collective: reductions, needless barriers, transposes, serial parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lab.operations import Background, Collective, Enter, Leave, StartCollective, Wait, Work
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces(Phase):
    """Work in ``count`` pieces with a collective after each: dot products of a solver, or barriers.

    ``spread`` is how much a rank's pieces differ from each other at most; together they are always its work. With
    ``fused`` one collective at the end does what ``count`` did.
    """

    count: int = 4
    call: str = "MPI_Allreduce"
    size_B: int = 8
    spread: float = 0.0
    fused: bool = False

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the pieces of a rank."""
        seconds = world.seconds(self, rank, iteration)
        generator = np.random.default_rng([world.code.seed, rank, iteration])
        share = 1.0 + self.spread * generator.uniform(-1.0, 1.0, self.count)
        share /= share.sum()
        yield Enter(self.name)
        for piece in share.tolist():
            yield Work(seconds * piece)
            if not self.fused:
                yield Collective(self.call, self.size_B if self.call != "MPI_Barrier" else 0)
        if self.fused and self.call != "MPI_Barrier":
            yield Collective(self.call, self.size_B * self.count)
        yield Leave(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transpose(Phase):
    """Work and an all-to-all of ``size_B`` for each pair of ranks; in ``pieces`` it goes on beside the work."""

    transpose: str = "transpose"
    size_B: int = 4096
    pieces: int = 1

    def regions(self) -> tuple[str, ...]:
        """Return the regions that compute and transpose."""
        return (self.name, self.transpose)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield work and transposition of a rank."""
        seconds = world.seconds(self, rank, iteration)
        if self.pieces == 1:
            yield from computing(self.name, seconds)
            yield Enter(self.transpose)
            yield Collective("MPI_Alltoall", self.size_B)
            yield Leave(self.transpose)
            return
        for piece in range(self.pieces):
            yield from computing(self.name, seconds / self.pieces)
            yield Enter(self.transpose)
            yield StartCollective("MPI_Alltoall", self.size_B // self.pieces, 2000 + piece)
            yield Leave(self.transpose)
        yield Enter(self.transpose)
        yield Wait(tuple(range(2000, 2000 + self.pieces)))
        yield Leave(self.transpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serial(Phase):
    """The first rank computes ``serial_s`` alone and broadcasts the result.

    ``remedy`` is "", "parallel" (all compute a part) or "overlapped" (a helper thread of the first rank computes it
    beside the following phases; the result is used an iteration later).
    """

    serial_s: float = 0.001
    size_B: int = 1024
    remedy: str = ""

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the serial part."""
        if self.remedy == "parallel":
            yield from computing(self.name, self.serial_s / world.ranks)
            yield Collective("MPI_Allgather", self.size_B // world.ranks)
            return
        if self.remedy == "overlapped":
            if rank == 0:
                if iteration:
                    yield Wait((3000,), "wait_for_helper")
                yield Background(self.serial_s, 3000)
        elif rank == 0:
            yield from computing(self.name, self.serial_s)
        yield Collective("MPI_Bcast", self.size_B, 0)
