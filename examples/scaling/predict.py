"""Fit measured times at small N, predict larger ones, and print a table of errors, (predicted - actual) / actual.

    python predict.py MEASURED [--up-to 192]

``MEASURED`` is what ``measure.py`` wrote. Two models each: the normal form, which knows nothing but the times, and
T = X beta with the counts of ``PROGRAM.yaml``, whose costs are fitted to the same small runs.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor_scaling import collect, extrap_files, forecasts, study
from advisor_scaling.linear import application, setup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.model.records import FloatArray
    from advisor_scaling.study import ScalingStudy

HERE = Path(__file__).resolve().parent
PROGRAMS = ("gauss", "matmul", "ocean")


def read(path: Path) -> ScalingStudy:
    """Return the study of one program's times."""
    return collect.from_measurements(extrap_files.read_measurements(path), path)[0]


def of_points(each: ScalingStudy, which: FloatArray) -> ScalingStudy:
    """Return the study of some of the points."""
    return replace(each, points=each.points[which], values=each.values[:, which], scale=each.scale[:, which])


def errors(path: Path, largest: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return points beyond ``largest``, the seconds measured there, and the errors of both models."""
    whole = read(path)
    small = whole.points[:, 0] <= largest
    known, ahead = of_points(whole, small), of_points(whole, ~small)
    actual = np.nanmedian(ahead.values[0], axis=1)
    normal = forecasts.compute_forecast(study.fit_study(known), ahead.points).value[0]
    stated = application.read_application(HERE / f"{path.stem}.yaml")
    linear = setup.build_models(stated, known, setup.select_measured_times(known), ())[0](ahead.points)
    return ahead.points, actual, normal / actual - 1, linear / actual - 1


def table(folder: Path, largest: float) -> str:
    """Return the table of all programs, and how many predictions are within 20 %."""
    return table_of({program: errors(folder / f"{program}.txt", largest) for program in PROGRAMS}, "measured")


def table_of(found: Mapping[str, tuple[FloatArray, FloatArray, FloatArray, FloatArray]], how: str) -> str:
    """Return the table of what ``errors`` returns by program; ``how`` says where the actual times are from."""
    rows = [f"| program | N | P | {how}, s | normal form | T = X beta |", "|---|---|---|---|---|---|"]
    for program, (points, actual, normal, linear) in found.items():
        rows += [
            f"| {program} | {n:g} | {p:g} | {seconds:.4f} | {one:+.0%} | {two:+.0%} |"
            for (n, p), seconds, one, two in zip(points, actual, normal, linear, strict=True)
        ]
    off = np.abs(np.concatenate([np.stack(each[2:]) for each in found.values()], axis=1))
    within = (off <= 0.2).mean(axis=1)
    words = f"Within 20 % of {off.shape[1]}: {within[0]:.0%} by the normal form, {within[1]:.0%} by T = X beta."
    return "\n".join([*rows, "", words])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--up-to", type=float, default=192, help="the largest N that models are fitted to")
    given = parser.parse_args()
    print(table(given.measured, given.up_to))


if __name__ == "__main__":
    main()
