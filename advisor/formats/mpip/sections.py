"""The sections of an mpiP report: headings between dashed lines, tables below them.

Text is kept as one character per byte, since mpiP pads its columns by bytes; ``decode_text`` turns it into what was
written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

LIMIT: Final = 512 << 20  # bytes of a report
TASK_LIMIT: Final = 10_000_000
_DASHES: Final = "-" * 75
_HEADING: Final = re.compile(r"@--- (.+?) -*")
_HEADER: Final = re.compile(r"@ (\S.*?) *: ?(.*)")
_END: Final = "End of Report"
_WHOLE: Final = re.compile(r"\d{1,18}")
#: No time in seconds or milliseconds, and no sum of bytes, is larger.
_LARGEST: Final = 1e24


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One line of a table, and where it stands."""

    file: Path
    line: int
    text: str

    def make_error(self, reason: str) -> InputError:
        """Return the error that says what is wrong in this line; for the caller to raise."""
        return InputError(self.file, reason, f"line {self.line}")

    def split_cells(self, *counts: int) -> list[str]:
        """Return the words of the line, of which there must be one of ``counts``."""
        words = self.text.split()
        if len(words) not in counts:
            raise self.make_error(f"expected {' or '.join(map(str, counts))} columns, found {len(words)}")
        return words

    def parse_number(self, word: str) -> float:
        """Return a number that is neither negative nor absurdly large."""
        try:
            found = float(word)
        except ValueError:
            raise self.make_error(f"{word[:40]!r} is not a number") from None
        if not 0 <= found < _LARGEST or "_" in word:
            raise self.make_error(f"the number {word[:40]} is impossible here")
        return found

    def parse_share(self, word: str) -> float:
        """Return a percentage; NaN where mpiP divided by zero."""
        return math.nan if word in ("nan", "-nan", "inf") else self.parse_number(word)

    def parse_whole(self, word: str) -> int:
        """Return a whole number that is not negative."""
        if not word.isascii() or not _WHOLE.fullmatch(word):
            raise self.make_error(f"{word[:40]!r} is not a whole number")
        return int(word)


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A heading and what stands below it: the line of column titles, and the rows that are not empty."""

    title: str
    place: ReportRow
    head: str
    rows: tuple[ReportRow, ...]

    @property
    def declared_count(self) -> int | None:
        """The number at the end of the heading, which says how much the section holds."""
        last = self.title.rpartition(": ")[2]
        return int(last) if last.isascii() and _WHOLE.fullmatch(last) else None


@dataclass(frozen=True, slots=True)
class ReportContents:
    """A report in parts: what the lines above the first section say, the sections, and whether the end was found."""

    header: tuple[tuple[str, ReportRow], ...]
    sections: tuple[ReportSection, ...]
    complete: bool

    def find_section(self, title: str) -> ReportSection | None:
        """Return the section whose heading begins with ``title``."""
        return next((section for section in self.sections if section.title.startswith(title)), None)


def decode_text(raw: str) -> str:
    """Return text as it was written; bytes that are no UTF-8 become lone surrogates."""
    return raw.encode("latin-1").decode("utf-8", "surrogateescape")


def split_report(path: Path) -> ReportContents:
    """Return the parts of the report at ``path``; a last line without its end is left out."""
    rows = list(_read_rows(path))
    marks = [n for n, row in enumerate(rows) if row.text == _DASHES]
    starts = [n for n in marks if n + 2 < len(rows) and rows[n + 2].text == _DASHES and _parse_title(rows[n + 1])]
    header = tuple(_parse_header(rows[: starts[0]] if starts else rows))
    sections = [_build_section(rows[start:end]) for start, end in pairwise([*starts, len(rows)])]
    complete = bool(sections) and sections[-1].title == _END
    return ReportContents(header, tuple(section for section in sections if section.title != _END), complete)


def _read_rows(path: Path) -> Iterator[ReportRow]:
    content = read_limited(path, LIMIT).decode("latin-1")
    for number, line in enumerate(content.split("\n")[:-1]):
        yield ReportRow(path, number + 1, line)


def _parse_title(row: ReportRow) -> str:
    found = _HEADING.fullmatch(row.text)
    return found[1] if found else ""


def _parse_header(rows: list[ReportRow]) -> Iterator[tuple[str, ReportRow]]:
    for row in rows:
        found = _HEADER.fullmatch(row.text)
        if found:
            yield found[1], ReportRow(row.file, row.line, found[2])


def _build_section(rows: list[ReportRow]) -> ReportSection:
    below = [row for row in rows[3:] if row.text.strip()]
    head = below[0].text if below else ""
    return ReportSection(_parse_title(rows[1]), rows[1], head, tuple(below[1:]))
