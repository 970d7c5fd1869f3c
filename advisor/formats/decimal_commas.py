"""Tables whose numbers are written with commas before their decimals, as tools print them in many languages."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

#: A number between blanks, with or without points between thousands.
_NUMBER: Final = re.compile(r"(?<!\S)(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?(?=%?(?:\s|$))")
#: What is no mark of thousands: a comma, or a point, before fewer or more than three digits.
_COMMA: Final = re.compile(r"(?<!\S)\d[\d.]*,(?:\d{1,2}|\d{4,})(?=%?(?:\s|$))")
_POINT: Final = re.compile(r"(?<!\S)\d[\d,]*\.(?:\d{1,2}|\d{4,})(?=%?(?:\s|$))")
_SWAPPED: Final = str.maketrans(",.", ".,")


def use_points(text: PlainText) -> PlainText:
    """Return ``text`` with points before decimals where it has commas there, and commas between thousands."""
    commas, points = (sum(bool(mark.search(line)) for line in text.lines) for mark in (_COMMA, _POINT))
    if commas <= points:
        return text
    return replace(text, lines=tuple(_NUMBER.sub(_swap_marks, line) for line in text.lines))


def _swap_marks(found: re.Match[str]) -> str:
    return found[0].translate(_SWAPPED)
