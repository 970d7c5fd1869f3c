"""Synthetic measurements whose model is known: terms ``x^power * log2(x)^logs``, uniform noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: The powers and logarithms of the truth; this is the search space of Extra-P 4.2.5 too, term for term.
EXPONENTS: Final = tuple(
    (Fraction(pair.partition(",")[0]), int(pair.partition(",")[2]))
    for line in (
        "0,1 0,2 1/4,0 1/4,1 1/4,2 1/3,0 1/3,1 1/3,2 1/2,0 1/2,1 1/2,2 2/3,0 2/3,1 2/3,2 3/4,0 3/4,1 3/4,2 4/5,0",
        "1,0 1,1 1,2 5/4,0 5/4,1 4/3,0 4/3,1 3/2,0 3/2,1 3/2,2 5/3,0 7/4,0",
        "2,0 2,1 2,2 9/4,0 7/3,0 5/2,0 5/2,1 5/2,2 8/3,0 11/4,0 3,0 3,1",
    )
    for pair in line.split()
)
#: Five values to measure at, then four beyond.
DOUBLING: Final = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
EVEN: Final = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0)
MEASURED: Final = 5
REPEATS: Final = 5

Spread = Literal["even", "magnitudes"]


@dataclass(frozen=True, slots=True)
class Truth:
    """K cases at the same ``points`` (n, m): measured ``values`` (k, n, repeats), true ``powers`` (k, m).

    ``targets`` (t, m) are the points beyond, ``beyond`` (k, t) the true values there.
    """

    points: FloatArray
    values: FloatArray
    powers: FloatArray
    targets: FloatArray
    beyond: FloatArray


def cases(
    parameters: int,
    number: int,
    seed: int,
    noise: float = 0.05,
    axis: tuple[float, ...] = DOUBLING,
    spread: Spread = "even",
) -> Truth:
    """Return ``number`` cases of a constant and terms: each parameter alone, or multiplied with others, by chance.

    Coefficients are between 0.001 and 1000, ``even`` or by ``magnitudes``; each measured value is off by up to
    ``noise``.
    """
    draw = np.random.default_rng(seed)
    points = np.array(list(product(axis[:MEASURED], repeat=parameters)))
    targets = np.array([[value] * parameters for value in axis[MEASURED:]])
    rows = [_case(draw, parameters, np.concatenate([points, targets]), spread) for _ in range(number)]
    exact = np.stack([row[0] for row in rows])
    measured = exact[:, : len(points), None]
    off = draw.uniform(-noise, noise, (number, len(points), REPEATS))
    powers = np.array([row[1] for row in rows])
    return Truth(points, measured * (1.0 + off), powers, targets, exact[:, len(points) :])


def _case(
    draw: np.random.Generator, parameters: int, points: FloatArray, spread: Spread
) -> tuple[FloatArray, list[float]]:  # fmt: skip
    chosen = [EXPONENTS[draw.integers(len(EXPONENTS))] for _ in range(parameters)]
    groups: list[list[int]] = []
    for parameter in range(parameters):
        group = int(draw.integers(len(groups) + 1))
        groups += [[]] if group == len(groups) else []
        groups[group].append(parameter)
    coefficients = draw.uniform(0.001, 1000.0, len(groups) + 1)
    if spread == "magnitudes":
        coefficients = np.exp(draw.uniform(np.log(0.001), np.log(1000.0), len(groups) + 1))
    total = np.full(len(points), coefficients[0])
    for coefficient, group in zip(coefficients[1:], groups, strict=True):
        term = np.full(len(points), coefficient)
        for parameter in group:
            power, logs = chosen[parameter]
            term = term * points[:, parameter] ** float(power) * np.log2(points[:, parameter]) ** logs
        total = total + term
    return total, [float(power) for power, _ in chosen]
