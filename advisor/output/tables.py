"""Tables without frames: aligned columns on a wide page, one entry after another on a narrow one.

Cells are text that is already fit for the page. Columns of numbers keep their width; columns of names share what is
left and go on in the next line. Only names of more than a few lines are shortened, in the middle, so that different
names stay different.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len

from advisor.output.text import line, pad, shorten, shorten_all, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from advisor.output.page import Page

_SPACE = 2
#: The width below which columns of prose and of names do not go, and the lines that a name may take.
_NARROWEST = {"prose": 6, "name": 14}
_LINES_OF_A_NAME = 10


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column; ``kind`` says what gives way where room is short: prose, and names up to a few lines."""

    title: str
    kind: Literal["name", "number", "prose"] = "name"

    @property
    def align(self) -> str:
        """The side on which the cells are flush."""
        return "right" if self.kind == "number" else "left"


def table(heads: Sequence[Head], rows: Sequence[Sequence[str]], page: Page, indent: int = 0) -> list[Text]:
    """Return the lines of a table at most as wide as the page, or of a list where columns find no room."""
    widths = _widths(heads, rows, page.width - indent)
    if page.as_list or sum(widths) + _SPACE * (len(widths) - 1) > page.width - indent:
        return _listed(heads, rows, page, indent)
    titles = [_title(head, width, page) for head, width in zip(heads, widths, strict=True)]
    columns = [_fit(head, [row[at] for row in rows], width, page) for at, (head, width) in _columns(heads, widths)]
    lines = [line(((" " * _SPACE).join(titles), "dim"), indent=indent)] if any(head.title for head in heads) else []
    for cells in zip(*columns, strict=True):
        lines.extend(_row(cells, heads, widths, indent))
    return lines


def _title(head: Head, width: int, page: Page) -> str:
    return pad(shorten(head.title, width, page.signs.ellipsis), width, head.align)


def _columns(heads: Sequence[Head], widths: Sequence[int]) -> enumerate[tuple[Head, int]]:
    return enumerate(zip(heads, widths, strict=True))


def _widths(heads: Sequence[Head], rows: Sequence[Sequence[str]], room: int) -> list[int]:
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


def _fit(head: Head, cells: Sequence[str], width: int, page: Page) -> list[list[str]]:
    """Return the lines of each cell of one column."""
    if head.kind == "prose":
        return [wrap(cell, max(1, width)) for cell in cells]
    return [wrap(cell, max(1, width)) for cell in shorten_all(cells, _LINES_OF_A_NAME * width, page.signs.ellipsis)]


def _row(cells: Sequence[Sequence[str]], heads: Sequence[Head], widths: Sequence[int], indent: int) -> list[Text]:
    lines = []
    for texts in zip_longest(*cells, fillvalue=""):
        padded = [pad(text, width, head.align) for text, head, width in zip(texts, heads, widths, strict=True)]
        lines.append(line((" " * _SPACE).join(padded), indent=indent))
    return lines


def _listed(heads: Sequence[Head], rows: Sequence[Sequence[str]], page: Page, indent: int) -> list[Text]:
    """Return each row as its first cell, and the others below it with their titles."""
    lines: list[Text] = []
    for row in rows:
        for at, (head, cell) in enumerate(zip(heads, row, strict=True)):
            if cell:
                words = f"{head.title}: {cell}" if at and head.title else cell
                inset = indent + (2 if at else 0)
                lines.extend(line(part, indent=inset) for part in wrap(words, page.prose_width - inset))
    return lines
