"""JSON as a list of records, or as an object that holds such a list with globals beside it."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from advisor.formats.caliper.json_parts import decode, pieces, sections
from advisor.formats.caliper.metrics import wanted
from advisor.formats.caliper.tables import ACTIVITIES, END, RANK, THREAD, Rows
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.caliper.tables import Table

_BLANKS: Final = 4096  # bytes of white space at the end of a file
_PATH: Final = "path"
_BEGIN: Final = "event.begin#"  # regions are named when they begin, before any path has them
#: Hierarchies that make up the path; written apart they do not tell which region lies in which.
_APART: Final = ("function", "region", "loop", "annotation", "phase", "mpi.function")

_Value = str | float | bool | None
_Record = dict[str, _Value]


class _Use(Enum):
    """What a key of a record is used for."""

    NOTHING = 0
    NUMBER = 1
    END = 2
    BEGIN = 3
    ACTIVITY = 4
    APART = 5


def _use(name: str) -> _Use:
    if name in (RANK, THREAD) or wanted(name):
        return _Use.NUMBER
    if name.startswith(_BEGIN):
        return _Use.BEGIN
    if name in ACTIVITIES:
        return _Use.ACTIVITY
    if name in _APART:
        return _Use.APART
    return _Use.END if END.fullmatch(name) else _Use.NOTHING


class _Reading:
    """One pass over the records of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = Rows()
        self._known: dict[str, int] = {"": -1}
        self._uses: dict[str, _Use] = {}
        self._names: set[str] = set()
        self._slashed = re.compile("")

    def take(self, record: _Record) -> None:
        """Take in one record."""
        ends, activity = False, None
        numbers: dict[str, float] = {}
        for name, value in record.items():
            use = self._uses.get(name)
            if use is None:
                use = self._uses.setdefault(name, _use(name))
            if use is _Use.NOTHING or value is None:
                continue
            if use is _Use.NUMBER:
                numbers[name] = self._number(name, value)
            elif use is _Use.END:
                ends = True
            elif use is _Use.BEGIN:
                self._learn(value)
            elif use is _Use.ACTIVITY:
                activity = (str(value), ACTIVITIES[name])
            elif _PATH not in record:
                reason = "written with separate-nested: which region lies in which is lost"
                raise InputError(self.path, reason, self._at())
        where = self._where(record.get(_PATH, ""))
        path = where if activity is None else self.rows.paths.add(where, *activity)
        self.rows.add(path, ends, tuple(numbers), tuple(numbers.values()))

    def _at(self) -> str:
        return f"record {self.rows.count + 1}"

    def _where(self, text: _Value) -> int:
        """Return the number of the path of regions ``text``."""
        if not isinstance(text, str):
            raise InputError(self.path, f"expected a string for {_PATH}", self._at())
        found = self._known.get(text)
        if found is None:
            found = -1
            for label in self._slashed.findall(text) if self._names else text.split("/"):
                found = self.rows.paths.add(found, label)
            self._known[text] = found
        return found

    def _learn(self, name: _Value) -> None:
        """Remember a region whose name has slashes, like those between the regions of a path."""
        if isinstance(name, str) and "/" in name and name not in self._names:
            self._names.add(name)
            longest_first = sorted(self._names, key=len, reverse=True)
            self._slashed = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})(?=/|$)|[^/]+")

    def _number(self, name: str, value: str | float) -> float:
        try:
            return float(value)
        except ValueError:
            raise InputError(self.path, f"{str(value)[:40]!r} is no number for {name}", self._at()) from None


def read(path: Path, data: bytes, layout: str) -> Table:
    """Return the records of the file at ``path`` with the content ``data``; raises ``InputError`` with the place."""
    found: dict[str, str] = {}
    units: dict[str, str] = {}
    text: bytes | msgspec.Raw = data
    if layout == "object":
        parts = sections(path, data)
        text = parts["records"]
        found = _texts(decode(path, parts.get("globals", msgspec.Raw(b"{}")), _Record, "globals"))
        attributes = decode(path, parts.get("attributes", msgspec.Raw(b"{}")), dict[str, _Record], "attributes")
        units = {name: str(facts["attribute.unit"]) for name, facts in attributes.items() if "attribute.unit" in facts}
    elif not data[-_BLANKS:].rstrip().endswith(b"]"):
        raise InputError(path, "is cut off: the list of records is not closed", f"byte {len(data)}")
    reading = _Reading(path)
    for piece in pieces(text, b"}"):
        where = f"records from {reading.rows.count + 1} on"
        for record in decode(path, piece, list[_Record], where):
            reading.take(record)
    return reading.rows.table(path, units, found)


def _texts(record: _Record) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else f"{value:g}" for name, value in record.items() if value is not None
    }
