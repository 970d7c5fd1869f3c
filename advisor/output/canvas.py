"""A picture of text cells: dots of lines, shades of bands and marks of points, each cell with a style."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.output.text_cells import make_line

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.output.page import Signs

#: Where each of the 2 x 4 dots of a cell is in the Unicode block of Braille patterns: [column][row from the top].
_BRAILLE: Final = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BLANK: Final = 0x2800


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
            self._put_dot(column, first[1] + round((last[1] - first[1]) * step / steps), style)

    def _put_dot(self, column: int, row: int, style: str) -> None:
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


def _cell_index(share: float, count: int) -> int:
    return min(count - 1, max(0, round(share * (count - 1))))
