"""A row of numbers as a line of signs, one cell each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from advisor.output import page as pages

if TYPE_CHECKING:
    from advisor.output.page import Page

_UNICODE: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = "_.-=+*#"
#: What stands for a number that is not known: no level of the line.
_UNKNOWN: Final = "?"
#: Numbers that differ by less than this share of the largest fill only a part of the height: noise stays flat.
_LEAST_SPAN: Final = 0.1


def draw_sparkline(values: Sequence[float | None], width: int, page: Page) -> str:
    """Return the newest ``width`` values, the newest last: the lowest sign is the least of them, the highest the most.

    Unknown values are ``?``.
    """
    shown = [*values][-width:] if width > 0 else []
    known = [value for value in shown if value is not None]
    if not known:
        return _UNKNOWN * len(shown)
    signs = _UNICODE if page.signs is pages.UNICODE else _ASCII
    least, most = min(known), max(known)
    span = max(most - least, _LEAST_SPAN * max(abs(least), abs(most)))
    top = len(signs) - 1
    return "".join(
        _UNKNOWN if value is None else signs[round((value - least) / span * top) if span else 0] for value in shown
    )


def describe_values(values: Sequence[str], most: int = 5) -> str:
    """Return the newest values in words, for who cannot see the line: ``47.0 s, 48.0 s, 52.0 s``."""
    return ", ".join(values[-most:])
