"""Reports of commands as pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.model.reports import Bars, Code, HeatMap, Series, Table, Text
from advisor.output import numbers
from advisor.output.clean import clean
from advisor.output.html import figures, filling
from advisor.output.html.grids import Grid, brief, grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.model.reports import Cell, Report

#: Rows of a table; the JSON document has them all.
_ROWS = 1_000
_CODE = "    "
#: A number and its unit stay on one line.
_TOGETHER = "\N{NO-BREAK SPACE}"


def page(report: Report) -> str:
    """Return a report as one page of HTML; raises ``AdvisorError`` without the libraries that it is made with."""
    pictures = [part for part in report.parts if isinstance(part, Bars | Series | HeatMap)]
    drawn = iter(figures.within(pictures, figures.PICTURES_B))
    parts: list[dict[str, Any]] = []
    for part in report.parts:
        if isinstance(part, Bars | Series | HeatMap):
            figure = next(drawn)
            parts += [*_heading(part.title), {"kind": "figure", "figure": figure}]
        elif isinstance(part, Text):
            parts += _paragraphs(part.text)
        elif isinstance(part, Code):
            parts += [*_heading(part.title), {"kind": "code", "text": _lines(part.text)}]
        else:
            parts += [*_heading(part.title), {"kind": "table", "table": _table(part)}]
    return filling.filled("report.html.j2", {"title": brief(report.title) or "gapwatch", "parts": parts})


def _heading(title: str) -> list[dict[str, Any]]:
    return [{"kind": "heading", "text": brief(title)}] if title else []


def _paragraphs(text: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a text; those indented by four are code."""
    code: list[str] = []
    for row in [*text.expandtabs(4).strip("\n").split("\n"), ""]:
        if row.startswith(_CODE):
            code.append(row)
            continue
        if code:
            yield {"kind": "code", "text": _lines("\n".join(code))}
            code = []
        if row:
            yield {"kind": "text", "text": clean(row)}


def _lines(text: str) -> str:
    return "\n".join(clean(row) for row in text.expandtabs(4).strip("\n").split("\n"))


def _table(part: Table) -> Grid:
    rows = [[_cell(cell, column.unit) for cell, column in zip(row, part.columns, strict=True)] for row in part.rows]
    left = len(rows) - _ROWS
    title = f"the first {_ROWS} of {len(rows)} rows" if left > 0 else ""
    return grid(title, [column.name for column in part.columns], rows[:_ROWS] or [_none(part.columns)])


def _none(columns: Sequence[object]) -> list[str]:
    return ["none", *[""] * (len(columns) - 1)]


def _cell(cell: Cell, unit: str) -> str:
    if isinstance(cell, int) and not unit:
        return str(cell)
    if isinstance(cell, float):
        return numbers.quantity(cell, unit).replace(" ", _TOGETHER)
    return "-" if cell is None else numbers.quantity(cell, unit)
