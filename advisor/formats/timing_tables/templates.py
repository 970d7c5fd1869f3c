"""Templates of lines as patterns, and times in all the forms that people write."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_FIELD: Final = re.compile(r"\{(\w+)(?::(\w+))?\}")
#: Digits in one way only: a line of many would take the square of their number otherwise.
_NUMBER: Final = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eEdD][-+]?\d+)?"
_KINDS: Final = {
    "indent": r"[ \t]*", "blank": "", "dots": r"[ .]*", "_": r"\S+", "name": r"\S(?:.{0,200}?\S)??", "word": r"\S+",
    "text": r"\S.*?", "time": r"\d[\w .:]*?", "count": r"\d{1,18}", "hits": r"(?:\d{1,18}|\*+)",
}  # fmt: skip
#: Fields that are whole numbers of things that exist.
_WHOLE: Final = frozenset({"ranks", "threads", "on", "first", "last", "least_at", "most_at"})
_FORTRAN: Final = re.compile(r"(?<=[\d.])[dD](?=[-+]?\d)")
_PLAIN: Final = re.compile(r"\d*\.?(\d*)(?:[eEdD]([-+]?\d{1,3}))?")
_PART: Final = re.compile(rf"({_NUMBER}) *([a-zA-Z]*)")
_CLOCK: Final = re.compile(r"(?:(?:(\d+)[- ])?(\d+):)?(\d{1,4}):(\d{1,2}(?:\.\d*)?)")
#: Units by their first letters, in seconds; the first that fits counts.
_UNITS: Final = (("ms", 1e-3), ("us", 1e-6), ("mi", 60.0), ("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0))


@lru_cache(maxsize=1024)
def compile_template(template: str) -> re.Pattern[str]:
    """Return the pattern of the lines that ``template`` stands for (see ``table_forms``)."""
    pieces = _FIELD.split(template.removesuffix("…"))  # text, field, kind, text, …
    parts = [] if template.startswith("{indent}") else [r"\s*+"]  # never given back: a field follows, or a word
    for number, piece in enumerate(pieces[0::3]):
        parts.append(_escape(piece, at_begin=number == 0, at_end=3 * number + 1 == len(pieces)))
        if 3 * number + 1 < len(pieces):
            name, kind = pieces[3 * number + 1], pieces[3 * number + 2] or pieces[3 * number + 1]
            pattern = _KINDS["count"] if kind in _WHOLE else _KINDS.get(kind, _NUMBER)
            parts.append(pattern if name in {"_", "dots"} else f"(?P<{name}>{pattern})")
    return re.compile("".join(parts) + ("" if template.endswith("…") else r"\s*$"))


def _escape(text: str, *, at_begin: bool, at_end: bool) -> str:
    """Return the pattern of words between fields; beside a sign, blanks may be missing."""
    framed = ("" if at_begin else "x") + text + ("" if at_end else "x")
    spaced = re.sub(r"(?<=[\w%]) +(?=\w)", "\0", framed)
    inner = spaced[(not at_begin) : len(spaced) - (not at_end)]
    return re.sub(r"(?:\\ )+", r"\\s*", re.escape(inner)).replace("\0", r"\s+").replace("\\\x00", r"\s+")


def parse_time(text: PlainText, words: str, line: int) -> float:
    """Return the seconds that ``words`` state: a number, a clock, or numbers with units; raises ``InputError``."""
    words = _FORTRAN.sub("E", words.strip())
    clock = _CLOCK.fullmatch(words)
    if clock is not None:
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return text.parse_number(repr(((days * 24 + hours) * 60 + minutes) * 60 + seconds), line)
    parts = _PART.findall(words)
    if not parts:
        raise text.make_error(line, f"{words[:80]!r} is not a time")
    return sum(text.parse_number(number, line) * _parse_unit(text, unit, line) for number, unit in parts)


def _parse_unit(text: PlainText, unit: str, line: int) -> float:
    """Return the seconds of a unit, of none one; raises ``InputError`` for others."""
    seconds = next((seconds for begin, seconds in _UNITS if unit.lower().startswith(begin)), None if unit else 1.0)
    if seconds is None:
        raise text.make_error(line, f"{unit[:80]!r} is not a unit of time")
    return seconds


def find_digits(number: str) -> float:
    """Return what the last digit of ``number`` stands for: 0.01 in ``1.25`` and in ``2.00E+00``; else a second."""
    found = _PLAIN.fullmatch(number)
    return float(f"1e{int(found[2] or 0) - len(found[1] or '')}") if found else 1.0  # a power may be out of range
