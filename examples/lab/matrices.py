"""Products of matrices on a grid of ranks (SUMMA): panels are broadcast along rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.exchanges import grid
from lab.operations import Collective, Enter, Leave
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixProduct(Phase):
    """For each of ``panels`` one rank of each row and of each column broadcasts its part, and all multiply."""

    broadcast: str = "broadcast_panel"
    panels: int = 4
    size_B: int = 32768

    def regions(self) -> tuple[str, ...]:
        """Return the regions that multiply and broadcast."""
        return (self.name, self.broadcast)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the broadcasts and products of a rank."""
        seconds = world.seconds(self, rank, iteration) / self.panels
        side = grid(world.ranks, 2)[1]
        row = tuple(range(rank // side * side, rank // side * side + side))
        column = tuple(range(rank % side, world.ranks, side))
        for panel in range(self.panels):
            yield Enter(self.broadcast)
            for members in (row, column):
                if len(members) > 1:
                    yield Collective("MPI_Bcast", self.size_B, members[panel % len(members)], members)
            yield Leave(self.broadcast)
            yield from computing(self.name, seconds)
