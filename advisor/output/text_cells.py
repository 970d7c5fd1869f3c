"""Text in terminal cells: measured, padded, shortened, wrapped.

``make_line`` is the only place that makes a ``rich`` text of words, and it cleans every part (``output.clean``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.text import Text

from advisor.output.clean import clean_text

#: A space where a line may end: not the one between a number and its unit, a rank and its number, a name and its value.
_BREAK = re.compile(r"(?<!\brank)(?<!\bthread)(?<! =) (?!= )(?!(?:%|[mun]?s|[KMGTP]i?B)(?:[,;.:)]|\s|$))")

Part = str | tuple[str, str]


def join_lines(lines: Iterable[Text]) -> Text:
    """Return the lines as one text."""
    return Text("\n").join(lines)


def make_line(*parts: Part, indent: int = 0) -> Text:
    """Return one line of text built from strings and (string, style) pairs, each of them cleaned."""
    text = Text(" " * indent, end="\n", no_wrap=True)
    for part in parts:
        content, style = (part, "") if isinstance(part, str) else part
        text.append(clean_text(content), style or None)
    return text


def pad_text(text: str, width: int, align: str = "left") -> str:
    """Return ``text`` filled with spaces up to ``width`` cells."""
    fill = " " * max(0, width - cell_len(text))
    return fill + text if align == "right" else text + fill


def text_head(text: str, width: int) -> str:
    """Return the longest beginning of ``text`` that fits into ``width`` cells."""
    used = 0
    for position, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return text[:position]
    return text


def text_tail(text: str, width: int) -> str:
    """Return the longest end of ``text`` that fits into ``width`` cells."""
    return text_head(text[::-1], width)[::-1]


def shorten_text(text: str, width: int, ellipsis: str = "…", keep: float = 0.5) -> str:
    """Return ``text`` in at most ``width`` cells; the middle goes, ``keep`` is the beginning's share of what stays."""
    if cell_len(text) <= width:
        return text
    room = width - cell_len(ellipsis)
    if room < 2:
        return text_head(text, width)
    first = text_head(text, max(1, round(room * keep)))
    return first + ellipsis + text_tail(text, room - cell_len(first))


def shorten_all(names: Sequence[str], width: int, ellipsis: str = "…") -> list[str]:
    """Return every name in at most ``width`` cells, so that different names stay different where that can be.

    The split moves towards the end or the beginning where names differ only in what the middle hides; names
    that differ only in their middle keep a window around the first difference.
    """
    short = {name: shorten_text(name, width, ellipsis) for name in dict.fromkeys(names)}
    for group in _find_collisions(short):
        taken = {text for name, text in short.items() if name not in group}
        short.update(_shorten_apart(group, width, ellipsis, taken))
    return [short[name] for name in names]


def _find_collisions(short: dict[str, str]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for name, text in short.items():
        groups.setdefault(text, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _shorten_apart(group: list[str], width: int, ellipsis: str, taken: set[str]) -> dict[str, str]:
    for keep in (0.25, 0.75, 0.0, 1.0):
        shown = [shorten_text(name, width, ellipsis, keep) for name in group]
        if len({*shown}) == len(group) and taken.isdisjoint(shown):
            return dict(zip(group, shown, strict=True))
    shortest = min(map(len, group))
    start = next((at for at in range(shortest) if len({name[at] for name in group}) > 1), shortest)
    windows = [_cut_window(name, start, width, ellipsis) for name in group]
    if len({*windows}) == len(group) and taken.isdisjoint(windows):
        return dict(zip(group, windows, strict=True))
    return {name: _append_number(name, number, width, ellipsis) for number, name in enumerate(group, 1)}


def _cut_window(name: str, start: int, width: int, ellipsis: str) -> str:
    """Return beginning, the place where the names part, and end."""
    room = width - 2 * cell_len(ellipsis)
    if room < 6:
        return text_tail(name[: start + width], width)
    side = room // 3
    middle = text_head(name[start:], room - 2 * side)
    return text_head(name, side) + ellipsis + middle + ellipsis + text_tail(name, side)


def _append_number(name: str, number: int, width: int, ellipsis: str) -> str:
    mark = f"#{number}"
    return shorten_text(name, max(1, width - len(mark)), ellipsis) + mark


def wrap_text(text: str, width: int) -> list[str]:
    """Return ``text`` broken at spaces into lines of at most ``width`` cells; longer words are folded, not cut."""
    lines: list[str] = []
    for piece in (piece for word in _BREAK.split(text) for piece in _fold_word(word, width)):
        if lines and cell_len(lines[-1]) + 1 + cell_len(piece) <= width:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def _fold_word(word: str, width: int) -> list[str]:
    pieces = []
    while cell_len(word) > width:
        piece = text_head(word, width) or word[0]
        pieces.append(piece)
        word = word[len(piece) :]
    return [*pieces, word]
