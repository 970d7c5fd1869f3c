"""A mesh of refined levels, of which each finer one takes twice as many steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lab.exchanges import stencil
from lab.operations import Enter, Irecv, Isend, Leave, Wait
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World

#: Tags of messages, by level.
_GHOSTS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Subcycled(Phase):
    """A step of the coarsest level, then two of the next finer one, and so on; neighbours exchange ghosts in each.

    ``parts`` are the shares of the work that levels have, the coarsest first. Where boxes are given to ranks by all
    their work together, the busiest rank has ``uneven`` more of the finest level than the mean, and less of the others.
    """

    exchange: str = "fill_ghosts"
    parts: tuple[float, ...] = (0.3, 0.3, 0.4)
    uneven: float = 0.0
    size_B: int = 8192

    def regions(self) -> tuple[str, ...]:
        """Return the regions of the levels, and of the exchange."""
        return (*(self._level_name(level) for level in range(len(self.parts))), self.exchange)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the steps of all levels."""
        place = int(np.random.default_rng([world.code.seed, world.ranks]).permutation(world.ranks)[rank])
        more = self.uneven * (2.0 * place / (world.ranks - 1) - 1.0)
        finest, others = 1.0 + more, 1.0 - more * self.parts[-1] / (1.0 - self.parts[-1])
        seconds = world.seconds(self, rank, iteration)
        yield from self._advance(world, rank, 0, [*(seconds * others * part for part in self.parts[:-1]),
                                                  seconds * finest * self.parts[-1]])  # fmt: skip

    def _level_name(self, level: int) -> str:
        return f"{self.name}_{level}"

    def _advance(self, world: World, rank: int, level: int, seconds: list[float]) -> Program:
        """Yield a step of a level, and those of the finer ones inside it; ``seconds`` is the work on each level."""
        near = tuple({to: None for to, _, _ in stencil(world.ranks, 2, rank, False) if to >= 0})
        yield Enter(self.exchange)
        for number, other in enumerate(near):
            yield Irecv(other, number, _GHOSTS + level)
        for number, other in enumerate(near, len(near)):
            yield Isend(other, self.size_B, number, _GHOSTS + level)
        yield Wait(tuple(range(2 * len(near))))
        yield Leave(self.exchange)
        yield from computing(self._level_name(level), seconds[level] / 2**level)
        for _ in range(2 if level + 1 < len(seconds) else 0):
            yield from self._advance(world, rank, level + 1, seconds)
