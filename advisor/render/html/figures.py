"""Pictures of a page, each with its numbers as a table for those who cannot see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.render import numbers
from advisor.render.clean import clean
from advisor.render.html.charts import DARK, LIGHT, picture
from advisor.render.html.grids import Grid, grid
from advisor.reports import Bars, HeatMap

if TYPE_CHECKING:
    from advisor.reports import Series

#: Rows of the table behind a picture.
_ROWS = 200


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture for light and for dark pages, and its numbers."""

    title: str
    light: str
    dark: str
    table: Grid


def figure(part: Bars | Series | HeatMap) -> Figure:
    """Return the picture of a part of a report."""
    return Figure(clean(part.title), picture(part, LIGHT), picture(part, DARK), table(part))


def table(part: Bars | Series | HeatMap) -> Grid:
    """Return the numbers of a part of a report."""
    if isinstance(part, HeatMap):
        cells = [[_text(cell, part.unit) for cell in row] for row in part.cells]
        rows = [[name, *row] for name, row in zip(part.rows, cells, strict=True)]
        return grid("", ("", *part.columns), rows[:_ROWS])
    if isinstance(part, Bars):
        return grid("", ("", "value", ""), [(bar.name, _text(bar.value, part.unit), bar.note) for bar in part.bars])
    points = [
        (line.name, numbers.quantity(x, part.x.unit), _text(y, part.y.unit))
        for line in part.lines
        for x, y in zip(line.x, line.y, strict=True)
    ]
    return grid("", ("line", part.x.name, part.y.name), points[:_ROWS])


def _text(value: float | None, unit: str) -> str:
    return "-" if value is None else numbers.quantity(value, unit)
