"""A Dimemas trace into ``Records``, block after block; its last lines say where each task begins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats import number_lines
from advisor.formats.dimemas.records import OPERATIONS, DimemasRecords, RecordKind
from advisor.model.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.number_lines import NumberLines
    from advisor.model.records import IntArray

_FIRST: Final = re.compile(
    rb'#DIMEMAS:"[^"]*":(\d{1,2}),(\d{1,18}):(\d{1,7})\(([\d,]{0,99999999})\)(?:,(\d{1,9}))?[,\d]*\s*\n'
)
_COMMUNICATOR: Final = re.compile(rb"d:\d{1,9}:(\d{1,9}):(\d{1,9})((?::\d{1,9})*)\n")
_TASK: Final = re.compile(rb"s:(\d{1,9}):(\d{1,18})\n")
#: First number of a line, how many numbers the line has (a fraction counts as one more), and the kind of the record.
_NOTHING, _COLLECTIVE = 0, 10
_SHAPES: Final = {0: (3,), 1: (4, 5), 2: (9,), 3: (9,), _COLLECTIVE: (10,), 20: (5,)}
_KINDS: Final = {
    1: RecordKind.BURST,
    2: RecordKind.SEND,
    3: RecordKind.RECEIVE,
    10: RecordKind.COLLECTIVE,
    20: RecordKind.EVENT,
}
#: Where the fields stand in a line: amount, more, partner, tag, reference, code (-1: nowhere).
_FIELDS: Final = {
    RecordKind.BURST: (3, -1, -1, -1, -1, -1),
    RecordKind.SEND: (5, -1, 3, 6, 7, 8),
    RecordKind.RECEIVE: (5, -1, 3, 6, 7, 8),
    RecordKind.COLLECTIVE: (7, 8, 5, -1, 4, 3),
    RecordKind.EVENT: (4, -1, -1, -1, -1, 3),
}
_COLUMNS: Final[dict[str, type[Any]]] = {
    "amount": np.int64,
    "more": np.int64,
    "partner": np.int32,
    "tag": np.int32,
    "reference": np.int32,
    "code": np.int32,
}
_NANO_DIGITS: Final = 9
#: Decimals that fit into 64 bits.
_MOST_DIGITS: Final = 18
_MOST: Final = 2**31 - 1


class DimemasReader:
    """A trace that is being read."""

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path, self._stream = path, stream
        self._lines = 0
        with number_lines.convert_read_errors(path):
            first = _FIRST.fullmatch(stream.readline(number_lines.LONGEST_LINE))
        if not first:
            raise InputError(path, "no header of a Dimemas trace", "line 1")
        threads = [int(count) for count in first[4].split(b",") if count]
        if len(threads) != int(first[3]) or not threads or min(threads) < 1 or sum(threads) > 1_000_000:
            raise InputError(path, "damaged: the list of tasks is not complete", "line 1")
        self._rank = np.repeat(np.arange(len(threads)), threads)
        self._before = np.cumsum([0, *threads])
        self._communicators = self._read_communicators(len(threads), int(first[5] or 0))
        self._begin = stream.tell()
        self._end = int(first[2])
        self._check_tasks(len(threads))

    def _read_communicators(self, tasks: int, count: int) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        self._lines = 1 + count
        for line in range(2, count + 2):
            with number_lines.convert_read_errors(self._path):
                part = _COMMUNICATOR.fullmatch(self._stream.readline(number_lines.LONGEST_LINE))
            members = tuple(int(task) for task in part[3].split(b":")[1:]) if part else ()
            if not part or len(members) != int(part[2]) or max(members, default=0) >= tasks:
                raise InputError(self._path, "damaged: no list of a communicator's members", f"line {line}")
            found[int(part[1])] = members
        return found

    def _check_tasks(self, tasks: int) -> None:
        """Refuse a trace whose last lines do not name the place of every task."""
        offsets = []
        with number_lines.convert_read_errors(self._path):
            self._stream.seek(self._end)
            for task in range(tasks):
                found = _TASK.fullmatch(self._stream.readline(100))
                if not found or int(found[1]) != task:
                    reason = "damaged: the list of tasks at the end is missing; the trace is cut off"
                    raise InputError(self._path, reason, f"byte {self._end}")
                offsets.append(int(found[2]))
            if self._stream.read(1):
                raise InputError(self._path, "damaged: something follows the list of tasks", f"byte {self._end}")
            for task, offset in enumerate(offsets):
                self._stream.seek(max(offset - 1, 0))
                parts = self._stream.readline(1) + self._stream.readline(100)
                if not re.match(rb"\n\d+:%d:" % task, parts) or (task and offset <= offsets[task - 1]):
                    raise InputError(self._path, f"damaged: task {task} does not begin here", f"byte {offset}")
            if offsets[0] != self._begin:
                raise InputError(self._path, "damaged: the first task does not begin here", f"byte {self._begin}")
            self._stream.seek(self._begin)

    def read_records(self, compiled: bool) -> DimemasRecords:
        """Return all records; raises ``InputError`` with the line that is damaged."""
        grown = number_lines.GrowingColumns({"location": np.int32, "kind": np.uint8, **_COLUMNS})
        others, last = 0, 0
        bounded = number_lines.BoundedStream(self._stream, self._end - self._begin)
        for numbers in number_lines.read_number_lines(bounded, self._path, self._lines + 1, compiled):
            location, others_here = self._add_records(numbers, grown)
            if len(location) and (location[0] < last or (np.diff(location) < 0).any()):
                raise InputError(self._path, "damaged: tasks do not follow each other", f"line {numbers.line}")
            others, last = others + others_here, int(location[-1]) if len(location) else last
        columns = grown.take_columns()
        location = columns.pop("location")
        return DimemasRecords(
            rank=self._rank,
            thread=np.arange(len(self._rank)) - self._before[self._rank],
            communicators=self._communicators,
            first=np.r_[0, np.cumsum(np.bincount(location, minlength=len(self._rank)))].astype(np.int64),
            other_records=others,
            **columns,
        )

    def _add_records(self, numbers: NumberLines, grown: number_lines.GrowingColumns) -> tuple[IntArray, int]:
        """Add the records of some lines; return the thread of each, and how many were of other kinds."""
        first, count = numbers.first[:-1], np.diff(numbers.first)
        kind = numbers.values[first]
        wrong = (kind < 0) | (count < 3)
        for number, lengths in _SHAPES.items():
            wrong |= (kind == number) & ~np.isin(count, lengths)
        self._refuse_lines(numbers, wrong, "damaged: no record of a Dimemas trace")
        location = self._find_threads(numbers, first)
        wanted = np.isin(kind, list(_KINDS))
        others = int(np.count_nonzero(~wanted & (kind != _NOTHING)))
        lines = np.flatnonzero(wanted)
        columns = {name: np.full(len(lines), -1, dtype=np.int64) for name in _COLUMNS}
        record = np.zeros(len(lines), dtype=np.uint8)
        for number, meant in _KINDS.items():
            mine = np.flatnonzero(kind[lines] == number)
            record[mine] = meant
            for (name, column), field in zip(columns.items(), _FIELDS[meant], strict=True):
                if field >= 0:
                    column[mine] = numbers.values[first[lines[mine]] + field]
                if name not in ("amount", "more"):
                    self._refuse_rows(numbers, lines[mine], np.abs(column[mine]) > _MOST)
        bursts = np.flatnonzero(record == RecordKind.BURST)
        columns["amount"][bursts] = self._parse_nanoseconds(numbers, lines[bursts])
        self._check_numbers(numbers, lines, record, columns)
        grown.append(location=location[lines], kind=record, **columns)
        return location, others

    def _find_threads(self, numbers: NumberLines, first: IntArray) -> IntArray:
        task, thread = numbers.values[first + 1], numbers.values[first + 2]
        known = (task >= 0) & (task < len(self._before) - 1)
        place = self._before[np.where(known, task, 0)] + thread
        known &= (thread >= 0) & (place < self._before[np.where(known, task, 0) + 1])
        self._refuse_lines(numbers, ~known, "damaged: no such task or thread")
        return place

    def _parse_nanoseconds(self, numbers: NumberLines, lines: IntArray) -> IntArray:
        """Return the seconds in bursts, of any number of decimals, as nanoseconds: rounded half up."""
        at = numbers.first[lines]
        parted = numbers.first[lines + 1] - at == _SHAPES[1][-1]
        last = np.where(parted, at + 4, at + 3)
        whole = numbers.values[at + 3]
        fraction = np.where(parted, numbers.values[last], 0)
        digits = np.where(parted, numbers.width[last], 0).astype(np.int64)
        wrong = (whole < 0) | (whole > _MOST) | (digits > _MOST_DIGITS) | (fraction < 0)
        self._refuse_rows(numbers, lines, wrong)
        below = 10 ** np.maximum(digits - _NANO_DIGITS, 0)
        above = 10 ** np.maximum(_NANO_DIGITS - digits, 0)
        nanoseconds: IntArray = whole * 10**_NANO_DIGITS + (fraction + below // 2) // below * above
        return nanoseconds

    def _check_numbers(
        self, numbers: NumberLines, lines: IntArray, record: npt.NDArray[np.uint8], columns: dict[str, IntArray]
    ) -> None:
        tasks = len(self._before) - 1
        moving = record != RecordKind.EVENT
        wrong = moving & (columns["amount"] < 0)
        partnered = (record == RecordKind.SEND) | (record == RecordKind.RECEIVE)
        wrong |= partnered & ((columns["partner"] < 0) | (columns["partner"] >= tasks))
        joint = record == RecordKind.COLLECTIVE
        wrong |= joint & ~np.isin(columns["reference"], list(self._communicators))
        wrong |= joint & ((columns["code"] < 0) | (columns["code"] >= len(OPERATIONS)))
        self._refuse_rows(numbers, lines, wrong)

    def _refuse_rows(self, numbers: NumberLines, lines: IntArray, wrong: npt.NDArray[np.bool_]) -> None:
        if wrong.any():
            place = f"line {numbers.line + int(lines[np.argmax(wrong)])}"
            raise InputError(self._path, "damaged: an impossible number in this record", place)

    def _refuse_lines(self, numbers: NumberLines, wrong: npt.NDArray[np.bool_], reason: str) -> None:
        if wrong.any():
            raise InputError(self._path, reason, f"line {numbers.line + int(np.argmax(wrong))}")
