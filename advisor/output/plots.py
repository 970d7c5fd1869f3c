"""Plots of a report: lines over a pair of axes, drawn in text cells, with the values below."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len

from advisor.output import numbers, scales
from advisor.output.page import render_heading, render_paragraph
from advisor.output.tables import ColumnHead, render_table
from advisor.output.text_cells import make_line, pad_text, shorten_all, shorten_text

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.model.reports import Line, Series
    from advisor.output.page import Page, Signs
    from advisor.output.scales import Scale

#: Where each of the 2 x 4 dots of a cell is in the Unicode block of Braille patterns: [column][row from the top].
_BRAILLE: Final = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BLANK: Final = 0x2800
#: One sign for the points of each line, in the order of the lines; then they begin again.
_MARKS: Final = "o*x+#@%&=abcdefghijklmnpqrstuvwyz"
_STYLES: Final = ("cyan", "yellow", "magenta", "green", "red", "blue")
#: A plot is that high, in cells, and never narrower than that.
_HEIGHT: Final = 15
_NARROWEST: Final = 24
#: The values of so many places are listed, spread evenly; ``verbose`` and JSON have them all.
_LISTED: Final = 24
_LONGEST_NAME: Final = 30
_LONGEST_TICK: Final = 12


class Canvas:
    """``width`` x ``height`` cells; places are shares of both, (0, 0) at the bottom left and (1, 1) at the top right.

    A mark hides dots, and dots hide a band.
    """

    def __init__(self, width: int, height: int, signs: Signs) -> None:
        self._width, self._height, self._signs = width, height, signs
        self._across, self._down = (2, 4) if signs.dots else (1, 1)
        self._dots: dict[tuple[int, int], tuple[int, str]] = {}
        self._shades: dict[tuple[int, int], str] = {}
        self._marks: dict[tuple[int, int], tuple[str, str]] = {}

    def put_mark(self, x: float, y: float, sign: str, style: str) -> None:
        """Put a sign of one cell at a place."""
        self._marks[_cell_index(x, self._width), _cell_index(1 - y, self._height)] = sign, style

    def shade_band(self, x: float, low: float, high: float, style: str) -> None:
        """Shade the column of cells at ``x`` between two heights."""
        for row in range(_cell_index(1 - high, self._height), _cell_index(1 - low, self._height) + 1):
            self._shades[_cell_index(x, self._width), row] = style

    def draw_line(self, begin: tuple[float, float], end: tuple[float, float], style: str) -> None:
        """Draw a straight line of dots."""
        columns, rows = self._width * self._across, self._height * self._down
        first, last = ((_cell_index(x, columns), _cell_index(1 - y, rows)) for x, y in (begin, end))
        steps = max(abs(last[0] - first[0]), abs(last[1] - first[1]), 1)
        for step in range(steps + 1):
            column = first[0] + round((last[0] - first[0]) * step / steps)
            row = first[1] + round((last[1] - first[1]) * step / steps)
            cell = column // self._across, row // self._down
            pattern = _BRAILLE[column % self._across][row % self._down] if self._signs.dots else 0
            self._dots[cell] = self._dots.get(cell, (0, style))[0] | pattern, style

    def render_row(self, number: int) -> Text:
        """Return one row of cells, counted from the top."""
        return make_line(*(self._render_cell(column, number) for column in range(self._width)))

    def _render_cell(self, column: int, row: int) -> tuple[str, str]:
        at = column, row
        if at in self._marks:
            return self._marks[at]
        if at in self._dots:
            pattern, style = self._dots[at]
            return (chr(_BLANK + pattern) if self._signs.dots else "."), style
        return (
            (self._signs.shades[0] if self._signs.dots else ":", self._shades[at]) if at in self._shades else (" ", "")
        )


class _PlotPoint(NamedTuple):
    x: float
    y: float | None
    low: float | None
    high: float | None


class _PlotLine(NamedTuple):
    """A line of the series with its sign, its style and its points from left to right."""

    line: Line
    sign: str
    style: str
    points: list[_PlotPoint]


def draw_series(part: Series, page: Page) -> list[Text]:
    """Return the plot with its legend, and the values; only these where nothing can be drawn."""
    lines = render_heading(page.clean_remark(part.title), page) if part.title else []
    every = [_build_plot_line(one, number) for number, one in enumerate(part.lines)]
    if not any(one.points for one in every):
        return [*lines, make_line(("none", "dim"), indent=2)]
    x = scales.fit_scale([point.x for one in every for point in one.points], part.x)
    heights = [y for one in every for point in one.points for y in point[1:] if y is not None]
    y = scales.fit_scale(heights, part.y) if heights else None
    if x and y:
        lines += _draw_plot(part, every, x, y, page)
    return lines + _render_values(part, every, page)


def _build_plot_line(one: Line, number: int) -> _PlotLine:
    nothing: tuple[None, ...] = (None,) * len(one.x)
    columns = one.x, one.y, one.low or nothing, one.high or nothing
    points = sorted((_PlotPoint(*values) for values in zip(*columns, strict=True)), key=lambda point: point.x)
    return _PlotLine(one, _MARKS[number % len(_MARKS)], _STYLES[number % len(_STYLES)], points)


def _draw_plot(part: Series, every: Sequence[_PlotLine], x: Scale, y: Scale, page: Page) -> list[Text]:
    ticks = [(y.to_share(tick), numbers.format_value(tick, part.y.unit)) for tick in y.ticks]
    margin = max((cell_len(text) for _, text in ticks), default=0) + 1
    width = page.frame_width - margin - 1
    if width < _NARROWEST:
        return []
    canvas = Canvas(width, _HEIGHT, page.signs)
    for one in every:
        _draw_line(one, x, y, canvas, width)
    left = {round((1 - share) * (_HEIGHT - 1)): text for share, text in ticks}
    lines = render_paragraph(page.clean_remark(f"{part.y.name}{_scale_suffix(part.y.scale)}"), page, "dim")
    for row in range(_HEIGHT):
        edge = page.signs.to_here if row in left and page.signs.dots else page.signs.rise
        lines.append(
            make_line((f"{pad_text(left.get(row, ''), margin - 1, 'right')} {edge}", "dim")).append(
                canvas.render_row(row)
            )
        )
    lines.append(make_line((" " * margin + page.signs.corner + page.signs.dash * width, "dim")))
    lines.append(make_line((" " * (margin + 1) + _render_axis_numbers(part, x, width), "dim")))
    lines += [
        make_line(
            (pad_text(page.clean_remark(f"{part.x.name}{_scale_suffix(part.x.scale)}"), 0), "dim"), indent=margin + 1
        )
    ]
    return [*_fit_lines(lines, page), *_render_legend(every, page), *_describe_left_out(every, x, y, page)]


def _fit_lines(lines: Sequence[Text], page: Page) -> list[Text]:
    """Return the lines, none wider than the page, whatever the axes are called."""
    return [
        line
        if cell_len(line.plain) <= page.width
        else make_line((shorten_text(line.plain, page.width, page.signs.ellipsis), "dim"))
        for line in lines
    ]


def _scale_suffix(scale: str) -> str:
    return " (logarithmic)" if scale == "log" else ""


def _draw_line(one: _PlotLine, x: Scale, y: Scale, canvas: Canvas, width: int) -> None:
    """Draw one line: its band, what joins its points, and its points, of many only some."""
    places = [point for point in one.points if x.can_show(point.x)]
    _shade_bands([edges for point in places if (edges := _find_edges(point, x, y))], one, canvas, width)
    shares = [
        (x.to_share(point.x), y.to_share(point.y)) if point.y is not None and y.can_show(point.y) else None
        for point in places
    ]
    if one.line.joined:
        for begin, end in pairwise(shares):
            if begin and end:
                canvas.draw_line(begin, end, one.style)
    step = len(shares) // 8 if one.line.joined and len(shares) > width // 3 else 1
    for share in shares[::step]:
        if share:
            canvas.put_mark(*share, one.sign, one.style)


def _find_edges(point: _PlotPoint, x: Scale, y: Scale) -> tuple[float, float, float] | None:
    """Return the place of a point and both ends of its band, as shares; None where it has none to show."""
    if point.low is None or point.high is None or not y.can_show(point.high):
        return None
    return x.to_share(point.x), y.to_share(point.low) if y.can_show(point.low) else 0.0, y.to_share(point.high)


def _shade_bands(edges: Sequence[tuple[float, float, float]], one: _PlotLine, canvas: Canvas, width: int) -> None:
    """Shade the bands of the points, and what lies between them where they are joined."""
    for at, low, high in edges:
        canvas.shade_band(at, low, high, one.style)
    for begin, end in pairwise(edges) if one.line.joined else ():
        cells = round((end[0] - begin[0]) * width)
        for cell in range(1, cells):
            at, low, high = (first + (last - first) * cell / cells for first, last in zip(begin, end, strict=True))
            canvas.shade_band(at, low, high, one.style)


def _render_axis_numbers(part: Series, x: Scale, width: int) -> str:
    """Return the numbers below the horizontal axis, as many as find room."""
    row = ""
    for tick in x.ticks:
        text = shorten_text(numbers.format_axis_value(tick, part.x), _LONGEST_TICK)
        at = min(width - len(text), max(0, round(x.to_share(tick) * (width - 1)) - len(text) // 2))
        if not row or at > len(row):
            row = pad_text(row, at) + text
    return row


def _render_legend(every: Sequence[_PlotLine], page: Page) -> list[Text]:
    return [
        make_line(
            (one.sign, one.style),
            " ",
            (shorten_text(page.clean_name(one.line.name), page.width - 4, page.signs.ellipsis), ""),
        )
        for one in every
        if one.points and (len(every) > 1 or one.line.name)
    ]


def _describe_left_out(every: Sequence[_PlotLine], x: Scale, y: Scale, page: Page) -> list[Text]:
    """Return how many points a logarithmic axis can't show."""
    points = [point for one in every for point in one.points if point.y is not None]
    count = sum(not (x.can_show(point.x) and y.can_show(point.y or 0.0)) for point in points)
    words = f"{count} of {len(points)} points are not in the plot: a logarithmic axis has no place for them"
    return render_paragraph(words, page, "dim") if count else []


def _render_values(part: Series, every: Sequence[_PlotLine], page: Page) -> list[Text]:
    """Return the values as a table: a row for each place, a column for each line."""
    places = sorted({point.x for one in every for point in one.points})
    step = 1 if page.verbose else max(1, -(-len(places) // _LISTED))
    shown = places[::step]
    if shown[-1] != places[-1]:
        shown.append(places[-1])
    columns = [{point.x: point for point in one.points} for one in every]
    names = shorten_all([page.clean_name(one.line.name) for one in every], _LONGEST_NAME, page.signs.ellipsis)
    heads = [
        ColumnHead(page.clean_remark(part.x.name), "prose" if part.x.names else "number"),
        *(ColumnHead(name, "number") for name in names),
    ]
    rows = [
        [
            page.clean_name(numbers.format_axis_value(place, part.x)),
            *(_format_point(points.get(place), part.y.unit) for points in columns),
        ]
        for place in shown
    ]
    lines = render_table(heads, rows, page, indent=2)
    if len(shown) == len(places):
        return lines
    words = f"{len(shown)} of {len(places)} places are listed; --format json has them all"
    return [*lines, *render_paragraph(words, page, "dim", indent=2)]


def _format_point(point: _PlotPoint | None, unit: str) -> str:
    if point is None:
        return ""
    text = numbers.format_optional(point.y, unit)
    if point.low is None or point.high is None:
        return text
    return f"{text} ({numbers.format_value(point.low, unit)} to {numbers.format_value(point.high, unit)})"


def _cell_index(share: float, count: int) -> int:
    return min(count - 1, max(0, round(share * (count - 1))))
