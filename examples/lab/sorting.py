"""A sort of keys that are spread over the ranks: sorted parts, splitters, buckets, and a merge of each bucket."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab.loads import Load
from lab.operations import Collective, Enter, Leave
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSort(Phase):
    """The share ``local`` of the work sorts a rank's own keys, the rest merges those of its bucket.

    ``buckets`` says how uneven these are: splitters from samples make them equal, buckets of one width do not.
    """

    choose: str = "choose_splitters"
    exchange: str = "exchange_keys"
    merge: str = "merge_bucket"
    local: float = 0.5
    size_B: int = 65536
    samples_B: int = 256
    buckets: Load = field(default_factory=Load)

    def regions(self) -> tuple[str, ...]:
        """Return the regions that sort, choose, exchange and merge."""
        return (self.name, self.choose, self.exchange, self.merge)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the steps of a rank."""
        seconds = world.seconds(self, rank, iteration)
        share = float(self.buckets.shares(world.ranks, world.code.iterations)[rank, iteration])
        yield from computing(self.name, self.local * seconds)
        yield Enter(self.choose)
        yield Collective("MPI_Gather", self.samples_B, 0)
        yield Collective("MPI_Bcast", self.samples_B, 0)
        yield Leave(self.choose)
        yield Enter(self.exchange)
        yield Collective("MPI_Alltoallv", int(self.size_B * share / world.ranks))
        yield Leave(self.exchange)
        yield from computing(self.merge, (1.0 - self.local) * seconds * share)
