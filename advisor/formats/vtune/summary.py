"""The summary that VTune prints when a collection ends, and ``vtune -report summary``: metrics by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.formats.vtune.report_kinds import SUMMARY, split_rows
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_ELAPSED: Final = "Elapsed Time"
#: Among the last lines of a summary, about the computer.
LAST: Final = "Logical CPU Count"
_LINE: Final = re.compile(r" *([A-Z][\w/() ,.%'-]*?): +(\S.*?) *$")
_FIRST: Final = re.compile(r".*?Elapsed Time: [\d.,]+s$")
_SECONDS: Final = re.compile(r"([\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)s?(?: \(.*\))?$")
_OUT_OF: Final = re.compile(r".*?\(([\d.,]+) out of ([\d,]+)")
_TOP: Final = "Top Hotspots"
_TOP_SERIAL: Final = "Top Serial Hotspots (outside parallel regions)"
_ROW: Final = re.compile(r"(\S.*?) {2,}(\S.*?) {2,}([\d.,]+)s(?: {2,}.*)?$")
_HEAD: Final = re.compile(r"Hierarchy Level|Metric Name")
_MOST_METRICS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Summary:
    """The metrics of a run by name, the first of each, as they stand there; and the functions that took most.

    ``hotspots`` and ``serial_hotspots`` (outside of parallel regions) are names and CPU seconds of functions.
    """

    text: PlainText
    start: int
    metrics: Mapping[str, str]
    hotspots: tuple[tuple[str, float], ...] = ()
    serial_hotspots: tuple[tuple[str, float], ...] = ()

    def find_seconds(self, *names: str) -> float | None:
        """Return the seconds of the first of ``names`` that the summary has; raises ``InputError`` for no number."""
        for name in names:
            if name in self.metrics:
                found = _SECONDS.match(self.metrics[name])
                if found is None:
                    raise self.text.make_error(
                        self.start, f"{name} is {self.metrics[name][:40]!r}, which is not a time"
                    )
                return self.text.parse_number(found[1].replace(",", ""), self.start)
        return None

    def find_count(self, name: str) -> int | None:
        """Return a whole number, None where the summary has none of that name."""
        digits = self.metrics.get(name, "").replace(",", "")
        return int(digits) if digits.isdecimal() and len(digits) < 10 else None

    def find_cores(self) -> int | None:
        """Return how many logical CPUs there were: those that utilization is out of, or the count of the platform."""
        for name in ("Effective Logical Core Utilization", "Effective CPU Utilization", "CPU Utilization"):
            found = _OUT_OF.match(self.metrics.get(name, ""))
            if found:
                return max(int(found[2].replace(",", "")), 1)
        return self.find_count(LAST) or None


def read_summary(text: PlainText) -> Summary:
    """Return the last summary in the file; raises ``InputError`` where there is none."""
    heads = list(text.find_lines(_HEAD))
    if heads:
        return _read_table(text, heads[-1])
    starts = list(text.find_lines(_FIRST))
    if not starts:
        raise InputError(text.path, f"holds no {SUMMARY} of VTune")
    metrics: dict[str, str] = {}
    for line in range(starts[-1], len(text.lines)):
        content = text.lines[line]
        if line == starts[-1]:
            content = content[content.index(_ELAPSED) :]
        found = None if content.lstrip().startswith("|") else _LINE.match(content)
        if found and len(metrics) < _MOST_METRICS:
            metrics.setdefault(found[1], found[2])
    tables = [tuple(_read_hotspots(text, starts[-1], title)) for title in (_TOP, _TOP_SERIAL)]
    return Summary(text, starts[-1], metrics, *tables)


def _read_hotspots(text: PlainText, start: int, title: str) -> Iterator[tuple[str, float]]:
    """Yield the functions of the table below ``title``, but for the line of all others."""
    first = next((line for line in range(start, len(text.lines)) if text.lines[line].strip() == title), None)
    if first is None:
        return
    for line in range(first + 1, len(text.lines)):
        content = text.lines[line].strip()
        found = _ROW.match(content)
        if not content or _LINE.match(text.lines[line]):
            return
        if found and not found[1].startswith("[Others]"):
            yield found[1], text.parse_number(found[3].replace(",", ""), line)


def _read_table(text: PlainText, start: int) -> Summary:
    """Return the metrics of a summary as CSV, whose levels stand in a column of their own or nowhere."""
    head = text.lines[start]
    delimiter = next((sign for sign in "\t,;|" if sign in head), ",")
    name = 1 if head.startswith("Hierarchy Level") else 0
    metrics: dict[str, str] = {}
    for row in split_rows(text, start + 1, delimiter):
        if len(row) > name + 1 and row[name].strip() and len(metrics) < _MOST_METRICS:
            metrics.setdefault(row[name].strip(), row[name + 1].strip())
    if _ELAPSED not in metrics:
        raise text.make_error(start, "the table does not state the elapsed time")
    return Summary(text, start, metrics)
