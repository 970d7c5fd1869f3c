"""Sweeps over a grid of ranks from each of its corners in turn, as transport along discrete ordinates has them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.exchanges import Wavefront, stencil
from lab.operations import Enter, Leave, Recv, Send
from lab.patterns import computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeps(Wavefront):
    """A pipeline from each corner: who ends one sweep first begins the next one."""

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the blocks of a rank, corner by corner."""
        corners = 2**self.dimensions
        seconds = world.seconds(self, rank, iteration) / self.blocks / corners
        ahead = stencil(world.ranks, self.dimensions, rank, False)[::2]
        size = math.ceil(self.size_B / self.blocks)
        for corner in range(corners):
            ends = [(to, source) if corner >> way & 1 else (source, to) for way, (to, source, _) in enumerate(ahead)]
            for _ in range(self.blocks):
                yield Enter(self.pass_on)
                for way, (source, _) in enumerate(ends):
                    if source >= 0:
                        yield Recv(source, 10 * corner + way)
                yield Leave(self.pass_on)
                yield from computing(self.name, seconds)
                yield Enter(self.pass_on)
                for way, (_, to) in enumerate(ends):
                    if to >= 0:
                        yield Send(to, size, 10 * corner + way)
                yield Leave(self.pass_on)
