"""What tells the reports of VTune from other texts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

SUMMARY, HOTSPOTS = "summary", "hotspots"
_DELIMITERS: Final = rb"[\t,;|]"
#: A table of functions, as it begins; the first column is what the report is grouped by.
_TABLE: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?"?(?:Thread|Function|Function Stack)"?' + _DELIMITERS + rb"[^\r\n]*CPU Time[^\r\n]*Module"
)
_METRICS: Final = re.compile(
    rb"(?:^|[\r\n])(?:Hierarchy Level" + _DELIMITERS + rb")?Metric Name" + _DELIMITERS + rb"Metric Value[\r\n]+"
    rb"(?:0" + _DELIMITERS + rb")?Elapsed Time" + _DELIMITERS
)
_TEXT: Final = re.compile(rb"(?:^|[\r\n ])Elapsed Time: [\d.,]+s[\r\n]")
#: Lines of a summary as text, one of which follows the elapsed time.
_MARKS: Final = (b"Paused Time: ", b"Total Thread Count: ", b"Effective Physical Core Utilization: ",
                 b"Effective CPU Utilization: ", b"Collection and Platform Info")  # fmt: skip


def find_kind(ends: bytes) -> str | None:
    """Return which report begins or ends so: ``summary``, ``hotspots``, or None."""
    if _TABLE.match(ends.lstrip()):
        return HOTSPOTS
    if _METRICS.search(ends) or (_TEXT.search(ends) and any(mark in ends for mark in _MARKS)):
        return SUMMARY
    return None


def split_rows(text: PlainText, start: int, delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of the lines from ``start`` on; raises ``InputError`` for what is no table."""
    try:
        # Functions below their callers are indented, and quoted behind that.
        yield from csv.reader(text.lines[start:], delimiter=delimiter, skipinitialspace=True)
    except csv.Error as error:
        raise text.make_error(start, f"no table of VTune: {error}") from None
