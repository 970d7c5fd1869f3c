"""Ranks that only write: the others hand them their output."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lab.operations import Collective, Enter, Isend, Leave, Recv, Send, Transfer, Wait
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World

#: Tags of data and of receipts, and the request of data under way.
_DATA: Final = 801
_RECEIPT: Final = 802
_SENT: Final = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Served(Phase):
    """Work, and output that one rank of ``clients`` + 1 receives and writes for the others in each iteration.

    Those who compute add something up before they hand their output over. With ``buffers`` 1 they go on when their data
    are written, with 2 when the buffer before that is free. Those who write compute as well, the part ``works`` of what
    the others do, and write then. With ``gathered`` they write what they have of all in one piece. With ``direct``
    those who compute write their own output, and nobody serves.
    """

    serve: str = "serve_output"
    hand_over: str = "hand_over_output"
    clients: int = 7
    size_B: int = 1 << 15
    buffers: int = 2
    works: float = 0.0
    gathered: bool = False
    direct: bool = False

    def regions(self) -> tuple[str, ...]:
        """Return the regions that compute, hand over and write."""
        return (self.name, self.hand_over, self.serve)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the part of a rank."""
        served = self.find_clients(world.ranks)
        server = next(each for each, clients in served.items() if rank == each or rank in clients)
        working = tuple(each for each in range(world.ranks) if self.works or each not in served)
        own = world.work_s[self.name][:, iteration]
        part = np.array([self.works if each in served else 1.0 for each in range(world.ranks)])
        if rank in working:
            yield from computing(self.name, float(own[rank] * part[rank] * own.sum() / (own * part).sum()))
            yield Collective("MPI_Allreduce", 8, -1, working)
        if rank == server:
            yield from () if self.direct else self._write(served[rank], rank)
            return
        yield Enter(self.hand_over)
        if self.direct:
            yield Transfer("write", f"out.{rank}", self.size_B)
        elif self.buffers == 1:
            yield Send(server, self.size_B, _DATA)
            yield Recv(server, _RECEIPT)
        else:
            if iteration:
                yield Wait((_SENT,), "MPI_Wait")
            yield Isend(server, self.size_B, _SENT, _DATA)
            if iteration == world.code.iterations - 1:
                yield Wait((_SENT,), "MPI_Wait")
        yield Leave(self.hand_over)

    def find_clients(self, ranks: int) -> dict[int, range]:
        """Return whom each server serves: the last one those before it who are left."""
        groups = max(round(ranks / (self.clients + 1)), 1)
        limits = [ranks * group // groups for group in range(groups + 1)]
        return {stop - 1: range(first, stop - 1) for first, stop in itertools.pairwise(limits)}

    def _write(self, clients: range, rank: int) -> Program:
        yield Enter(self.serve)
        for client in clients:
            yield Recv(client, _DATA)
            if not self.gathered or client == clients[-1]:
                yield Transfer("write", f"out.{rank}", self.size_B * (len(clients) if self.gathered else 1))
            if self.buffers == 1 and not self.gathered:
                yield Send(client, 8, _RECEIPT)
        for client in clients if self.buffers == 1 and self.gathered else ():
            yield Send(client, 8, _RECEIPT)
        yield Leave(self.serve)
