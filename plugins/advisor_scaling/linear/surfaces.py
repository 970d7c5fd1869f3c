"""Shares of blocks and sensitivities as surfaces over problem size and processors (source, figures 4 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.reports import HeatMap, Part
from advisor_scaling.linear import model
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_scaling.linear.model import LinearModel

#: Places along each axis; a block that never takes this share of the time gets no map.
_PLACES: Final = 7
_SMALLEST: Final = 0.02
#: By how much a parameter of the machine is changed for the map: figure 5 has 10 us of latency.
_STEPS: Final = {"latency": ("messages", 10e-6, "10 us of latency")}


def build_surface_parts(each: LinearModel, at: FloatArray) -> list[Part]:
    """Return maps over two parameters up to the largest of ``at`` (t, m): shares of time, seconds by latency.

    Nothing where the model does not have two parameters, of which one is processors.
    """
    axes = _find_axes(each)
    if axes is None:
        return []
    size, ranks = axes
    top = at.max(axis=0)
    sizes = _spread_axis(max(top[size] / 2 ** (_PLACES - 1), 1.0), top[size])
    counts = _spread_axis(1.0, max(top[ranks], 2.0))
    points = np.tile(top, (len(sizes) * len(counts), 1))
    points[:, size] = np.repeat(sizes, len(counts))
    points[:, ranks] = np.tile(counts, len(sizes))
    seconds = each.column_seconds(points)
    total = np.maximum(seconds.sum(axis=0), 1e-300)
    rows = tuple(f"{each.parameters[size]}={value:g}" for value in sizes)
    columns = tuple(f"{each.parameters[ranks]}={value:g}" for value in counts)
    shape = (len(sizes), len(counts))
    parts: list[Part] = [
        HeatMap(f"Share of {column} in the time", "share", rows, columns, _to_cells(part / total, shape))
        for column, part in zip(each.columns, seconds, strict=True)
        if (part / total).max() >= _SMALLEST and len(each.columns) > 1
    ]
    for column, step, words in _STEPS.values():
        if column in each.columns:
            counted = model.build_matrix(each.x, (column,), each.parameters, points)[:, 0]
            parts.append(
                HeatMap(f"Seconds more for each {words}", "s", rows, columns, _to_cells(counted * step, shape))
            )
    return parts


def _find_axes(each: LinearModel) -> tuple[int, int] | None:
    ranks = [place for place, name in enumerate(each.parameters) if PROCESSORS.fullmatch(name)]
    sizes = [place for place in range(len(each.parameters)) if place not in ranks]
    return (sizes[0], ranks[0]) if len(ranks) == 1 and sizes else None


def _spread_axis(low: float, high: float) -> FloatArray:
    return np.unique(np.round(np.geomspace(low, max(high, low), _PLACES)))


def _to_cells(values: FloatArray, shape: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in values.reshape(shape).tolist())
