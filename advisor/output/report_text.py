"""Reports of commands, drawn as text or as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from advisor.model.reports import Bars, Cell, Code, Column, HeatMap, Part, Report, Series, Table, Text
from advisor.output import bars, heatmaps, numbers, plots
from advisor.output.page import Page, render_heading, render_lines, render_paragraph
from advisor.output.tables import ColumnHead, render_table
from advisor.output.text_cells import make_line, shorten_all

if TYPE_CHECKING:
    from rich.text import Text as Line

SCHEMA = "gapwatch/report/1"

#: What a part is called in the document.
KINDS: dict[type[Part], str] = {
    Text: "text", Code: "code", Table: "table", Bars: "bars", Series: "series", HeatMap: "heatmap"
}  # fmt: skip
#: A cell of text is folded into lines; only what would fill this many of them is shortened.
_LINES_OF_A_CELL = 4
_CODE = "    "


def render_report(report: Report, page: Page) -> str:
    """Return the report as one string for ``page``."""
    lines = render_heading(page.clean_remark(report.title), page) if report.title else []
    for part in report.parts:
        block = _render_part(part, page)
        lines += [make_line(), *block] if lines else block
    return render_lines(lines, page)


def build_report_document(report: Report) -> dict[str, Any]:
    """Return the report as plain data: ``parts`` in order, each with its ``kind`` and what it holds."""
    parts = [{"kind": KINDS[type(part)], **asdict(part)} for part in report.parts]
    return {"schema": SCHEMA, "title": report.title, "parts": parts}


def _render_part(part: Part, page: Page) -> list[Line]:
    match part:
        case Text():
            return _render_paragraphs(part, page)
        case Code():
            return _render_code(part, page)
        case Table():
            return _render_table(part, page)
        case Bars():
            return bars.draw_bars(part, page)
        case Series():
            return plots.draw_series(part, page)
        case HeatMap():
            return heatmaps.draw_heat_map(part, page)


def _render_paragraphs(part: Text, page: Page) -> list[Line]:
    rows = part.text.expandtabs(4).strip("\n").split("\n")
    return [shown for row in rows for shown in _render_row(row, page)]


def _render_row(row: str, page: Page) -> list[Line]:
    """Return one line of a text, wrapped; lines indented by four are code and stay as they are."""
    if row.startswith(_CODE):
        return [make_line((page.clean_name(row), "cyan"))]
    return render_paragraph(page.clean_remark(row), page) or [make_line()]


def _render_code(part: Code, page: Page) -> list[Line]:
    """Return lines to copy: at the margin and never wrapped."""
    rows = part.text.expandtabs(4).strip("\n").split("\n")
    title = render_heading(page.clean_remark(part.title), page) if part.title else []
    return [*title, *(make_line((page.clean_name(row), "cyan")) for row in rows)]


def _render_table(part: Table, page: Page) -> list[Line]:
    heads = [_build_head(column, [row[at] for row in part.rows], page) for at, column in enumerate(part.columns)]
    columns = [_format_cells(column, [row[at] for row in part.rows], page) for at, column in enumerate(part.columns)]
    lines = render_heading(page.clean_remark(part.title), page) if part.title else []
    if not part.rows:
        return [*lines, make_line(("none", "dim"), indent=2)]
    return lines + render_table(heads, list(zip(*columns, strict=True)), page, indent=2 if part.title else 0)


def _build_head(column: Column, cells: Sequence[Cell], page: Page) -> ColumnHead:
    numeric = not any(isinstance(cell, str) for cell in cells) and any(cell is not None for cell in cells)
    return ColumnHead(page.clean_remark(column.name), "number" if numeric else "prose")


def _format_cells(column: Column, cells: Sequence[Cell], page: Page) -> list[str]:
    texts = [_format_cell(cell, column, page) for cell in cells]
    return shorten_all(texts, _LINES_OF_A_CELL * page.width, page.signs.ellipsis)


def _format_cell(cell: Cell, column: Column, page: Page) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return page.clean_remark(cell)
    return str(cell) if isinstance(cell, int) and not column.unit else numbers.format_value(float(cell), column.unit)
