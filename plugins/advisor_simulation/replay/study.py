"""``--fit``: traces at several numbers of processors, replayed, fitted, and checked at points of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import UsageError
from advisor_simulation.replay import fitting, piecewise, sweeps
from advisor_simulation.replay.program import Program, sum_burst_s

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.replay.fitting import Plane, ReplayModel
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.sweeps import Ranges


@dataclass(frozen=True, slots=True)
class RankCountFit:
    """What was found at one number of processors.

    ``plain`` and ``primed`` are formula (0) without and with the locality factor; errors are the largest
    relative ones at points that no fit has seen: of formula (0), of formula (2), and of the exact piecewise T (None:
    not piecewise linear). ``planes`` counts its planes.
    """

    processors: int
    locality: float
    plain: Plane
    primed: Plane
    error: float
    model_error: float
    piecewise_error: float | None
    planes: int


@dataclass(frozen=True, slots=True)
class FitStudy:
    """The model over P with its data, and the number of points of each fit and each check."""

    model: ReplayModel
    by_rank_count: tuple[RankCountFit, ...]
    fitted: int
    checked: int


def run_study(
    programs: Sequence[Program],
    base: Network,
    ranges: Ranges,
    points: int,
    seed: int,
    done: Callable[[int], None] | None = None,
) -> FitStudy:
    """Return the models of traces of one program at different P; raises ``UsageError`` where two have the same P."""
    by_count = {program.ranks: program for program in programs}
    if len(by_count) < len(programs):
        raise UsageError("two of the traces have the same number of ranks; --fit takes one of each")
    factors = fitting.compute_locality({count: sum_burst_s(program) for count, program in by_count.items()})
    fit, check = (sweeps.make_random_points(base, ranges, points, seed + part) for part in range(2))
    plain, primed, replayed = {}, {}, {}
    for number, (count, program) in enumerate(sorted(by_count.items())):
        plain[count] = fit_program(program, fit)
        divided = [replace(point, cpu_ratio=point.cpu_ratio / factors[count]) for point in fit]
        primed[count] = fit_program(program, divided)
        replayed[count] = sweeps.sweep_times(program, check)
        if done:
            done(number + 1)
    model = fitting.fit_model(primed, factors)
    each = tuple(
        _fit_rank_count(
            program, base, ranges, (factors[count], plain[count], primed[count]), model, check, replayed[count]
        )
        for count, program in sorted(by_count.items())
    )
    return FitStudy(model, each, len(fit), len(check))


def find_plane(points: Sequence[Network], time_s: FloatArray) -> Plane | None:
    """Return formula (0) fitted to run times at points; None where they are too few, or do not vary in both."""
    try:
        return fitting.fit_plane(*point_axes(points), time_s)
    except UsageError:
        return None


def fit_program(program: Program, points: Sequence[Network]) -> Plane:
    """Return formula (0) fitted to the replays at points."""
    return fitting.fit_plane(*point_axes(points), sweeps.sweep_times(program, points))


def point_axes(points: Sequence[Network]) -> tuple[FloatArray, FloatArray]:
    """Return latencies and seconds per byte of points."""
    return np.array([point.latency_s for point in points]), np.array([point.gaps[0] for point in points])


def _fit_rank_count(
    program: Program,
    base: Network,
    ranges: Ranges,
    found: tuple[float, Plane, Plane],
    model: ReplayModel,
    check: Sequence[Network],
    replayed: FloatArray,
) -> RankCountFit:
    latency, gap = point_axes(check)
    predicted = np.array(
        [model.predict_time(program.ranks, a, b) for a, b in zip(latency.tolist(), gap.tolist(), strict=True)]
    )
    exact = None
    if not base.is_contended:
        edges = 1.0 / ranges.bandwidths[1], 1.0 / ranges.bandwidths[0]
        exact = piecewise.explore_planes(program, base, ranges.latencies_s, edges)
    return RankCountFit(
        program.ranks,
        *found,
        fitting.compute_largest_error(found[1].predict_times(latency, gap), replayed),
        fitting.compute_largest_error(predicted, replayed),
        None if exact is None else fitting.compute_largest_error(exact.evaluate_times(latency, gap), replayed),
        0 if exact is None else len(exact.planes),
    )
