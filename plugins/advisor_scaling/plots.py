"""Predictions drawn into a PNG or SVG file by matplotlib, which is an extra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import UsageError
from advisor.support.atomic_write import atomic_write
from advisor.support.extras import install_line
from advisor_scaling import dominance

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor_scaling.engine import FittedModels
    from advisor_scaling.study import ScalingStudy

KINDS: Final = (".png", ".svg")


def draw_course(each: ScalingStudy, fits: FittedModels, target: Sequence[float], level: float, path: Path) -> str:
    """Write the course of gaps (or the run) with its intervals to ``path`` and return a sentence that says so.

    ``UsageError`` for another kind of file, or without matplotlib.
    """
    if path.suffix.lower() not in KINDS:
        raise UsageError(f"--plot: {path.name} is neither a PNG nor an SVG file")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(f"plots in files need matplotlib: {install_line('html')}") from None
    seen = dominance.compute_course(each, fits, target, level)
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    measured = np.asarray(each.points)
    for k in seen.series:
        (line,) = axes.plot(seen.x, seen.forecast.value[k], label=_escape_label(each.series[k].name), marker="o")
        axes.fill_between(seen.x, seen.forecast.low[k], seen.forecast.high[k], alpha=0.2, color=line.get_color())
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=_escape_label(seen.parameter),
        ylabel="seconds",
        title=_format_title(each, seen),
    )
    axes.axvline(
        float(measured[:, dominance.find_axis(each)].max()), color="grey", linestyle=":", label="largest measured"
    )
    axes.legend()
    try:
        with atomic_write(path) as partial:
            figure.savefig(partial, format=path.suffix[1:].lower())
    except OSError as error:
        raise UsageError(f"--plot: {path}: {error.strerror or error}") from error
    return f"Drawn into {path}."


def _format_title(each: ScalingStudy, seen: dominance.ForecastCourse) -> str:
    held = ", ".join(f"{_escape_label(name)} = {value:g}" for name, value in seen.fixed_values.items())
    return _escape_label(each.program) + (f" at {held}" if held else "")


def _escape_label(name: str) -> str:
    """Return a name in which matplotlib finds no formulas, and that does not hide from its legend."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in name).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
