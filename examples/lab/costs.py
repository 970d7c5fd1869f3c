"""What communication, storage and threads cost in a simulated machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Network:
    """Messages: latency and bandwidth between and within hosts, overhead at each end, the eager limit.

    With ``contention`` each host sends, and receives, one message from other hosts at a time. ``outlier(n)`` is the
    extra delay of the n-th message of the run.
    """

    latency_s: float = 2e-6
    bandwidth: float = 5e9
    inner_latency_s: float = 5e-7
    inner_bandwidth: float = 8e9
    overhead_s: float = 5e-7
    eager_B: int = 8192
    contention: bool = False
    outlier: Callable[[int], float] | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """Files: seconds for an operation, fsync and open; bytes a second of a server; how many operations at a time."""

    operation_s: float = 2e-5
    sync_s: float = 2e-3
    open_s: float = 3e-4
    bandwidth: float = 1e9
    servers: int = 64

    def seconds(self, call: str, size_B: int) -> float:
        """Return how long a server is busy with an operation."""
        fixed = {"fsync": self.sync_s, "open": self.open_s, "close": self.operation_s}.get(call, self.operation_s)
        return fixed + size_B / self.bandwidth


@dataclass(frozen=True, slots=True)
class Threads:
    """Starting a team, ending it at its barrier, and the time slice where threads share a core."""

    fork_s: float = 3e-6
    join_s: float = 2e-6
    slice_s: float = 4e-3


#: Collectives that no rank leaves before all have entered, those with data from a root, and those with data to one.
ALL_TO_ALL = ("MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Alltoallv")
FROM_ROOT = ("MPI_Bcast", "MPI_Scatter")
TO_ROOT = ("MPI_Reduce", "MPI_Gather")


def collective_s(call: str, size_B: int, ranks: int, latency_s: float, bandwidth: float, overhead_s: float) -> float:
    """Return the seconds of a collective after the last rank that it needs has entered.

    Trees of depth log2(ranks) for barriers, broadcasts and reductions, allreduce as reduction and broadcast; an
    all-to-all, a gather and a scatter move one piece for each other rank.
    """
    depth = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    step = latency_s + overhead_s
    move = size_B / bandwidth
    if call == "MPI_Barrier":
        return depth * step
    if call == "MPI_Allreduce":
        return 2 * depth * (step + move)
    if call in ("MPI_Bcast", "MPI_Reduce"):
        return depth * (step + move)
    if call in ("MPI_Alltoall", "MPI_Alltoallv"):
        return latency_s + (ranks - 1) * (overhead_s + move)
    return depth * step + (ranks - 1) * move
