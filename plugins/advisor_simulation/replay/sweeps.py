"""Run times at many machine points: random or on a grid, here or on a cluster, always the same for one seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.support import cluster
from advisor_simulation.replay import contended_replay, engine

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program

#: Ranges of points where none are named: seconds, bytes a second, factors on computation.
LATENCIES: Final = (0.0, 1e-4)
BANDWIDTHS: Final = (1e8, 1e10)
#: Points that a worker of a cluster gets at a time.
PORTION: Final = 64


@dataclass(frozen=True, slots=True)
class Ranges:
    """Between which values points lie; ``cpu_ratios`` may be one value."""

    latencies_s: tuple[float, float] = LATENCIES
    bandwidths: tuple[float, float] = BANDWIDTHS
    cpu_ratios: tuple[float, float] = (1.0, 1.0)


def make_random_points(base: Network, ranges: Ranges, count: int, seed: int) -> list[Network]:
    """Return ``count`` points: latency and ratio uniform, 1 / bandwidth uniform, as the model is linear in them."""
    generator = np.random.default_rng(seed)
    latency = generator.uniform(*ranges.latencies_s, count)
    gap = generator.uniform(1.0 / ranges.bandwidths[1], 1.0 / ranges.bandwidths[0], count)
    ratio = generator.uniform(*ranges.cpu_ratios, count)
    return _make_points(base, latency, gap, ratio)


def make_grid_points(base: Network, ranges: Ranges, count: int) -> list[Network]:
    """Return the points of the largest grid of at most ``count`` points, as many along each axis that varies."""
    varying = [low < high for low, high in (ranges.latencies_s, ranges.bandwidths, ranges.cpu_ratios)]
    side = max(math.floor(count ** (1.0 / max(sum(varying), 1)) + 1e-9), 1)
    sides = [side if varies else 1 for varies in varying]
    gaps = 1.0 / ranges.bandwidths[1], 1.0 / ranges.bandwidths[0]
    axes = [np.linspace(*ends, n) for ends, n in zip((ranges.latencies_s, gaps, ranges.cpu_ratios), sides, strict=True)]
    latency, gap, ratio = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    return _make_points(base, latency, gap, ratio)


def _make_points(base: Network, latency: FloatArray, gap: FloatArray, ratio: FloatArray) -> list[Network]:
    columns = zip(latency.tolist(), gap.tolist(), (ratio * base.cpu_ratio).tolist(), strict=True)
    return [replace(base, latency_s=a, bandwidth=engine.to_bandwidth(b), cpu_ratio=c) for a, b, c in columns]


def sweep_times(program: Program, points: Sequence[Network], done: Callable[[int], None] | None = None) -> FloatArray:
    """Return the run time at each point, seconds; the points share all but speeds. Raises ``DeadlockError``."""
    if not points:
        return np.zeros(0)
    if points[0].is_contended:
        found = np.zeros(len(points))
        for at, point in enumerate(points):
            found[at] = contended_replay.replay_contended(program, point).time_s
            if done:
                done(at + 1)
        return found
    return engine.replay_times(engine.prepare_program(program, points[0]), points, done)


def sweep_on_cluster(
    program: Program, points: Sequence[Network], address: str, done: Callable[[int], None] | None = None
) -> FloatArray:
    """Return what ``sweep_times`` returns, computed by the workers of a Dask cluster; raises ``UsageError``."""
    client = cluster.connect_scheduler(address)
    distributed: Any = import_module("distributed")
    found = np.zeros(len(points))
    with client:
        sent = client.scatter(program, broadcast=True)
        portions = [list(points[low : low + PORTION]) for low in range(0, len(points), PORTION)]
        futures = {client.submit(sweep_times, sent, part, pure=False): at for at, part in enumerate(portions)}
        finished = 0
        for future in distributed.as_completed(list(futures)):
            low = futures[future] * PORTION
            found[low : low + PORTION] = future.result()
            finished += len(portions[futures[future]])
            if done:
                done(finished)
    return found
