"""JSON as a list of records, or as an object that holds such a list with globals beside it."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from advisor.formats.caliper.json_parts import decode_json, decode_sections, split_array
from advisor.formats.caliper.metrics import is_wanted_metric
from advisor.formats.caliper.tables import ACTIVITIES, END, RANK, THREAD, RecordRows, RecordTable
from advisor.model.errors import InputError

_BLANKS: Final = 4096  # bytes of white space at the end of a file
_PATH: Final = "path"
_BEGIN: Final = "event.begin#"  # regions are named when they begin, before any path has them
#: Hierarchies that make up the path; written apart they do not tell which region lies in which.
_APART: Final = ("function", "region", "loop", "annotation", "phase", "mpi.function")

_Value = str | float | bool | None
_Record = dict[str, _Value]


class _KeyUse(Enum):
    """What a key of a record is used for."""

    NOTHING = 0
    NUMBER = 1
    END = 2
    BEGIN = 3
    ACTIVITY = 4
    APART = 5


def _classify_key(name: str) -> _KeyUse:
    if name in (RANK, THREAD) or is_wanted_metric(name):
        return _KeyUse.NUMBER
    if name.startswith(_BEGIN):
        return _KeyUse.BEGIN
    if name in ACTIVITIES:
        return _KeyUse.ACTIVITY
    if name in _APART:
        return _KeyUse.APART
    return _KeyUse.END if END.fullmatch(name) else _KeyUse.NOTHING


class _RecordReader:
    """One pass over the records of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = RecordRows()
        self._known: dict[str, int] = {"": -1}
        self._uses: dict[str, _KeyUse] = {}
        self._names: set[str] = set()
        self._slashed = re.compile("")

    def add_record(self, record: _Record) -> None:
        """Take in one record."""
        ends, activity = False, None
        numbers: dict[str, float] = {}
        for name, value in record.items():
            use = self._uses.get(name)
            if use is None:
                use = self._uses.setdefault(name, _classify_key(name))
            if use is _KeyUse.NOTHING or value is None:
                continue
            if use is _KeyUse.NUMBER:
                numbers[name] = self._parse_number(name, value)
            elif use is _KeyUse.END:
                ends = True
            elif use is _KeyUse.BEGIN:
                self._learn_slashed_name(value)
            elif use is _KeyUse.ACTIVITY:
                activity = (str(value), ACTIVITIES[name])
            elif _PATH not in record:
                reason = "written with separate-nested: which region lies in which is lost"
                raise InputError(self.path, reason, self._format_place())
        where = self._find_path(record.get(_PATH, ""))
        path = where if activity is None else self.rows.paths.add_label(where, *activity)
        self.rows.add_record(path, ends, tuple(numbers), tuple(numbers.values()))

    def _format_place(self) -> str:
        return f"record {self.rows.count + 1}"

    def _find_path(self, text: _Value) -> int:
        """Return the number of the path of regions ``text``."""
        if not isinstance(text, str):
            raise InputError(self.path, f"expected a string for {_PATH}", self._format_place())
        found = self._known.get(text)
        if found is None:
            found = -1
            for label in self._slashed.findall(text) if self._names else text.split("/"):
                found = self.rows.paths.add_label(found, label)
            self._known[text] = found
        return found

    def _learn_slashed_name(self, name: _Value) -> None:
        """Remember a region whose name has slashes, like those between the regions of a path."""
        if isinstance(name, str) and "/" in name and name not in self._names:
            self._names.add(name)
            longest_first = sorted(self._names, key=len, reverse=True)
            self._slashed = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})(?=/|$)|[^/]+")

    def _parse_number(self, name: str, value: str | float) -> float:
        try:
            return float(value)
        except ValueError:
            raise InputError(
                self.path, f"{str(value)[:40]!r} is not a number for {name}", self._format_place()
            ) from None


def read_record_table(path: Path, data: bytes, layout: str) -> RecordTable:
    """Return the records of the file at ``path`` with the content ``data``; raises ``InputError`` with the place."""
    found: dict[str, str] = {}
    units: dict[str, str] = {}
    text: bytes | msgspec.Raw = data
    if layout == "object":
        parts = decode_sections(path, data)
        text = parts["records"]
        found = _to_texts(decode_json(path, parts.get("globals", msgspec.Raw(b"{}")), _Record, "globals"))
        attributes = decode_json(path, parts.get("attributes", msgspec.Raw(b"{}")), dict[str, _Record], "attributes")
        units = {name: str(facts["attribute.unit"]) for name, facts in attributes.items() if "attribute.unit" in facts}
    elif not data[-_BLANKS:].rstrip().endswith(b"]"):
        raise InputError(path, "is cut off: the list of records is not closed", f"byte {len(data)}")
    reading = _RecordReader(path)
    for piece in split_array(text, b"}"):
        where = f"records from {reading.rows.count + 1} on"
        for record in decode_json(path, piece, list[_Record], where):
            reading.add_record(record)
    return reading.rows.build_table(path, units, found)


def _to_texts(record: _Record) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else f"{value:g}" for name, value in record.items() if value is not None
    }
