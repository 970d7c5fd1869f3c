"""Pictures of a page, each with its numbers as a table for those who cannot see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from advisor.model.reports import Bars, HeatMap, Picture, count_values
from advisor.output import numbers
from advisor.output.html.charts import DARK, LIGHT, draw_picture
from advisor.output.html.grids import Grid, build_grid, clean_and_shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from advisor.model.reports import Line

#: All pictures of a page together, as they stand in it.
PICTURES_B: Final = 800_000

#: Rows and columns of the table behind a picture, and how many numbers a picture may hold.
_ROWS, _COLUMNS, _MOST = 200, 65, 5_000


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture for light and for dark pages, and its numbers."""

    title: str
    light: str
    dark: str
    table: Grid
    omitted_rows: int


def build_figure(part: Picture) -> Figure:
    """Return the picture of a part of a report; of one that is too large, or empty, only the numbers."""
    heads, rows = _tabulate_part(part)
    shown = build_grid("", heads[:_COLUMNS], [row[:_COLUMNS] for row in rows[:_ROWS]])
    left = sum(map(len, rows)) - sum(map(len, shown.rows))
    light, dark = (draw_picture(part, LIGHT), draw_picture(part, DARK)) if 0 < count_values(part) <= _MOST else ("", "")
    return Figure(clean_and_shorten(part.title), light, dark, shown, left)


def build_figures(parts: Sequence[Picture], limit: int) -> list[Figure]:
    """Return the pictures as far as all of them have room in ``limit`` characters; of the others only the numbers."""
    found = []
    for part in parts:
        made = build_figure(part)
        size = len(made.light) + len(made.dark)
        found.append(made if size <= limit else replace(made, light="", dark=""))
        limit -= size if size <= limit else 0
    return found


def _tabulate_part(part: Picture) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the head and the rows of a table that holds the numbers of a part."""
    if isinstance(part, HeatMap):
        cells = [[_format_value(cell, part.unit) for cell in row] for row in part.cells]
        return ("", *part.columns), [[name, *row] for name, row in zip(part.rows, cells, strict=True)]
    if isinstance(part, Bars):
        rows = [(bar.name, _format_value(bar.value, part.unit), _format_interval(bar.low, bar.high, part.unit),
        bar.note)
                for bar in part.bars]  # fmt: skip
        return ("", "value", "interval", ""), [*rows]
    spread = any(line.low for line in part.lines)
    heads = ("line", part.x.name, part.y.name, "interval")
    points = [
        (
            line.name,
            numbers.format_axis_value(x, part.x),
            _format_value(y, part.y.unit),
            _format_interval(low, high, part.y.unit),
        )
        for line in part.lines
        for x, y, low, high in _iterate_points(line)
    ]
    return (heads, [*points]) if spread else (heads[:-1], [point[:-1] for point in points])


def _iterate_points(line: Line) -> Iterable[tuple[float, float | None, float | None, float | None]]:
    nothing: tuple[None, ...] = (None,) * len(line.x)
    return zip(line.x, line.y, line.low or nothing, line.high or nothing, strict=True)


def _format_interval(low: float | None, high: float | None, unit: str) -> str:
    return (
        ""
        if low is None or high is None
        else f"{numbers.format_value(low, unit)} to {numbers.format_value(high, unit)}"
    )


def _format_value(value: float | None, unit: str) -> str:
    return "-" if value is None else numbers.format_value(value, unit)
