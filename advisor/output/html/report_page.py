"""Reports of commands as pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from advisor.model.reports import Cell, Code, Picture, Report, Table, Text
from advisor.output import numbers
from advisor.output.clean import clean_text
from advisor.output.html import figures, templates
from advisor.output.html.templates import Grid, build_grid, clean_and_shorten

#: Rows of a table; the JSON document has them all.
_ROWS = 1_000
_CODE = "    "
#: A number and its unit stay on one line.
_TOGETHER = "\N{NO-BREAK SPACE}"


def render_report_page(report: Report) -> str:
    """Return a report as one page of HTML; raises ``AdvisorError`` without the libraries that it is made with."""
    pictures = [part for part in report.parts if isinstance(part, Picture)]
    drawn = iter(figures.build_figures(pictures, figures.PICTURES_B))
    parts: list[dict[str, Any]] = []
    for part in report.parts:
        if isinstance(part, Picture):
            figure = next(drawn)
            parts += [*_build_heading(part.title), {"kind": "figure", "figure": figure}]
        elif isinstance(part, Text):
            parts += _iterate_paragraphs(part.text)
        elif isinstance(part, Code):
            parts += [*_build_heading(part.title), {"kind": "code", "text": _clean_lines(part.text)}]
        else:
            parts += [*_build_heading(part.title), {"kind": "table", "table": _build_table(part)}]
    return templates.render_template(
        "report.html.j2", {"title": clean_and_shorten(report.title) or "gapwatch", "parts": parts}
    )


def _build_heading(title: str) -> list[dict[str, Any]]:
    return [{"kind": "heading", "text": clean_and_shorten(title)}] if title else []


def _iterate_paragraphs(text: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a text; those indented by four are code."""
    code: list[str] = []
    for row in [*text.expandtabs(4).strip("\n").split("\n"), ""]:
        if row.startswith(_CODE):
            code.append(row)
            continue
        if code:
            yield {"kind": "code", "text": _clean_lines("\n".join(code))}
            code = []
        if row:
            yield {"kind": "text", "text": clean_text(row)}


def _clean_lines(text: str) -> str:
    return "\n".join(clean_text(row) for row in text.expandtabs(4).strip("\n").split("\n"))


def _build_table(part: Table) -> Grid:
    rows = [
        [_format_cell(cell, column.unit) for cell, column in zip(row, part.columns, strict=True)] for row in part.rows
    ]
    left = len(rows) - _ROWS
    title = f"the first {_ROWS} of {len(rows)} rows" if left > 0 else ""
    return build_grid(title, [column.name for column in part.columns], rows[:_ROWS] or [_make_empty_row(part.columns)])


def _make_empty_row(columns: Sequence[object]) -> list[str]:
    return ["none", *[""] * (len(columns) - 1)]


def _format_cell(cell: Cell, unit: str) -> str:
    if isinstance(cell, int) and not unit:
        return str(cell)
    if isinstance(cell, float):
        return numbers.format_value(cell, unit).replace(" ", _TOGETHER)
    return "-" if cell is None else numbers.format_value(cell, unit)
