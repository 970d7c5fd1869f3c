"""A graph of tasks over ranks: each task needs results of other ranks' tasks of the level before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lab.exchanges import graph
from lab.operations import Enter, Irecv, Isend, Leave, Wait
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World

#: Tags of results.
_RESULT: Final = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGraph(Phase):
    """``levels`` of tasks; who needs a result of a rank are its partners in an irregular graph.

    On each level a rank has tasks whose results others need, the share ``wanted`` of its work there, and tasks that
    need nothing of the level before but its own. The wanted ones come first, but not on the first ``late`` of each
    hundred ranks. Levels differ by ``spread`` at most; together they are the rank's work.
    """

    deliver: str = "deliver_results"
    levels: int = 4
    degree: int = 3
    wanted: float = 0.5
    spread: float = 0.1
    late: int = 0
    size_B: int = 4096

    def regions(self) -> tuple[str, ...]:
        """Return the regions that compute and communicate."""
        return (self.name, self.deliver)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the tasks of a rank, level by level."""
        seconds = world.seconds(self, rank, iteration)
        generator = np.random.default_rng([world.code.seed, rank])
        share = 1.0 + self.spread * generator.uniform(-1.0, 1.0, self.levels)
        partners = graph(world.ranks, self.degree, world.code.seed)[rank]
        for level, part in enumerate((share / share.sum()).tolist()):
            yield from self._level(seconds * part, partners, level, late=rank % 100 * 37 % 100 < self.late)

    def _level(self, seconds: float, partners: tuple[tuple[int, int], ...], level: int, *, late: bool) -> Program:
        wanted, local = self.wanted * seconds, (1.0 - self.wanted) * seconds
        yield Enter(self.deliver)
        for number, (other, _) in enumerate(partners):
            yield Irecv(other, 2 * number, _RESULT + level)
        yield Leave(self.deliver)
        yield from computing(self.name, local + wanted if late else wanted)
        yield Enter(self.deliver)
        for number, (other, _) in enumerate(partners):
            yield Isend(other, self.size_B, 2 * number + 1, _RESULT + level)
        yield Leave(self.deliver)
        yield from computing(self.name, 0.0 if late else local)
        yield Enter(self.deliver)
        yield Wait(tuple(range(2 * len(partners))))
        yield Leave(self.deliver)
