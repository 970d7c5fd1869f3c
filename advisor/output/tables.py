"""Tables without frames: aligned columns on a wide page, one entry after another on a narrow one.

Cells are text that is already fit for the page. Columns of numbers keep their width; columns of names share what is
left and go on in the next line. Only names of more than a few lines are shortened, in the middle, so that different
names stay different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len

from advisor.output.text_cells import make_line, pad_text, shorten_all, shorten_text, wrap_text

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.output.page import Page

_SPACE = 2
#: The width below which columns of prose and of names do not go, and the lines that a name may take.
_NARROWEST = {"prose": 6, "name": 14}
_LINES_OF_A_NAME = 10


@dataclass(frozen=True, slots=True)
class ColumnHead:
    """The head of a column; ``kind`` says what gives way where room is short: prose, and names up to a few lines."""

    title: str
    kind: Literal["name", "number", "prose"] = "name"

    @property
    def align(self) -> str:
        """The side on which the cells are flush."""
        return "right" if self.kind == "number" else "left"


def render_table(heads: Sequence[ColumnHead], rows: Sequence[Sequence[str]], page: Page, indent: int = 0) -> list[Text]:
    """Return the lines of a table at most as wide as the page, or of a list where columns find no room."""
    widths = _compute_widths(heads, rows, page.width - indent)
    if page.as_list or sum(widths) + _SPACE * (len(widths) - 1) > page.width - indent:
        return _render_list(heads, rows, page, indent)
    titles = [_format_title(head, width, page) for head, width in zip(heads, widths, strict=True)]
    columns = [
        _fit_cells(head, [row[at] for row in rows], width, page)
        for at, (head, width) in enumerate(zip(heads, widths, strict=True))
    ]
    lines = (
        [make_line(((" " * _SPACE).join(titles), "dim"), indent=indent)] if any(head.title for head in heads) else []
    )
    for cells in zip(*columns, strict=True):
        lines.extend(_render_row(cells, heads, widths, indent))
    return lines


def _format_title(head: ColumnHead, width: int, page: Page) -> str:
    return pad_text(shorten_text(head.title, width, page.signs.ellipsis), width, head.align)


def _compute_widths(heads: Sequence[ColumnHead], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return what each column needs, less where that is more than the room: the widest gives way first."""
    widths = [max(map(cell_len, (head.title, *(row[at] for row in rows)))) for at, head in enumerate(heads)]
    least = [min(width, _NARROWEST.get(head.kind, width)) for head, width in zip(heads, widths, strict=True)]
    excess = sum(widths) + _SPACE * (len(heads) - 1) - room
    while excess > 0 and (giving := [at for at, width in enumerate(widths) if width > least[at]]):
        widest = max(widths[at] for at in giving)
        tied = [at for at in giving if widths[at] == widest]
        floor = max([widths[at] for at in giving if widths[at] < widest] + [least[at] for at in tied])
        step = max(1, min(widest - floor, -(-excess // len(tied))))
        for at in tied:
            widths[at] -= step
        excess -= step * len(tied)
    return widths


def _fit_cells(head: ColumnHead, cells: Sequence[str], width: int, page: Page) -> list[list[str]]:
    """Return the lines of each cell of one column."""
    if head.kind == "prose":
        return [wrap_text(cell, max(1, width)) for cell in cells]
    return [
        wrap_text(cell, max(1, width)) for cell in shorten_all(cells, _LINES_OF_A_NAME * width, page.signs.ellipsis)
    ]


def _render_row(
    cells: Sequence[Sequence[str]], heads: Sequence[ColumnHead], widths: Sequence[int], indent: int
) -> list[Text]:
    lines = []
    for texts in zip_longest(*cells, fillvalue=""):
        padded = [pad_text(text, width, head.align) for text, head, width in zip(texts, heads, widths, strict=True)]
        lines.append(make_line((" " * _SPACE).join(padded), indent=indent))
    return lines


def _render_list(heads: Sequence[ColumnHead], rows: Sequence[Sequence[str]], page: Page, indent: int) -> list[Text]:
    """Return each row as its first cell, and the others below it with their titles."""
    lines: list[Text] = []
    for row in rows:
        for at, (head, cell) in enumerate(zip(heads, row, strict=True)):
            if cell:
                words = f"{head.title}: {cell}" if at and head.title else cell
                inset = indent + (2 if at else 0)
                lines.extend(make_line(part, indent=inset) for part in wrap_text(words, page.prose_width - inset))
    return lines
