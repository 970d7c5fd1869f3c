"""What the network and the imbalance cost: the recorded run against replays without them.

Transfer efficiency = run time on an ideal network / recorded run time, serialization efficiency = longest computation
of a rank / run time on an ideal network (POP Centre of Excellence; their product is communication efficiency), all
between start-up and shutdown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.replay import engine, outcome, waits
from advisor_simulation.replay.network import IDEAL, Network
from advisor_simulation.replay.program import Op, Program

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: A latency or bandwidth matters no more where the run takes at most this share longer than without it.
ENOUGH: Final = 0.01
#: Halvings of the interval in which such a latency or bandwidth is looked for.
_HALVINGS: Final = 40


@dataclass(frozen=True, slots=True)
class NetworkCosts:
    """Seconds between start-up and shutdown: recorded, without a network, with balanced ranks as well, and computing.

    Each run counts as long as the rank that is longest between the two.

    ``balanced_s`` is the ideal network with the bursts of each rank scaled to the same total; ``longest_s`` the
    longest computation of a rank, ``mean_s`` the mean one.
    """

    recorded_s: float
    ideal_s: float
    balanced_s: float
    longest_s: float
    mean_s: float

    @property
    def transfer_efficiency(self) -> float:
        """Transfer efficiency, 0 to 1: run time on an ideal network / recorded run time."""
        return min(self.ideal_s / max(self.recorded_s, 1e-300), 1.0)

    @property
    def serialization_efficiency(self) -> float:
        """Serialization efficiency, 0 to 1: longest computation of a rank / run time on an ideal network."""
        return min(self.longest_s / max(self.ideal_s, 1e-300), 1.0)


def compute_costs(program: Program) -> NetworkCosts | None:
    """Return what the network costs; None where the recording holds no times of calls."""
    if program.end_s is None or outcome.recorded_time_s(program) is None:
        return None
    span = waits.find_computing_span(program)
    recorded = waits.longest_span_s(program, program.end_s, span)
    plan = engine.prepare_program(program, IDEAL)
    ends = engine.operation_ends(plan, engine.replay_steps(plan, IDEAL), program)
    ideal = waits.longest_span_s(program, ends, span)
    computed = waits.span_computing_s(program, ends, span)
    mean = float(computed.mean())
    even = replace(IDEAL, rank_ratios=_levelling_factors(computed))
    other = engine.prepare_program(program, even)
    balanced = waits.longest_span_s(
        program, engine.operation_ends(other, engine.replay_steps(other, even), program), span
    )
    return NetworkCosts(recorded, ideal, balanced, float(computed.max()), mean)


def _levelling_factors(computed_s: FloatArray) -> dict[int, float]:
    """Return the factor on the computation of each rank that makes all of them the mean."""
    mean = float(computed_s.mean())
    return {rank: mean / each if each > 0 else 1.0 for rank, each in enumerate(computed_s.tolist())}


@dataclass(frozen=True, slots=True)
class PathShare:
    """Seconds that a region's messages and collectives take on the critical path, for latencies and for bytes.

    ``region`` is the line of the calls where it is known.
    ``size`` is the largest power of two that is no larger than the bytes of most of them (0: none have bytes).
    """

    region: str
    call: str
    size: int
    latency_s: float
    transfer_s: float

    @property
    def bound_by(self) -> str:
        """What most of it is spent on: ``latency`` or ``bandwidth``."""
        return "latency" if self.latency_s >= self.transfer_s else "bandwidth"


def find_path_shares(program: Program, network: Network) -> list[PathShare]:
    """Return what latencies and bytes on the critical path take, by region, call and size, the largest first."""
    found = outcome.replay_program(program, network)
    if found.path is None:
        return []
    path = found.path
    sizes = np.where(path.bytes > 0, np.exp2(np.floor(np.log2(np.maximum(path.bytes, 1)))), 0).astype(np.int64)
    sent = np.where(program.link[path.op] >= 0, _operation_bytes(program)[path.op], 0)
    sizes = np.where(sent > 0, np.exp2(np.floor(np.log2(np.maximum(sent, 1)))), sizes).astype(np.int64)
    shares: dict[tuple[str, str, int], list[float]] = {}
    columns = (path.op, sizes, path.latencies * network.latency_s, path.bytes * network.gaps[0])
    for op, size, latency, transfer in zip(*(column.tolist() for column in columns), strict=True):
        if latency or transfer:
            key = program.find_site(op), program.find_name(int(program.call[op])), size
            share = shares.setdefault(key, [0.0, 0.0])
            share[0] += latency
            share[1] += transfer
    made = [PathShare(*key, *share) for key, share in shares.items()]
    return sorted(made, key=lambda share: -(share.latency_s + share.transfer_s))


def _operation_bytes(program: Program) -> FloatArray:
    """Return the bytes of the message or collective operation of each operation."""
    result = np.zeros(len(program.op))
    linked = (program.link >= 0) & (program.op != Op.JOIN)
    result[linked] = program.sizes[program.link[linked]]
    joins = program.op == Op.JOIN
    result[joins] = program.collectives.size[program.link[joins]]
    return result


def find_enough_latency(program: Program, network: Network) -> float:
    """Return the latency (s) up to which the run takes at most ``ENOUGH`` longer than without latency."""
    plan = engine.prepare_program(program, network)

    def replay_time(latency_s: float) -> float:
        return engine.replay_steps(plan, replace(network, latency_s=latency_s), keep=False, replays=_HALVINGS).time_s

    return _find_highest(replay_time, 1e-9, 1e-1)


def find_enough_bandwidth(program: Program, network: Network) -> float:
    """Return the bandwidth (B/s) from which on the run takes at most ``ENOUGH`` longer than with an infinite one."""
    plan = engine.prepare_program(program, network)

    def replay_time(gap: float) -> float:
        return engine.replay_steps(
            plan, replace(network, bandwidth=engine.to_bandwidth(gap)), keep=False, replays=_HALVINGS
        ).time_s

    return engine.to_bandwidth(_find_highest(replay_time, 1e-13, 1e-3))


def _find_highest(time: Callable[[float], float], low: float, high: float) -> float:
    """Return the largest cost between ``low`` and ``high`` with which the run is hardly longer than without it."""
    limit = time(0.0) * (1.0 + ENOUGH)
    if time(high) <= limit:
        return high
    low, high = math.log(low), math.log(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if time(math.exp(middle)) <= limit else (low, middle)
        if high - low < 1e-3:
            break
    return math.exp(low)
