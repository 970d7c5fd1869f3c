"""Bars of a report: values beside each other on one scale, each with its interval where it has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from advisor.output import numbers
from advisor.output.page import render_heading
from advisor.output.scales import relative_place
from advisor.output.text_cells import make_line, pad_text, shorten_all, wrap_text

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.model.reports import Bar, Bars
    from advisor.output.page import Page

#: At most this share of the width goes to the names; a bar shorter than this many cells shows nothing.
_NAME_SHARE: Final = 0.35
_SHORTEST: Final = 8
_SPACE: Final = 2


def draw_bars(part: Bars, page: Page) -> list[Text]:
    """Return the bars, a line each, with their notes below; a list where the page has no room for bars."""
    lines = render_heading(page.clean_remark(part.title), page) if part.title else []
    if not part.bars:
        return [*lines, make_line(("none", "dim"), indent=2)]
    indent = 2 if part.title else 0
    names = shorten_all(
        [page.clean_name(bar.name) for bar in part.bars], _name_width(part.bars, page), page.signs.ellipsis
    )
    values = [numbers.format_optional(bar.value, part.unit) for bar in part.bars]
    spans = [_format_interval(bar, part.unit) for bar in part.bars]
    taken = indent + sum(max(map(cell_len, texts)) + _SPACE for texts in (names, values, spans) if any(texts))
    room = page.frame_width - taken
    if page.as_list or room < _SHORTEST:
        return lines + [
            shown for at in zip(part.bars, values, spans, strict=True) for shown in _render_entry(*at, page)
        ]
    # both ends of the scale: it holds zero and everything that is drawn
    ends = [end for bar in part.bars for end in (bar.value, bar.low, bar.high) if end is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    for bar, name, value, span in zip(part.bars, names, values, spans, strict=True):
        cells: list[str | tuple[str, str]] = [
            pad_text(name, max(map(cell_len, names))),
            (_draw_bar(bar, low, high, room, page), "cyan"),
        ]
        cells += [pad_text(value, max(map(cell_len, values)), "right"), pad_text(span, max(map(cell_len, spans)))]
        # the cells with spaces between them, without the empty ones
        lines.append(make_line(*[part for cell in cells if cell for part in (cell, " " * _SPACE)][:-1], indent=indent))
        lines += [make_line((text, "dim"), indent=indent + 2) for text in _wrap_note(bar, page, indent + 2)]
    return lines


def _name_width(bars: Sequence[Bar], page: Page) -> int:
    return min(max(cell_len(page.clean_name(bar.name)) for bar in bars), max(1, round(page.frame_width * _NAME_SHARE)))


def _format_interval(bar: Bar, unit: str) -> str:
    if bar.low is None or bar.high is None:
        return ""
    return f"{numbers.format_value(bar.low, unit)} to {numbers.format_value(bar.high, unit)}"


def _render_entry(bar: Bar, value: str, span: str, page: Page) -> list[Text]:
    name = page.clean_name(bar.name)
    words = f"{name}: {', '.join(filter(None, (value, span, page.clean_remark(bar.note))))}"
    return [make_line(text, indent=2 * bool(at)) for at, text in enumerate(wrap_text(words, page.prose_width - 2))]


def _wrap_note(bar: Bar, page: Page, indent: int) -> list[str]:
    return wrap_text(page.clean_remark(bar.note), page.prose_width - indent) if bar.note else []


def _draw_bar(bar: Bar, low: float, high: float, room: int, page: Page) -> str:
    """Return one bar from zero to its value, ``room`` cells wide, in half cells, its interval drawn over it."""
    if bar.value is None or high <= low:
        return " " * room
    signs = page.signs

    def half_cells(value: float) -> int:
        return round(2 * room * relative_place(value, low, high))

    first, last = sorted((half_cells(0.0), half_cells(bar.value)))
    cells = [" "] * room
    cells[first // 2 + first % 2 : last // 2] = signs.full * (last // 2 - first // 2 - first % 2)
    if first == last:
        cells[min(first // 2, room - 1)] = signs.thin
    elif first // 2 == last // 2:
        cells[first // 2] = signs.right_half if first % 2 else signs.left_half
    else:
        if first % 2:
            cells[first // 2] = signs.right_half
        if last % 2:
            cells[last // 2] = signs.left_half
    if bar.low is not None and bar.high is not None:
        begin, at, end = (min(room - 1, half_cells(value) // 2) for value in (bar.low, bar.value, bar.high))
        cells[begin : end + 1] = signs.dash * (end + 1 - begin)
        cells[begin], cells[end], cells[at] = signs.from_here, signs.to_here, signs.cross
    return "".join(cells)
