"""A mesh that is refined where something moves through it, and cut anew from time to time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.exchanges import Exchange
from lab.operations import Collective, Enter, Leave

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive(Exchange):
    """An exchange with neighbours; the cells of the mesh change their ranks each ``every`` iterations, 0 is never."""

    migrate: str = "repartition_mesh"
    every: int = 2
    cells_B: int = 4096

    def regions(self) -> tuple[str, ...]:
        """Return the regions that compute, exchange and migrate."""
        return (self.name, self.exchange, self.migrate)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the migration, if it is time for it, then work and exchange."""
        if self.every and iteration and iteration % self.every == 0:
            yield Enter(self.migrate)
            yield Collective("MPI_Alltoall", self.cells_B)
            yield Leave(self.migrate)
        yield from Exchange.body(self, world, rank, iteration)
