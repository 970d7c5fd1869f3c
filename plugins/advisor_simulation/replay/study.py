"""``--fit``: traces at several numbers of processors, replayed, fitted, and checked at points of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import UsageError
from advisor_simulation.replay import fitting, piecewise, sweeps
from advisor_simulation.replay.program import total_burst_s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from advisor.model.records import FloatArray
    from advisor_simulation.replay.fitting import Model, Plane
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program
    from advisor_simulation.replay.sweeps import Ranges


@dataclass(frozen=True, slots=True)
class AtOneP:
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
class Study:
    """The model over P and what it was made from, and how many points each fit and each check had."""

    model: Model
    each: tuple[AtOneP, ...]
    fitted: int
    checked: int


def study(
    programs: Sequence[Program],
    base: Network,
    ranges: Ranges,
    points: int,
    seed: int,
    done: Callable[[int], None] | None = None,
) -> Study:
    """Return the models of traces of one program at different P; raises ``UsageError`` where two have the same P."""
    by_count = {program.ranks: program for program in programs}
    if len(by_count) < len(programs):
        raise UsageError("two of the traces have the same number of ranks; --fit takes one of each")
    factors = fitting.locality({count: total_burst_s(program) for count, program in by_count.items()})
    fit, check = (sweeps.random_points(base, ranges, points, seed + part) for part in range(2))
    plain, primed, replayed = {}, {}, {}
    for number, (count, program) in enumerate(sorted(by_count.items())):
        plain[count] = fitted(program, fit)
        divided = [replace(point, cpu_ratio=point.cpu_ratio / factors[count]) for point in fit]
        primed[count] = fitted(program, divided)
        replayed[count] = sweeps.times(program, check)
        if done:
            done(number + 1)
    model = fitting.model(primed, factors)
    each = tuple(
        _at_one(program, base, ranges, (factors[count], plain[count], primed[count]), model, check, replayed[count])
        for count, program in sorted(by_count.items())
    )
    return Study(model, each, len(fit), len(check))


def plane_of(points: Sequence[Network], time_s: FloatArray) -> Plane | None:
    """Return formula (0) fitted to run times at points; None where they are too few, or do not vary in both."""
    try:
        return fitting.plane(*axes(points), time_s)
    except UsageError:
        return None


def fitted(program: Program, points: Sequence[Network]) -> Plane:
    """Return formula (0) fitted to the replays at points."""
    return fitting.plane(*axes(points), sweeps.times(program, points))


def axes(points: Sequence[Network]) -> tuple[FloatArray, FloatArray]:
    """Return latencies and seconds per byte of points."""
    return np.array([point.latency_s for point in points]), np.array([point.gaps[0] for point in points])


def _at_one(
    program: Program,
    base: Network,
    ranges: Ranges,
    found: tuple[float, Plane, Plane],
    model: Model,
    check: Sequence[Network],
    replayed: FloatArray,
) -> AtOneP:
    latency, gap = axes(check)
    predicted = np.array([model.at(program.ranks, a, b) for a, b in zip(latency.tolist(), gap.tolist(), strict=True)])
    exact = None
    if not base.contended:
        edges = 1.0 / ranges.bandwidths[1], 1.0 / ranges.bandwidths[0]
        exact = piecewise.explore(program, base, ranges.latencies_s, edges)
    return AtOneP(
        program.ranks,
        *found,
        fitting.largest_error(found[1].at(latency, gap), replayed),
        fitting.largest_error(predicted, replayed),
        None if exact is None else fitting.largest_error(exact.at(latency, gap), replayed),
        0 if exact is None else len(exact.planes),
    )
