"""All pairs by a ring: blocks of data go round all ranks, and each rank computes with each block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.operations import Enter, Irecv, Isend, Leave, Sendrecv, Wait
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring(Phase):
    """Work with the block of each rank in turn; the next block is on its way meanwhile (``ahead``), or sent behind."""

    shift: str = "shift_block"
    size_B: int = 16384
    ahead: bool = True

    def regions(self) -> tuple[str, ...]:
        """Return the regions that compute and shift."""
        return (self.name, self.shift)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield work with all blocks, and their shifts."""
        seconds = world.seconds(self, rank, iteration) / world.ranks
        source, to = (rank - 1) % world.ranks, (rank + 1) % world.ranks
        for _ in range(world.ranks - 1):
            if self.ahead:
                yield Enter(self.shift)
                yield Irecv(source, 0)
                yield Isend(to, self.size_B, 1)
                yield Leave(self.shift)
            yield from computing(self.name, seconds)
            yield Enter(self.shift)
            yield Wait((0, 1)) if self.ahead else Sendrecv(to, self.size_B, source)
            yield Leave(self.shift)
        yield from computing(self.name, seconds)
