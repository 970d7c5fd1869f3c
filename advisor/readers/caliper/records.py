"""JSON as a list of records, or as an object that holds such a list with globals beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from advisor.errors import InputError
from advisor.readers.caliper.json_parts import decode, pieces, sections
from advisor.readers.caliper.metrics import wanted
from advisor.readers.caliper.numbers import finite, whole_numbers
from advisor.readers.caliper.tables import ACTIVITIES, END, RANK, THREAD, Columns, Paths, Table

if TYPE_CHECKING:
    from pathlib import Path

_BLANKS: Final = 4096  # bytes of white space at the end of a file
_PATH: Final = "path"
_BEGIN: Final = "event.begin#"  # regions are named when they begin, before any path has them
#: Hierarchies that make up the path; written apart they do not tell which region lies in which.
_APART: Final = ("function", "region", "loop", "annotation", "phase", "mpi.function")

_Value = str | float | bool | None
_Record = dict[str, _Value]


class _Reading:
    """One pass over the records of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.paths, self.columns = Paths(), Columns()
        self.path_of: list[int] = []
        self.ends: list[bool] = []
        self._known: dict[str, int] = {"": -1}
        self._used: dict[str, bool] = {}
        self._names: set[str] = set()
        self._slashed = re.compile("")

    def take(self, record: _Record) -> None:
        """Take in one record."""
        for name in [name for name in record if name.startswith(_BEGIN)]:
            self._learn(record[name])
        where = self._known.get(text := self._text(record, _PATH))
        if where is None:
            where = -1
            for label in self._slashed.findall(text) if self._names else text.split("/"):
                where = self.paths.add(where, label)
            self._known[text] = where
        ends = False
        for name, value in record.items():
            if name in self._used or self._is_used(name):
                ends |= self._use(name, value)
            if name in ACTIVITIES and value is not None:
                where = self.paths.add(where, str(value), ACTIVITIES[name])
        if not text and any(name in record for name in _APART):
            raise InputError(self.path, "written with separate-nested: which region lies in which is lost", self._at())
        self.columns.next()
        self.path_of.append(where)
        self.ends.append(ends)

    def _learn(self, name: _Value) -> None:
        """Remember a region whose name has slashes, like those between the regions of a path."""
        if isinstance(name, str) and "/" in name and name not in self._names:
            self._names.add(name)
            longest_first = sorted(self._names, key=len, reverse=True)
            self._slashed = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})(?=/|$)|[^/]+")

    def _at(self) -> str:
        return f"record {self.columns.count + 1}"

    def _text(self, record: _Record, name: str) -> str:
        value = record.get(name, "")
        if not isinstance(value, str):
            raise InputError(self.path, f"expected a string for {name}", self._at())
        return value

    def _is_used(self, name: str) -> bool:
        used = name in (RANK, THREAD) or wanted(name) or END.fullmatch(name) is not None
        if used:
            self._used[name] = END.fullmatch(name) is not None
        return used

    def _use(self, name: str, value: _Value) -> bool:
        """Take in a value that matters; return whether it says that a region ended."""
        if self._used[name]:
            return value is not None
        if value is None:
            return False
        try:
            self.columns.set(name, float(value))
        except ValueError:
            raise InputError(self.path, f"{str(value)[:40]!r} is no number for {name}", self._at()) from None
        return False


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
        where = f"records from {reading.columns.count + 1} on"
        for record in decode(path, piece, list[_Record], where):
            reading.take(record)
    return _table(reading, found, units)


def _texts(record: _Record) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else f"{value:g}" for name, value in record.items() if value is not None
    }


def _table(reading: _Reading, found: dict[str, str], units: dict[str, str]) -> Table:
    values, count = reading.columns.arrays(), reading.columns.count
    for name, column in values.items():
        finite(column, reading.path, name)
    ends = np.array(reading.ends, dtype=bool)
    return Table(
        file=reading.path,
        places=tuple(reading.paths.places),
        path=np.array(reading.path_of, dtype=np.int64),
        rank=whole_numbers(values.pop(RANK, None), count, reading.path, RANK),
        thread=whole_numbers(values.pop(THREAD, None), count, reading.path, THREAD),
        ends=ends if ends.any() else None,
        values=values,
        units=units,
        globals=found,
    )
