"""What all phases of a program have in common: a name, work and its distribution, and how they end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lab.loads import Load
from lab.operations import Collective, Enter, Leave, StartCollective, Wait, Work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.operations import Operation, Program
    from lab.world import World

#: Requests of collectives that are waited for an iteration later.
_LAGGING: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of each iteration.

    ``work_s`` is the mean work of a rank, ``close`` the collective at the end, if there is one: a barrier orders
    nothing here, messages do that. The result of an allreduce may be needed at once, or (``later``) only in the next
    iteration; ``lag`` says that it is computed in the background until then. ``needless`` barriers follow.
    """

    name: str
    work_s: float = 0.0
    load: Load = field(default_factory=Load)
    close: str = ""
    close_B: int = 8
    later: bool = False
    lag: bool = False
    needless: int = 0

    def regions(self) -> tuple[str, ...]:
        """Return the user regions of the phase, the one that computes first."""
        return (self.name,)

    def steps(self, world: World, rank: int, iteration: int) -> Program:
        """Yield what a rank does in an iteration."""
        yield from self.body(world, rank, iteration)
        if self.close and self.lag:
            request = _LAGGING + world.number(self)
            if iteration:
                yield Wait((request,), "MPI_Wait")
            yield StartCollective(self.close, self.close_B, request)
            if iteration == world.code.iterations - 1:
                yield Wait((request,), "MPI_Wait")
        elif self.close:
            yield Collective(self.close, self.close_B)
        for _ in range(self.needless):
            yield Collective("MPI_Barrier")

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield what a rank does before the phase is closed: by default it computes."""
        yield from computing(self.name, world.seconds(self, rank, iteration))


def computing(region: str, seconds: float) -> Iterator[Operation]:
    """Yield work in a user region."""
    if seconds > 0:
        yield Enter(region)
        yield Work(seconds)
        yield Leave(region)
