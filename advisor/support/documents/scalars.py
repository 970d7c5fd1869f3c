"""What a word in a document means, given the type it has to fill; a ValueError says what was expected.

The grammar is stricter and simpler than YAML 1.1: ``1e3`` is a number, ``12:30:45`` and ``010`` are none, and ``yes``
is a truth value only where a truth value is asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from advisor.support.documents.nodes import to_printable

_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*(?:_[0-9]+)*)(?:[eE]\+?[0-9]{1,2})?")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*(?:_[0-9]+)*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_TRUE = frozenset({"true", "yes", "on"})
_FALSE = frozenset({"false", "no", "off"})
_LONGEST_NUMBER = 40
_LISTED = 20  # known words named in a message


def suggest_word(word: str, known: Iterable[str]) -> str:
    """``" (did you mean 'title'?)"`` with the known word that is nearest, or nothing."""
    near = find_nearest(word, known)
    return f" (did you mean '{near}'?)" if near else ""


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that ``word`` is most likely a misspelling of."""
    from difflib import get_close_matches  # only mistakes need it

    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word[:80].lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def format_list(known: Iterable[str]) -> str:
    """``a, b, c`` for a message, cut where it would be too long to read."""
    names = list(known)
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")


def parse_whole_number(text: str) -> int:
    """``3``, ``-4``, ``1_000`` or ``1e3`` as an integer."""
    if len(text) > _LONGEST_NUMBER or not _WHOLE.fullmatch(text):
        raise ValueError("expected a whole number such as 3")
    digits, _, exponent = text.lower().replace("_", "").partition("e")
    return int(digits + "0" * int(exponent or 0))


def parse_number(text: str) -> float:
    """``3``, ``1.5``, ``-2e-6`` or ``1_000.0`` as a float; neither NaN nor infinity."""
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise ValueError("expected a number such as 3 or 1.5e-3")
    value = float(text.replace("_", ""))
    if not math.isfinite(value):
        raise ValueError("expected a number that is not too large")
    return value


def parse_truth(text: str) -> bool:
    """``true``, ``yes`` or ``on`` as true, ``false``, ``no`` or ``off`` as false, in any case."""
    lower = text.lower()
    if lower not in _TRUE | _FALSE:
        raise ValueError("expected true or false")
    return lower in _TRUE


def is_doubtful_truth(text: str) -> bool:
    """Whether ``text`` is a word that some read as a truth value and others as text: yes, no, on, off."""
    return text.lower() in (_TRUE | _FALSE) - {"true", "false"}


def parse_scalar(text: str) -> str | int | float | bool:
    """A truth value, a number, or else the text itself; ValueError for yes, no, on and off."""
    if is_doubtful_truth(text):
        raise ValueError(f'expected true or false, or the word in quotes: "{to_printable(text)}"')
    if text.lower() in ("true", "false"):
        return parse_truth(text)
    for reading in (parse_whole_number, parse_number):
        try:
            return reading(text)
        except ValueError:
            continue
    return text
