"""What a command found, as data: ``output`` draws it as text, as JSON or as a page.

Every part has a title (empty: none) and numbers in base units; ``Unit`` says how they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: ``s`` seconds, ``B`` bytes, ``B/s`` bytes a second, ``share`` 0 to 1; empty: as it is.
Unit = Literal["", "s", "B", "B/s", "share"]


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to copy: an equation, a file, a command; shown as they are."""

    title: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column."""

    name: str
    unit: Unit = ""


Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, as many in each as there are columns; None where there is no value."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; ``low`` and ``high`` are the ends of its interval where it has one."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Values of one kind beside each other, on one scale."""

    title: str
    unit: Unit
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis of a plot shows; ``names`` are those of the places 0, 1, 2 … where it counts things."""

    name: str
    unit: Unit = ""
    scale: Literal["linear", "log"] = "linear"
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """Points (x, y), joined or not; ``low`` and ``high`` hold a band around y, or nothing."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    joined: bool = True


@dataclass(frozen=True, slots=True)
class Series:
    """A plot of lines over one pair of axes."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A matrix of values, a name for each row and column; ``neutral`` is the value that is neither good nor bad."""

    title: str
    unit: Unit
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    neutral: float | None = None


Picture = Bars | Series | HeatMap
Part = Text | Code | Table | Picture


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found, in the order in which it is shown.

    A command whose verdict is ``failed`` ends with exit code 1 and says this why, like a gate that was crossed.
    """

    title: str
    parts: tuple[Part, ...]
    failed: str | None = None


def count_values(picture: Picture) -> int:
    """Return how many numbers a picture holds."""
    if isinstance(picture, Bars):
        return len(picture.bars)
    if isinstance(picture, HeatMap):
        return len(picture.rows) * len(picture.columns)
    return sum(len(line.x) for line in picture.lines)
