"""The table of the items of a program; its columns are chosen for the width that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from textual.message import Message

from advisor.cli.screen.tables import Row, RowTable
from advisor.output import numbers
from advisor.output.text_cells import make_line, pad_text, shorten_text

if TYPE_CHECKING:
    from textual.events import Resize

    from advisor.history.items import Item
    from advisor.history.program_views import ProgramView
    from advisor.model.records import Recommendation
    from advisor.output.page import Page

#: The columns beside the words, and the widths from which on there is room for what is expected, and where (cells).
_STATE, _TIME, _PADDING = 12, 9, 2
_WITH_EXPECTED, _WITH_PLACE = 75, 90
_SCROLLBAR: Final = 2
#: The share of the title in the room for words, where the place has a column too.
_TITLE_SHARE: Final = 0.6
_STYLES: Final = {"new": "bold yellow", "back": "bold yellow", "suppressed": "dim", "resolved": "green"}


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

    class Resized(Message):
        """The table has another width."""

    def on_resize(self, event: Resize) -> None:
        """Say that the columns must be chosen anew."""
        self.post_message(self.Resized())

    def show_items(self, view: ProgramView, page: Page) -> None:
        """Show the items of a program: those of its newest run in their order, then those that are gone."""
        columns = choose_item_columns(self.size.width)
        heads = (("state", _STATE), ("what to do", columns.title), ("at most", _TIME), ("expected", columns.expected),
                 ("at", columns.place))  # fmt: skip
        shown = view.advice.recommendations
        known = {item.fingerprint for item in shown}
        gone = [item for item in view.items if item.fingerprint not in known]
        rows = [_build_row(item, f"{item.rank} ", item.expected_s, columns, page) for item in shown]
        rows += [_build_row(item, "", None, columns, page) for item in gone]
        self.show_rows(rows, [(name, width) for name, width in heads if width])


def _build_row(
    item: Recommendation | Item, head: str, expected_s: float | None, columns: ItemColumns, page: Page
) -> Row:
    words = f"{head}{page.clean_prose(item.title)} {page.clean_name(f'[{item.action}]')}"
    place = page.clean_name(item.region or item.phase or "the whole run")
    cells = [
        make_line((item.state, _STYLES.get(item.state, ""))),
        make_line(shorten_text(words, columns.title, page.signs.ellipsis, keep=0.7)),
        make_line(pad_text(numbers.format_duration(item.ceiling_s), _TIME, "right")),
    ]
    cells += [make_line(pad_text(numbers.format_duration(expected_s), _TIME, "right"))] if columns.expected else []
    cells += [make_line(shorten_text(place, columns.place, page.signs.ellipsis))] if columns.place else []
    return Row(item.fingerprint, tuple(cells))
