"""Heat maps of a report: a matrix of numbers, with how far each is from what is usual in signs and in colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len

from advisor.output import numbers
from advisor.output.page import render_heading, render_paragraph
from advisor.output.scales import relative_place
from advisor.output.text_cells import make_line, pad_text, shorten_all, wrap_text

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.model.reports import HeatMap
    from advisor.output.page import Page

#: At most this share of the width goes to the names of rows; names of columns are at most that wide.
_NAME_SHARE: Final = 0.35
_COLUMN: Final = 14
_SPACE: Final = 2
#: A value is far from the neutral one beyond this share of the largest distance, and near it below this one.
_FAR, _NEAR = 0.5, 0.05
_DIVERGING: Final = {
    "<<": "black on cyan", "<": "cyan", "": "", ">": "yellow", ">>": "black on yellow"
}  # fmt: skip
_RISING: Final = ("", "cyan", "yellow", "black on yellow")


class _HeatCell(NamedTuple):
    text: str
    sign: str
    style: str


def draw_heat_map(part: HeatMap, page: Page) -> list[Text]:
    """Return the matrix, in several blocks of columns where it is wide; a list where the page is narrow."""
    lines = render_heading(page.clean_remark(part.title), page) if part.title else []
    if not part.rows or not part.columns:
        return [*lines, make_line(("none", "dim"), indent=2)]
    grid = _build_cells(part, page)
    said = _describe_legend(part, page)
    legend = render_paragraph(page.clean_remark(said), page, "dim") if said else []
    if page.as_list:
        return lines + _render_list(part, grid, page) + legend
    room = max(8, round(page.frame_width * _NAME_SHARE))
    names = shorten_all([page.clean_name(name) for name in part.rows], room, page.signs.ellipsis)
    margin = max(map(cell_len, names)) + 2
    for first, last, widths in _split_columns(part, grid, page, page.width - margin):
        heads = shorten_all([page.clean_name(name) for name in part.columns[first:last]], _COLUMN, page.signs.ellipsis)
        padded = [pad_text(head, width, "right") for head, width in zip(heads, widths, strict=True)]
        lines.append(make_line((" " * margin + "".join(" " * _SPACE + head for head in padded), "dim")))
        for name, cells in zip(names, grid, strict=True):
            shown = [_pad_cell(cell, width) for cell, width in zip(cells[first:last], widths, strict=True)]
            parts = [piece for cell in shown for piece in (" " * _SPACE, cell)]
            lines.append(make_line(pad_text(name, margin - 2), *parts, indent=2))
        lines.append(make_line())
    return lines[:-1] + legend


def _split_columns(
    part: HeatMap, grid: Sequence[Sequence[_HeatCell]], page: Page, room: int
) -> list[tuple[int, int, list[int]]]:
    """Return which columns stand beside each other, and how wide each is."""
    heads = shorten_all([page.clean_name(name) for name in part.columns], _COLUMN, page.signs.ellipsis)
    widths = [
        max(cell_len(head), *(cell_len(row[at].text) + _sign_width(grid) for row in grid))
        for at, head in enumerate(heads)
    ]
    blocks: list[tuple[int, int, list[int]]] = []
    first, used = 0, 0
    for at, width in enumerate(widths):
        if used + width + _SPACE > room and at > first:
            blocks.append((first, at, widths[first:at]))
            first, used = at, 0
        used += width + _SPACE
    return [*blocks, (first, len(widths), widths[first:])]


def _sign_width(grid: Sequence[Sequence[_HeatCell]]) -> int:
    widest = max(len(cell.sign) for row in grid for cell in row)
    return widest + 1 if widest else 0


def _pad_cell(cell: _HeatCell, width: int) -> tuple[str, str]:
    return pad_text(f"{cell.text}{cell.sign}", width, "right"), cell.style


def _render_list(part: HeatMap, grid: Sequence[Sequence[_HeatCell]], page: Page) -> list[Text]:
    lines = []
    for row, cells in zip(part.rows, grid, strict=True):
        for column, cell in zip(part.columns, cells, strict=True):
            words = f"{page.clean_name(row)}, {page.clean_name(column)}: {cell.text}{cell.sign.rstrip()}"
            texts = wrap_text(words, page.prose_width - 2)
            lines += [make_line((text, cell.style), indent=2 * bool(at)) for at, text in enumerate(texts)]
    return lines


def _build_cells(part: HeatMap, page: Page) -> list[list[_HeatCell]]:
    known = [value for row in part.cells for value in row if value is not None]
    if part.neutral is None:
        low, high = min(known, default=0.0), max(known, default=0.0)
        return [[_shade_value(value, low, high, part.unit, page) for value in row] for row in part.cells]
    largest = max((abs(value / 2 - part.neutral / 2) for value in known), default=0.0)
    return [[_mark_deviation(value, part.neutral, largest, part.unit) for value in row] for row in part.cells]


def _shade_value(value: float | None, low: float, high: float, unit: str, page: Page) -> _HeatCell:
    """Return a value with a shade, light for the lowest and dark for the highest."""
    if value is None:
        return _HeatCell("-", "  ", "dim")
    level = min(3, int(4 * relative_place(value, low, high)))
    return _HeatCell(numbers.format_value(float(value), unit), f" {page.signs.shades[level]}", _RISING[level])


def _mark_deviation(value: float | None, neutral: float, largest: float, unit: str) -> _HeatCell:
    """Return a value with the signs of how far from the neutral one it is; ``largest`` is half the largest distance."""
    if value is None:
        return _HeatCell("-", "   ", "dim")
    share = (value / 2 - neutral / 2) / largest if largest > 0 else 0.0
    arrow = "" if abs(share) < _NEAR else ("<" if share < 0 else ">") * (2 if abs(share) > _FAR else 1)
    return _HeatCell(numbers.format_value(float(value), unit), f" {arrow:2}", _DIVERGING[arrow])


def _describe_legend(part: HeatMap, page: Page) -> str:
    known = [value for row in part.cells for value in row if value is not None]
    if not known:
        return ""
    if part.neutral is None and min(known) == max(known):
        return ""
    if part.neutral is None:
        ends = [numbers.format_value(float(end), part.unit) for end in (min(known), max(known))]
        return f"{page.signs.shades[0]} from {ends[0]}, {page.signs.shades[3]} up to {ends[1]}, in four equal steps"
    neutral = numbers.format_value(float(part.neutral), part.unit)
    if all(value == part.neutral for value in known):
        return ""
    far = numbers.format_value(max(abs(value / 2 - part.neutral / 2) for value in known) * 2 * _FAR, part.unit)
    return f"< below {neutral}, > above it; << and >>: by more than {far}"
