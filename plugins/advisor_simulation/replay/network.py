"""What a machine point is: processor speed, latencies and bandwidths, protocol, links, and where ranks run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from advisor.model.errors import UsageError
from advisor_simulation.replay.collectives import DIMEMAS, Models

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor.model.records import IntArray
    from advisor_simulation.replay.program import Program

#: Where the latency of a message passes: on the processors of both ends, as in Dimemas, or on the wire.
Startup = Literal["processor", "wire"]
#: Messages up to here are sent at once, larger ones only when the receiver is ready.
EAGER_BYTES: Final = 16384.0
#: A megabyte in a configuration of Dimemas.
MEGABYTE: Final = float(2**20)


@dataclass(frozen=True, slots=True)
class Network:
    """A machine to replay on: seconds, bytes a second, ``cpu_ratio`` times the recorded computation.

    A message takes latency + bytes / bandwidth; between ranks of one node by ``intra_latency_s`` and
    ``intra_bandwidth`` (None: like the others). ``eager_bytes`` None leaves the protocol to each message's size 0: all
    eager. ``links_out``, ``links_in`` (of a node) and ``buses`` limit how many messages travel at a time, 0: no
    limit. ``ranks_per_node`` fills nodes in the order of ranks; None: the nodes of the recording, where it names them.
    """

    latency_s: float = 0.0
    bandwidth: float = math.inf
    intra_latency_s: float | None = None
    intra_bandwidth: float | None = None
    eager_bytes: float = EAGER_BYTES
    startup: Startup = "processor"
    collectives: Models = field(default_factory=lambda: DIMEMAS)
    links_out: int = 0
    links_in: int = 0
    buses: int = 0
    ranks_per_node: int | None = 1
    cpu_ratio: float = 1.0
    rank_ratios: Mapping[int, float] = field(default_factory=dict)
    region_ratios: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_value(self.latency_s, "the latency")
        _check_value(1.0 / self.bandwidth if self.bandwidth else math.nan, "1 / bandwidth")
        _check_value(self.cpu_ratio, "the CPU ratio")
        if self.intra_latency_s is not None:
            _check_value(self.intra_latency_s, "the latency within a node")

    @property
    def is_contended(self) -> bool:
        """Whether messages compete for links or buses, so that their order depends on times."""
        return bool(self.links_out or self.links_in or self.buses)

    @property
    def latencies(self) -> tuple[float, float]:
        """Seconds between nodes and within one."""
        return self.latency_s, self.latency_s if self.intra_latency_s is None else self.intra_latency_s

    @property
    def gaps(self) -> tuple[float, float]:
        """Seconds per byte between nodes and within one."""
        inner = self.bandwidth if self.intra_bandwidth is None else self.intra_bandwidth
        return 1.0 / self.bandwidth, 1.0 / inner

    @property
    def is_uniform(self) -> bool:
        """Whether messages within a node cost the same as those between nodes."""
        return self.intra_latency_s is None and self.intra_bandwidth is None


def _check_value(value: float, what: str) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{what} must be a number from 0 on, not {value:g}")


#: No latency, and infinite bandwidth.
IDEAL: Final = Network(eager_bytes=math.inf)


def rank_nodes(network: Network, program: Program) -> IntArray:
    """Return the node of each rank (ranks,)."""
    if network.ranks_per_node:
        return np.arange(program.ranks) // network.ranks_per_node
    if len(program.hosts) == program.ranks and all(program.hosts):
        return np.unique(np.array(program.hosts), return_inverse=True)[1].astype(np.int64)
    return np.arange(program.ranks)


def from_machine(machine: Machine, latency_s: float | None = None, bandwidth: float | None = None) -> Network:
    """Return the network of a machine model, with another latency or bandwidth where they are given.

    Raises ``UsageError`` where the model and the arguments leave one of them open.
    """
    found = machine.network
    if found is not None:
        latency_s = found.latency if latency_s is None else latency_s
        bandwidth = found.bandwidth if bandwidth is None else bandwidth
    missing = [name for name, value in (("latency", latency_s), ("bandwidth", bandwidth)) if value is None]
    if latency_s is None or bandwidth is None:
        options = " and ".join(f"--{name}" for name in missing)
        raise UsageError(f"the model {machine.name} names no {' and no '.join(missing)} of a network; add {options}")
    eager = EAGER_BYTES if found is None or found.eager_limit is None else float(found.eager_limit)
    return Network(latency_s=float(latency_s), bandwidth=float(bandwidth), eager_bytes=eager)
