"""A halo that neighbours write into each other's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.exchanges import stencil
from lab.operations import Access, EndAccess, EndExposure, Enter, Expose, Fence, Leave, Put
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSided(Phase):
    """Work, and a halo of a grid that is put; ``fenced`` orders it by fences of all ranks, else neighbours do."""

    put: str = "put_halo"
    dimensions: int = 2
    size_B: int = 8192
    fenced: bool = False

    def regions(self) -> tuple[str, ...]:
        """Return the regions that compute and put."""
        return (self.name, self.put)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield work and puts of a rank."""
        yield from computing(self.name, world.seconds(self, rank, iteration))
        near = tuple({to: None for to, _, _ in stencil(world.ranks, self.dimensions, rank, False) if to >= 0})
        yield Enter(self.put)
        if self.fenced:
            yield Fence()
        else:
            yield Expose(near)
            yield Access(near)
        for to in near:
            yield Put(to, self.size_B)
        if self.fenced:
            yield Fence()
        else:
            yield EndAccess(near)
            yield EndExposure(near)
        yield Leave(self.put)
