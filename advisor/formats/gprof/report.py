"""Reports of gprof line by line: the flat profile, the call graph, and the index at the end.

The forms of the lines are those of ``hist.c`` and ``cg_print.c`` of GNU binutils.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

_LIMIT: Final = 256 << 20  # bytes of a file
_FLAT: Final = "Flat profile:"
_GRAPH: Final = re.compile(r"\s*Call graph( \(explanation follows\))?")
_INDEX: Final = "Index by function name"
_SAMPLE: Final = re.compile(r"Each sample counts as ([0-9.]+) seconds\.")
_NO_TIME: Final = "no time accumulated"
_TOTAL: Final = re.compile(
    r"granularity: each sample hit covers .* (?:for [0-9.]+% of ([0-9.]+) seconds|no time propagated)"
)
_ROW: Final = re.compile(r" *(-?[0-9.]+) +([0-9.]+) +([0-9.]+) (?: *([0-9]+) +([0-9.]+) +([0-9.]+)  | {26} {2})(\S.*)")
#: From 10,000 functions on gprof leaves no room for the bracket behind the number.
_PRIMARY: Final = re.compile(
    r"\[([0-9]+)\]? +([0-9.]+) +([0-9.]+) +([0-9.]+) +(?:([0-9]+)(?:\+([0-9]+))? +)?"
    r"(\S.*?)( <cycle [0-9]+>)?[ \t]\[\1\]"
)
_OTHER: Final = re.compile(
    r" +(?:([0-9.]+) +([0-9.]+) +)?(?:([0-9]+)(?:/([0-9]+)|\+([0-9]+))? +(\S.*?) [\[(][0-9]+[\])]|(<spontaneous>))"
)
_WHOLE: Final = re.compile(r"<cycle [0-9]+ as a whole>")
_RULE: Final = re.compile(r"-{20,}")
_LISTED: Final = re.compile(r"(?:^|\s)\[([0-9]+)\](?= )|\(([0-9]+)\)(?= )")
_PLACE: Final = re.compile(r"(.+) \((.+):([0-9]{1,9}) @ [0-9a-f]+\)")


@dataclass(frozen=True, slots=True)
class FlatRow:
    """A line of the flat profile: share of all time in per cent, running sum, own seconds, calls (None: unknown)."""

    line: int
    name: str
    percent: float
    cumulative_s: float
    self_s: float
    calls: int | None


@dataclass(slots=True)
class GraphEntry:
    """A function in the call graph: own seconds, those of what it calls, calls from others (None: unknown).

    ``caller_calls`` adds up what its callers say they called, ``stated_calls`` is of how many calls they say so.
    """

    line: int
    name: str
    self_s: float
    children_s: float
    calls: int | None
    in_cycle: bool
    caller_calls: int
    stated_calls: int | None


@dataclass(slots=True)
class GprofReport:
    """What gprof says about one process; ``label`` is the last line before it, for example a heading with its rank.

    ``sample_s`` is what a sample counts as, ``total_s`` the seconds that the call graph is about, ``entries`` its
    functions by number, ``listed_numbers`` the numbers in the index (None: there is no such table).
    """

    file: Path
    line: int
    label: str
    sample_s: float | None = None
    total_s: float | None = None
    rows: list[FlatRow] = field(default_factory=list)
    entries: dict[int, GraphEntry] | None = None
    listed_numbers: set[int] | None = None


def split_source_place(name: str) -> tuple[str, str | None, int | None]:
    """Return a function's name, and file and line where gprof put them behind it (``gprof -l``)."""
    found = _PLACE.fullmatch(name)
    return (found[1], found[2], int(found[3])) if found else (name, None, None)


def read_reports(path: Path) -> list[GprofReport]:
    """Return the reports in the file at ``path``; raises ``InputError`` with the line of what is none."""
    content = read_limited(path, _LIMIT)
    if content and not content.endswith(b"\n"):
        raise InputError(path, "the file ends in the middle of a line", f"line {content.count(10) + 1}")
    reading = _ReportReader(path)
    for line in content.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        reading.add_line(line.rstrip("\r"))
    if not reading.reports:
        raise InputError(path, "holds no report of gprof")
    return reading.reports


class _ReportReader:
    """One pass over a file: which table is being read, and the callers seen before the function they call."""

    def __init__(self, path: Path) -> None:
        self.path, self.line = path, 0
        self.reports: list[GprofReport] = []
        self._table = ""
        self._label = ""
        self._callers: list[tuple[int, int | None]] = []
        self._above = True

    def _make_error(self, reason: str) -> InputError:
        return InputError(self.path, reason, f"line {self.line}")

    def add_line(self, text: str) -> None:
        """Take in one line."""
        self.line += 1
        bare = text.strip("\f")
        if bare == _FLAT:
            self._begin_report()
            self._table = "sample"
        elif _GRAPH.fullmatch(bare):
            if not self.reports or self.reports[-1].entries is not None:
                self._begin_report()
            self._table = "granularity"
        elif bare == _INDEX and self.reports:
            self.reports[-1].listed_numbers = set()
            self._table = "index"
        elif self._table:
            getattr(self, f"_{self._table}")(bare)
        elif bare.strip():
            self._label = bare.strip()

    def _begin_report(self) -> None:
        self.reports.append(GprofReport(self.path, self.line, self._label))
        self._label = ""

    def _sample(self, text: str) -> None:
        found = _SAMPLE.fullmatch(text)
        if found:
            self.reports[-1].sample_s = self._parse_number(found[1])
        elif text.startswith(" time "):
            self._table = "flat"
        elif text.strip() and not text.startswith("  %  ") and text.strip() != _NO_TIME:
            raise self._make_error("expected the head of a flat profile")

    def _flat(self, text: str) -> None:
        if not text.strip():
            self._table = ""
            return
        found = _ROW.fullmatch(text)
        if found is None:
            raise self._make_error("no line of a flat profile")
        percent, cumulative, own = (self._parse_number(found[n]) for n in (1, 2, 3))
        for n in (5, 6):
            self._parse_number(found[n] or "0")
        calls = self._parse_count(found[4])
        self.reports[-1].rows.append(FlatRow(self.line, found[7], percent, cumulative, own, calls))

    def _granularity(self, text: str) -> None:
        found = _TOTAL.fullmatch(text)
        if found:
            self.reports[-1].total_s = self._parse_number(found[1] or "0")
        elif text.startswith("index "):
            self.reports[-1].entries = {}
            self._table, self._callers, self._above = "graph", [], True
        elif text.strip():
            raise self._make_error("expected the head of a call graph")

    def _graph(self, text: str) -> None:
        if not text.strip():
            self._table = ""
        elif _RULE.fullmatch(text):
            self._callers, self._above = [], True
        elif text.startswith("["):
            self._add_entry(text)
        else:
            found = _OTHER.fullmatch(text)
            if found is None:
                raise self._make_error("no line of a call graph")
            for n in (1, 2):
                self._parse_number(found[n] or "0")
            part, whole = self._parse_count(found[3]), self._parse_count(found[4])
            if self._above and part is not None:
                self._callers.append((part, whole))

    def _add_entry(self, text: str) -> None:
        found = _PRIMARY.fullmatch(text)
        if found is None:
            raise self._make_error("no line of a call graph")
        number, percent = int(found[1][:9]), self._parse_number(found[2])
        entries = self.reports[-1].entries
        if entries is None or number in entries or percent > 101:
            raise self._make_error(f"[{number}] with {percent:g} % of the time can't be")
        stated = {whole for _, whole in self._callers if whole is not None}
        cycle = bool(found[8]) or _WHOLE.fullmatch(found[7]) is not None
        entries[number] = GraphEntry(
            self.line, found[7], self._parse_number(found[3]), self._parse_number(found[4]),
            self._parse_count(found[5]), cycle,
            sum(part for part, whole in self._callers if whole is not None), stated.pop() if len(stated) == 1 else None,
        )  # fmt: skip
        self._above = False

    def _index(self, text: str) -> None:
        listed = self.reports[-1].listed_numbers
        numbers = [int((first or second)[:9]) for first, second in _LISTED.findall(f"{text} ")]
        if numbers and listed is not None:
            listed.update(numbers)
        elif text.strip():
            self._table, self._label = "", text.strip()

    def _parse_number(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise self._make_error(f"{text!r} is not a number") from None
        if not 0 <= value < 1e10:
            raise self._make_error(f"{text!r} is impossible here")
        return value

    def _parse_count(self, text: str | None) -> int | None:
        if text is not None and len(text) > 18:
            raise self._make_error(f"{text!r} is impossible here")
        return None if text is None else int(text)
