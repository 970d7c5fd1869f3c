"""TAU's profiles as XML: ``tauprofile.xml``, which holds all ranks of a run, and snapshots, which hold a thread.

``TauSnapshot.cpp`` and ``TauXML.cpp`` of TAU write them: one document after the other, for each rank or snapshot, with
numbers of functions that the first, or that of the same thread, defines. Values are those since the start, so that the
last snapshot of a thread is its profile. Behind the ranks of a merged profile stand totals over them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.plain_text import read_content
from advisor.formats.safe_xml import parse_xml
from advisor.formats.tau.thread_records import ThreadRecords, join_lines, write_frames
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.tau.layout import Place
    from advisor.formats.tau.sheet import SheetFrame

#: Where one document ends and the next begins; the texts of ranks end with a zero, as in C.
_SEAM: Final = re.compile(rb"</profile_xml>([\s\0]*)<profile_xml>")
#: Characters of the table of one thread: a hundred thousand functions with several metrics.
_TABLE_LIMIT: Final = 64 << 20
#: Definitions that hold for all threads.
_ALL: Final = "*"
#: Totals are printed with six digits where they are no whole numbers.
_ROUNDING: Final = 1e-5


def read_merged(path: Path) -> tuple[list[dict[Place, SheetFrame]], list[str]]:
    """Return the profile of each metric by node, context and thread, and how the totals contradict the threads.

    Raises ``InputError`` with the line where the file is damaged.
    """
    content = read_content(path).rstrip(b"\0 \r\n")
    if not content.endswith(b"</profile_xml>"):
        raise InputError(path, "the profile is cut off: its last document does not end")
    documents = _Documents()
    parse_xml(_SEAM.sub(lambda seam: seam[1].replace(b"\0", b""), content), documents, path, longest=_TABLE_LIMIT)
    if not documents.profiles:
        raise InputError(path, "holds no profile of any thread")
    return documents.write_sheets(path), documents.find_contradictions()


class _Documents:
    """Takes the elements of all documents; ``ValueError`` says what can't be."""

    def __init__(self) -> None:
        self.profiles: dict[str, tuple[list[tuple[int, list[float]]], list[tuple[int, list[float]]]]] = {}
        self._places: dict[str, Place] = {}
        self._told: dict[str, dict[str, str]] = defaultdict(dict)
        self._metrics: list[str] = []
        self._functions: dict[str, dict[int, tuple[str, str]]] = defaultdict(dict)
        self._events: dict[str, dict[int, str]] = defaultdict(dict)
        self._totals: dict[int, list[float]] = {}
        self._thread = ""
        self._number = 0
        self._columns = 0
        self._name = self._group = ""
        self._total = False

    def start_element(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take the beginning of an element."""
        if name == "thread":
            self._thread = attributes.get("id", "")
            node, context, thread = (_parse_number(attributes.get(key, "")) for key in ("node", "context", "thread"))
            self._places[self._thread] = max(node, 0), context, thread
        elif name in {"profile", "definitions"}:
            self._thread = attributes.get("thread", "")
        elif name in {"event", "userevent", "metric"}:
            self._number, self._group = _parse_number(attributes.get("id", "")), ""
        elif name in {"interval_data", "derivedinterval_data"}:
            self._columns = len(attributes.get("metrics", "").split())
        elif name == "derivedprofile":
            self._total = attributes.get("derivedentity") == "total"

    def end_element(self, name: str, text: str) -> None:
        """Take the end of an element, with its text."""
        if name == "name":
            self._name = join_lines(text)
        elif name == "group":
            self._group = join_lines(text)
        elif name == "value":
            self._told[self._thread][self._name] = text
        elif name == "event":
            self._functions[self._thread][self._number] = self._name, self._group
        elif name == "userevent":
            self._events[self._thread][self._number] = self._name
        elif name == "metric":
            self._take_metric()
        elif name == "interval_data":
            self.profiles[self._thread] = _parse_rows(text, 2 + 2 * self._columns), []
        elif name == "atomic_data" and self._thread in self.profiles:
            self.profiles[self._thread][1].extend(_parse_rows(text, 5))
        elif name == "derivedinterval_data" and self._total:
            self._totals = dict(_parse_rows(text, 2 + 2 * self._columns))

    def _take_metric(self) -> None:
        """Take the name of a metric, which every rank defines anew."""
        if self._number > len(self._metrics):
            raise ValueError(f"metric {self._number} follows {len(self._metrics)} others")
        if self._number < len(self._metrics) and self._metrics[self._number] != self._name:
            raise ValueError(f"metric {self._number} is {self._metrics[self._number]} and {self._name}")
        self._metrics[self._number :] = [self._name, *self._metrics[self._number + 1 :]]

    def write_sheets(self, path: Path) -> list[dict[Place, SheetFrame]]:
        """Return the threads as TAU writes them itself; raises ``InputError`` for those that name unknown functions."""
        found: list[dict[Place, SheetFrame]] = [{} for _ in self._metrics]
        # Ranks leave out what the first one says alike.
        first = min(self._places, key=self._places.__getitem__, default="")
        for thread, (rows, counted) in self.profiles.items():
            place = self._places.get(thread)
            functions = self._functions[_ALL] | self._functions[thread]
            events = self._events[_ALL] | self._events[thread]
            if place is None:
                raise InputError(path, f"the thread {thread!r} is not described")
            if place in found[0]:
                raise InputError(path, f"holds node {place[0]}, thread {place[2]} twice")
            for names, lines in ((functions, rows), (events, counted)):
                unknown = next((number for number, _ in lines if number not in names), None)
                if unknown is not None:
                    raise InputError(path, f"the thread {thread!r} names number {unknown}, which is not defined")
            records = ThreadRecords(self._told[first] | self._told[thread], rows, counted)
            for n, frame in enumerate(write_frames(path, records, self._metrics, functions, events)):
                found[n][place] = frame
        return found

    def find_contradictions(self) -> list[str]:
        """Return in words where the threads do not add up to the totals, which stand behind all ranks of a run."""
        if self._functions[_ALL] and not self._totals:
            return ["the totals are missing: the file was cut off, and threads may be missing as well"]
        sums: dict[int, list[float]] = {}
        for rows, _ in self.profiles.values():
            for number, values in rows:
                before = sums.get(number)
                sums[number] = [a + b for a, b in zip(before, values, strict=True)] if before else list(values)
        wrong = [
            number
            for number, total in self._totals.items()
            if any(
                abs(a - b) > _ROUNDING * max(abs(a), abs(b)) for a, b in zip(total, sums.get(number, ()), strict=False)
            )
            or (number not in sums and any(total))
        ]
        if not wrong:
            return []
        name = self._functions[_ALL].get(wrong[0], ("a function",))[0]
        return [f"threads do not add up to the totals of {len(wrong)} functions ({name.strip()})"]


def _parse_number(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text):
        raise ValueError(f"expected a number, found {text[:20]!r}")
    return int(text)


def _parse_rows(text: str, count: int) -> list[tuple[int, list[float]]]:
    """Return a table's lines: the number of what is measured, and ``count`` values."""
    rows = []
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if len(words) != count + 1 or "_" in line:
            raise ValueError(f"expected a number and {count} values, found {line[:60]!r}")
        rows.append((_parse_number(words[0]), list(map(float, words[1:]))))
    if len({number for number, _ in rows}) != len(rows):
        raise ValueError("a table names a function or event twice")
    return rows
