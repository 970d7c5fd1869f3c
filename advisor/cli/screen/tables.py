"""The tables of programs and of the items of one; columns are chosen for the width that there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.message import Message
from textual.widgets import DataTable

from advisor.history.program_views import MOST_RUN_TIMES, ProgramSummary, ProgramView
from advisor.model.recommendations import Recommendation
from advisor.output import numbers
from advisor.output.program_text import Trend, format_trend
from advisor.output.sparkline import draw_sparkline
from advisor.output.text_cells import make_line, pad_text, shorten_all, shorten_text

if TYPE_CHECKING:
    from textual.events import Resize

    from advisor.history.items import Item
    from advisor.output.page import Page


#: Names and widths of the columns beside the names of programs, and what a name has at least (cells).
_PROGRAM_COLUMNS: Final = (("trend", 11), ("run time", 8), ("runs", 6))
_SHORTEST_NAME: Final = 13
#: The columns beside the words, and the widths from which on there is room for what is expected, and where (cells).
_STATE, _TIME, _PADDING = 12, 9, 2
_WITH_EXPECTED, _WITH_PLACE = 75, 90
_SCROLLBAR: Final = 2
#: What a place keeps behind the words, where it has no column and tells items of one action apart (cells).
_SHORTEST_PLACE: Final = 9
#: The share of the title in the room for words, where the place has a column too.
_TITLE_SHARE: Final = 0.6
_STYLES: Final = {"new": "bold yellow", "back": "bold yellow", "suppressed": "dim", "resolved": "green"}


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

    class Resized(Message):
        """The table has another width."""

    def on_resize(self, event: Resize) -> None:
        """Say that the columns must be chosen anew."""
        self.post_message(self.Resized())

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


class ProgramTable(RowTable):
    """Programs, each with its trend and its newest run times; names have the room that the others leave."""

    _columns: tuple[tuple[str, int], ...] = ()

    def show_programs(self, programs: Sequence[tuple[ProgramSummary, Trend | None]], page: Page) -> None:
        """Show these programs; the trend of some may not be known yet."""
        columns = choose_program_columns(self.size.width)
        rows = [_build_program_row(one, trend, dict(columns), page) for one, trend in programs]
        changed = columns != self._columns
        self._columns = columns
        self.show_rows(rows, columns if changed else None)


def choose_program_columns(width: int) -> tuple[tuple[str, int], ...]:
    """Return names and widths of the columns of a list of programs that is so wide, in cells."""
    others = sum(each for _, each in _PROGRAM_COLUMNS) + (len(_PROGRAM_COLUMNS) + 1) * _PADDING + _SCROLLBAR
    return ("program", max(_SHORTEST_NAME, width - others)), *_PROGRAM_COLUMNS


def _build_program_row(one: ProgramSummary, trend: Trend | None, widths: Mapping[str, int], page: Page) -> Row:
    name = page.clean_name(one.program if one.program.strip() else repr(one.program))
    many = f"{len(one.run_times)}{'+' if len(one.run_times) == MOST_RUN_TIMES else ''}"
    drawn = many if page.lists else draw_sparkline(one.run_times, widths["runs"], page)
    time = numbers.format_duration(one.newest.actual_s) if one.newest.actual_s is not None else "no time"
    moved = (format_trend(trend, page), trend.style) if trend else (page.signs.ellipsis, "dim")
    shown = shorten_text(name, widths["program"], page.signs.ellipsis)
    cells = (
        make_line((shown, "bold" if one.new_items else "")),
        make_line(moved),
        make_line(pad_text(time, widths["run time"], "right")),
        make_line((drawn, "cyan")),
    )
    return Row(one.program, cells)


class ItemColumns(NamedTuple):
    """The widths of the columns that depend on the room, in cells; 0 for those without any."""

    title: int
    expected: int
    place: int


def choose_item_columns(width: int) -> ItemColumns:
    """Return the columns of a table of that width."""
    expected = _TIME if width >= _WITH_EXPECTED else 0
    words = width - _SCROLLBAR - _STATE - _TIME - 3 * _PADDING - (expected + _PADDING if expected else 0)
    if width < _WITH_PLACE:
        return ItemColumns(max(10, words), expected, 0)
    title = round(_TITLE_SHARE * (words - _PADDING))
    return ItemColumns(title, expected, words - _PADDING - title)


class ItemTable(RowTable):
    """Items with their states, what they win at most, and where they are."""

    def show_items(self, view: ProgramView, page: Page) -> None:
        """Show the items of a program: those of its newest run in their order, then those that are gone."""
        columns = choose_item_columns(self.size.width)
        heads = (("state", _STATE), ("what to do", columns.title), ("at most", _TIME), ("expected", columns.expected),
                 ("at", columns.place))  # fmt: skip
        shown = view.advice.recommendations
        known = {item.fingerprint for item in shown}
        gone = [item for item in view.items if item.fingerprint not in known]
        items: list[Recommendation | Item] = [*shown, *gone]
        words = _describe_items(items, columns, page)
        rows = [_build_row(item, text, columns, page) for item, text in zip(items, words, strict=True)]
        self.show_rows(rows, [(name, width) for name, width in heads if width])


def _describe_items(items: Sequence[Recommendation | Item], columns: ItemColumns, page: Page) -> list[str]:
    """Return rank, title and action of each in the room there is, and the place of those that share their action
    where places have no column.
    """
    heads = [f"{item.rank} " if isinstance(item, Recommendation) else "" for item in items]
    ellipsis = page.signs.ellipsis
    words = [f"{page.clean_prose(item.title)} {page.clean_name(f'[{item.action}]')}" for item in items]
    rooms = [columns.title - len(head) for head in heads]
    short = [shorten_text(text, room, ellipsis, keep=0.7) for text, room in zip(words, rooms, strict=True)]
    for action, count in Counter(item.action for item in items).items():
        if count > 1 and not columns.place:
            alike = [at for at, item in enumerate(items) if item.action == action]
            room = min(rooms[at] for at in alike)
            kept = max(_SHORTEST_PLACE, room - max(cell_len(words[at]) for at in alike) - 1)
            places = shorten_all([_name_place(items[at], page) for at in alike], kept, ellipsis)
            for at, place in zip(alike, places, strict=True):
                short[at] = f"{shorten_text(words[at], room - cell_len(place) - 1, ellipsis, keep=0.7)} {place}"
    return [head + text for head, text in zip(heads, short, strict=True)]


def _name_place(item: Recommendation | Item, page: Page) -> str:
    return page.clean_name(item.region or item.phase or "the whole run")


def _build_row(item: Recommendation | Item, words: str, columns: ItemColumns, page: Page) -> Row:
    expected_s = item.expected_s if isinstance(item, Recommendation) else None
    place = _name_place(item, page)
    cells = [
        make_line((item.state, _STYLES.get(item.state, ""))),
        make_line(words),
        make_line(pad_text(numbers.format_duration(item.ceiling_s), _TIME, "right")),
    ]
    cells += [make_line(pad_text(numbers.format_duration(expected_s), _TIME, "right"))] if columns.expected else []
    cells += [make_line(shorten_text(place, columns.place, page.signs.ellipsis))] if columns.place else []
    return Row(item.fingerprint, tuple(cells))
