"""The rows of the table of programs, and how rows are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.text import Text
from textual.binding import Binding
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from advisor.output import numbers
from advisor.output.program_text import format_trend
from advisor.output.sparkline import draw_sparkline
from advisor.output.text_cells import make_line, pad_text, shorten_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

    from advisor.history.program_views import ProgramSummary
    from advisor.output.page import Page
    from advisor.output.program_text import Trend

#: Names and widths of the columns, in cells.
PROGRAM_COLUMNS: Final = (("program", 13), ("trend", 11), ("run time", 8), ("runs", 6))


class Row(NamedTuple):
    """A row, with the key that names it."""

    key: str
    cells: tuple[Text, ...]


class RowTable(DataTable[Text]):
    """A table of which rows are chosen: Home and End go to the first and the last of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
    ]
    _shown: tuple[Row, ...] = ()

    @property
    def chosen_key(self) -> str | None:
        """The key of the row with the cursor, None where there is no row."""
        return self._shown[self.cursor_row].key if 0 <= self.cursor_row < len(self._shown) else None

    def show_rows(self, rows: Sequence[Row], columns: Sequence[tuple[str, int]] | None = None) -> None:
        """Show these rows, under other ``columns`` (names and widths) if given; the cursor stays on its row.

        Where the rows are the same but for their cells, nothing moves. No row counts as highlighted anew.
        """
        if columns is None and [row.key for row in rows] == [row.key for row in self._shown]:
            for number, (old, new) in enumerate(zip(self._shown, rows, strict=True)):
                for at, (before, after) in enumerate(zip(old.cells, new.cells, strict=True)):
                    if before != after:
                        self.update_cell_at(Coordinate(number, at), after)
            self._shown = tuple(rows)
            return
        key, place = self.chosen_key, self.cursor_row
        with self.prevent(DataTable.RowHighlighted):
            self.clear(columns=columns is not None)
            for name, width in columns or ():
                self.add_column(make_line(name), width=width)
            for row in rows:
                self.add_row(*row.cells)
            self._shown = tuple(rows)
            places = {row.key: number for number, row in enumerate(rows)}
            if rows:
                self.move_cursor(row=places.get(key or "", min(place, len(rows) - 1)), animate=False)


def trend_key(one: ProgramSummary) -> tuple[str, int, str]:
    """Return what tells whether the trend of a program must be computed again."""
    return one.program, one.newest.number, one.newest.added


def build_program_row(one: ProgramSummary, trend: Trend | None, page: Page) -> Row:
    """Return the row of a program; its trend may not be known yet."""
    name, widths = page.clean_name(one.program), dict(PROGRAM_COLUMNS)
    drawn = "" if page.lists else draw_sparkline(one.run_times, widths["runs"], page)
    time = numbers.format_duration(one.newest.actual_s) if one.newest.actual_s is not None else "no time"
    moved = (format_trend(trend, page), trend.style) if trend else (page.signs.ellipsis, "dim")
    return Row(
        one.program,
        (
            make_line((shorten_text(name, widths["program"], page.signs.ellipsis), "bold" if one.new_items else "")),
            make_line(moved),
            make_line(pad_text(time, widths["run time"], "right")),
            make_line((drawn, "cyan")),
        ),
    )
