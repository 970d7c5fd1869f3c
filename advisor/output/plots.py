"""Plots of a report: lines over a pair of axes, drawn in text cells, with the values below."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len

from advisor.output import numbers, scales
from advisor.output.canvas import Canvas
from advisor.output.sections import heading, paragraph
from advisor.output.tables import Head, table
from advisor.output.text import line, pad, shorten, shorten_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from advisor.model.reports import Line, Series
    from advisor.output.page import Page
    from advisor.output.scales import Scale

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


class _Point(NamedTuple):
    x: float
    y: float | None
    low: float | None
    high: float | None


class _Drawn(NamedTuple):
    """A line of the series with its sign, its style and its points from left to right."""

    line: Line
    sign: str
    style: str
    points: list[_Point]


def drawn(part: Series, page: Page) -> list[Text]:
    """Return the plot with its legend, and the values; only these where nothing can be drawn."""
    lines = heading(page.remark(part.title), page) if part.title else []
    every = [_drawn(one, number) for number, one in enumerate(part.lines)]
    if not any(one.points for one in every):
        return [*lines, line(("none", "dim"), indent=2)]
    x = scales.fitted([point.x for one in every for point in one.points], part.x)
    heights = [y for one in every for point in one.points for y in point[1:] if y is not None]
    y = scales.fitted(heights, part.y) if heights else None
    if x and y:
        lines += _plot(part, every, x, y, page)
    return lines + _values(part, every, page)


def _drawn(one: Line, number: int) -> _Drawn:
    nothing: tuple[None, ...] = (None,) * len(one.x)
    columns = one.x, one.y, one.low or nothing, one.high or nothing
    points = sorted((_Point(*values) for values in zip(*columns, strict=True)), key=lambda point: point.x)
    return _Drawn(one, _MARKS[number % len(_MARKS)], _STYLES[number % len(_STYLES)], points)


def _plot(part: Series, every: Sequence[_Drawn], x: Scale, y: Scale, page: Page) -> list[Text]:
    ticks = [(y.share(tick), numbers.quantity(tick, part.y.unit)) for tick in y.ticks]
    margin = max((cell_len(text) for _, text in ticks), default=0) + 1
    width = page.frame_width - margin - 1
    if width < _NARROWEST:
        return []
    canvas = Canvas(width, _HEIGHT, page.signs)
    for one in every:
        _draw(one, x, y, canvas, width)
    left = {round((1 - share) * (_HEIGHT - 1)): text for share, text in ticks}
    lines = paragraph(page.remark(f"{part.y.name}{_logarithmic(part.y.scale)}"), page, "dim")
    for row in range(_HEIGHT):
        edge = page.signs.to_here if row in left and page.signs.dots else page.signs.rise
        lines.append(line((f"{pad(left.get(row, ''), margin - 1, 'right')} {edge}", "dim")).append(canvas.row(row)))
    lines.append(line((" " * margin + page.signs.corner + page.signs.dash * width, "dim")))
    lines.append(line((" " * (margin + 1) + _below(part, x, width), "dim")))
    lines += [line((pad(page.remark(f"{part.x.name}{_logarithmic(part.x.scale)}"), 0), "dim"), indent=margin + 1)]
    return [*_fitting(lines, page), *_legend(every, page), *_left_out(every, x, y, page)]


def _fitting(lines: Sequence[Text], page: Page) -> list[Text]:
    """Return the lines, none wider than the page, whatever the axes are called."""
    return [
        one if cell_len(one.plain) <= page.width else line((shorten(one.plain, page.width, page.signs.ellipsis), "dim"))
        for one in lines
    ]


def _logarithmic(scale: str) -> str:
    return " (logarithmic)" if scale == "log" else ""


def _draw(one: _Drawn, x: Scale, y: Scale, canvas: Canvas, width: int) -> None:
    """Draw one line: its band, what joins its points, and its points, of many only some."""
    places = [point for point in one.points if x.holds(point.x)]
    _shade([edges for point in places if (edges := _edges(point, x, y))], one, canvas, width)
    shares = [
        (x.share(point.x), y.share(point.y)) if point.y is not None and y.holds(point.y) else None for point in places
    ]
    if one.line.joined:
        for begin, end in pairwise(shares):
            if begin and end:
                canvas.join(begin, end, one.style)
    step = len(shares) // 8 if one.line.joined and len(shares) > width // 3 else 1
    for share in shares[::step]:
        if share:
            canvas.mark(*share, one.sign, one.style)


def _edges(point: _Point, x: Scale, y: Scale) -> tuple[float, float, float] | None:
    """Return the place of a point and both ends of its band, as shares; None where it has none to show."""
    if point.low is None or point.high is None or not y.holds(point.high):
        return None
    return x.share(point.x), y.share(point.low) if y.holds(point.low) else 0.0, y.share(point.high)


def _shade(edges: Sequence[tuple[float, float, float]], one: _Drawn, canvas: Canvas, width: int) -> None:
    """Shade the bands of the points, and what lies between them where they are joined."""
    for at, low, high in edges:
        canvas.band(at, low, high, one.style)
    for begin, end in pairwise(edges) if one.line.joined else ():
        cells = round((end[0] - begin[0]) * width)
        for cell in range(1, cells):
            at, low, high = (first + (last - first) * cell / cells for first, last in zip(begin, end, strict=True))
            canvas.band(at, low, high, one.style)


def _below(part: Series, x: Scale, width: int) -> str:
    """Return the numbers below the horizontal axis, as many as find room."""
    row = ""
    for tick in x.ticks:
        text = shorten(numbers.along(tick, part.x), _LONGEST_TICK)
        at = min(width - len(text), max(0, round(x.share(tick) * (width - 1)) - len(text) // 2))
        if not row or at > len(row):
            row = pad(row, at) + text
    return row


def _legend(every: Sequence[_Drawn], page: Page) -> list[Text]:
    return [
        line((one.sign, one.style), " ", (shorten(page.name(one.line.name), page.width - 4, page.signs.ellipsis), ""))
        for one in every
        if one.points and (len(every) > 1 or one.line.name)
    ]


def _left_out(every: Sequence[_Drawn], x: Scale, y: Scale, page: Page) -> list[Text]:
    """Return how many points a logarithmic axis can't show."""
    points = [point for one in every for point in one.points if point.y is not None]
    count = sum(not (x.holds(point.x) and y.holds(point.y or 0.0)) for point in points)
    words = f"{count} of {len(points)} points are not in the plot: a logarithmic axis has no place for them"
    return paragraph(words, page, "dim") if count else []


def _values(part: Series, every: Sequence[_Drawn], page: Page) -> list[Text]:
    """Return the values as a table: a row for each place, a column for each line."""
    places = sorted({point.x for one in every for point in one.points})
    step = 1 if page.verbose else max(1, -(-len(places) // _LISTED))
    shown = places[::step]
    if shown[-1] != places[-1]:
        shown.append(places[-1])
    columns = [{point.x: point for point in one.points} for one in every]
    names = shorten_all([page.name(one.line.name) for one in every], _LONGEST_NAME, page.signs.ellipsis)
    heads = [
        Head(page.remark(part.x.name), "prose" if part.x.names else "number"),
        *(Head(name, "number") for name in names),
    ]
    rows = [
        [page.name(numbers.along(place, part.x)), *(_value(points.get(place), part.y.unit) for points in columns)]
        for place in shown
    ]
    lines = table(heads, rows, page, indent=2)
    if len(shown) == len(places):
        return lines
    words = f"{len(shown)} of {len(places)} places are listed; --as json has them all"
    return [*lines, *paragraph(words, page, "dim", indent=2)]


def _value(point: _Point | None, unit: str) -> str:
    if point is None:
        return ""
    text = numbers.optional(point.y, unit)
    if point.low is None or point.high is None:
        return text
    return f"{text} ({numbers.quantity(point.low, unit)} to {numbers.quantity(point.high, unit)})"
