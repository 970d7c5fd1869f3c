"""The exact run time over latency and 1 / bandwidth: the largest of some planes, each a critical path.

Without links and buses every replay is a sum and maximum of terms that are linear in L and 1 / BW with counts that
are never negative, so T is convex and piecewise linear. A critical path gives a plane that touches T where it was
replayed and lies nowhere above it. Planes are added at the corners of what is known so far until T is met at all
corners; a convex function that is met at all corners of the planes is met in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import UsageError
from advisor_simulation.replay import engine, slopes

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program

#: Planes that are looked for at most, and how far the planes may lie below T, as share of it.
PLANES: Final = 600
EXACT: Final = 1e-10
#: Replays that an exploration takes, about: whether compiling pays.
_REPLAYS: Final = 100

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PiecewiseTime:
    """T(L, x) = max over planes of alpha + beta L + gamma x, x = 1 / BW; ``planes`` (planes, 3).

    Holds for L in ``latencies_s`` and x in ``gaps`` (seconds per byte). ``below`` is by how much T may exceed it,
    as share of T: 0 up to rounding where all planes were found. ``replays`` were needed.
    """

    planes: FloatArray
    latencies_s: tuple[float, float]
    gaps: tuple[float, float]
    below: float
    replays: int

    def evaluate_times(self, latency_s: FloatArray | float, gap: FloatArray | float) -> FloatArray:
        """Return T, seconds, at points of one shape."""
        latency, x = np.asarray(latency_s, dtype=np.float64), np.asarray(gap, dtype=np.float64)
        values = self.planes[:, 0] + self.planes[:, 1] * latency[..., None] + self.planes[:, 2] * x[..., None]
        result: FloatArray = values.max(axis=-1)
        return result

    def find_plane(self, latency_s: float, gap: float) -> FloatArray:
        """Return alpha, beta and gamma of the plane that holds at a point."""
        values = self.planes @ np.array([1.0, latency_s, gap])
        result: FloatArray = self.planes[int(values.argmax())]
        return result


def explore_planes(
    program: Program,
    base: Network,
    latencies_s: tuple[float, float],
    gaps: tuple[float, float],
    done: Callable[[int], None] | None = None,
) -> PiecewiseTime:
    """Return T over the rectangle; raises ``UsageError`` for links and buses, ``DeadlockError``."""
    if base.is_contended:
        raise UsageError("with links or buses the run time is not piecewise linear; leave out --links and --buses")
    plan = engine.prepare_program(program, base)
    planes: list[tuple[float, float, float]] = []
    met: dict[Point, float] = {}
    corners = [(latency, gap) for latency in latencies_s for gap in gaps]
    while True:
        fresh = [corner for corner in corners if corner not in met]
        for corner in fresh:
            plane, met[corner] = _critical_plane(plan, base, corner)
            if not planes or met[corner] - _evaluate_planes(planes, corner) > EXACT * met[corner]:
                planes.append(plane)
            if done:
                done(len(planes))
            if len(planes) >= PLANES:
                break
        if not fresh or len(planes) >= PLANES:
            break
        corners = _find_corners(planes, latencies_s, gaps)
    open_ = [corner for corner in _find_corners(planes, latencies_s, gaps) if corner not in met]
    below = _find_excess(plan, base, open_, planes) if open_ else _worst_excess(planes, met)
    return PiecewiseTime(np.array(planes), latencies_s, gaps, below, len(met) + len(open_))


def _critical_plane(plan: engine.OrderedSteps, base: Network, at: Point) -> tuple[tuple[float, float, float], float]:
    """Return the plane of the critical path at a point, and T there."""
    point = replace(base, latency_s=at[0], bandwidth=engine.to_bandwidth(at[1]))
    time, alpha, beta, gamma = slopes.compute_coefficients(plan, point, _REPLAYS)
    return (alpha, beta, gamma), time


def _evaluate_planes(planes: list[tuple[float, float, float]], at: Point) -> float:
    return float((np.array(planes) @ np.array([1.0, *at])).max())


def _worst_excess(planes: list[tuple[float, float, float]], met: dict[Point, float]) -> float:
    known, worst = np.array(planes), 0.0
    for at, t in met.items():
        if t > 0:
            worst = max(worst, (t - float((known @ np.array([1.0, *at])).max())) / t)
    return worst


def _find_excess(
    plan: engine.OrderedSteps, base: Network, corners: list[Point], planes: list[tuple[float, float, float]]
) -> float:
    """Return by how much T exceeds the planes at corners that were not looked at before, at most, as share of T."""
    points = [replace(base, latency_s=latency, bandwidth=engine.to_bandwidth(gap)) for latency, gap in corners]
    times = engine.replay_times(plan, points).tolist()
    return _worst_excess(planes, dict(zip(corners, times, strict=True)))


def _find_corners(
    planes: list[tuple[float, float, float]], latencies_s: tuple[float, float], gaps: tuple[float, float]
) -> list[Point]:
    """Return the corners of the parts of the rectangle in which one plane each is the largest."""
    box = [(latencies_s[0], gaps[0]), (latencies_s[1], gaps[0]), (latencies_s[1], gaps[1]), (latencies_s[0], gaps[1])]
    known = np.array(planes)
    found: dict[Point, None] = {}
    for number in range(len(planes)):
        found.update(dict.fromkeys(_plane_region(known, number, box)))
    return list(found)


def _plane_region(planes: FloatArray, number: int, box: list[Point]) -> list[Point]:
    """Return the part of the rectangle in which a plane is the largest: cut by what is higher until nothing is."""
    part = box
    open_ = np.ones(len(planes), dtype=bool)
    open_[number] = False
    while part and open_.any():
        corners = np.array([(1.0, latency, gap) for latency, gap in part])
        over = ((planes - planes[number]) @ corners.T).max(axis=1)
        highest = int(np.where(open_, over, -np.inf).argmax())
        if over[highest] <= 0.0:
            break
        open_[highest] = False
        part = _cut_polygon(part, tuple((planes[number] - planes[highest]).tolist()))
    return part


def _cut_polygon(polygon: list[Point], over: tuple[float, ...]) -> list[Point]:
    """Return the part of a convex polygon in which over[0] + over[1] L + over[2] x is not negative."""
    values = [over[0] + over[1] * latency + over[2] * gap for latency, gap in polygon]
    kept: list[Point] = []
    for at, (here, value) in enumerate(zip(polygon, values, strict=True)):
        there, after = polygon[(at + 1) % len(polygon)], values[(at + 1) % len(polygon)]
        if value >= 0:
            kept.append(here)
        if (value > 0 > after) or (value < 0 < after):
            share = value / (value - after)
            kept.append((here[0] + share * (there[0] - here[0]), here[1] + share * (there[1] - here[1])))
    return kept
