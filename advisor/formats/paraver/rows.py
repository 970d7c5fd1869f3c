"""Records of a Paraver trace become rows: beginnings and ends of calls, and messages, block after block."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from advisor.formats.number_lines import Columns, GrowingColumns, NumberLines
from advisor.formats.paraver import catalogue
from advisor.model.errors import InputError
from advisor.trace.events import Kind

if TYPE_CHECKING:
    from advisor.formats.paraver.catalogue import EventCatalogue
    from advisor.formats.paraver.header import TraceHeader
    from advisor.model.records import IntArray

#: Columns of ``Rows.events`` and of ``Rows.messages``.
EVENTS: Final[dict[str, type[Any]]] = {
    "location": np.int32,
    "ticks": np.int64,
    "kind": np.uint8,
    "region": np.int32,
    "group": np.int16,
    "comm": np.int32,
    "partner": np.int32,
    "size": np.int64,
    "request": np.int64,
}
MESSAGES: Final[dict[str, type[Any]]] = {
    "number": np.int64,
    "sender": np.int32,
    "send": np.int64,
    "receiver": np.int32,
    "post": np.int64,
    "receive": np.int64,
    "size": np.int64,
    "tag": np.int32,
}
STATE, EVENT, MESSAGE, GLOBAL = range(1, 5)
#: States are summed up by number; higher ones together.
STATES: Final = 64
_MOST_TAG: Final = 2**31 - 1


class ParaverRows:
    """All rows of a trace in the order of the file, and the seconds of states."""

    def __init__(self, header: TraceHeader, known: EventCatalogue, path: Path) -> None:
        self.events, self.messages = GrowingColumns(EVENTS), GrowingColumns(MESSAGES)
        self.states = np.zeros((len(header.rank), STATES), dtype=np.int64)
        self.begin = np.full(len(header.rank), np.iinfo(np.int64).max)
        self.end = np.full(len(header.rank), -1, dtype=np.int64)
        self.started = np.zeros(len(header.rank), dtype=np.int64)
        self.others = 0
        self.counters = self.unlisted = 0
        self._header, self._known, self._path = header, known, path
        self._comms = {key: number for number, key in enumerate(header.communicators)}
        self._files = known.file_places()

    def add_lines(self, numbers: NumberLines) -> None:
        """Add the records of some lines; raises ``InputError`` with the line that is damaged."""
        first, count = numbers.first[:-1], np.diff(numbers.first)
        kind = numbers.values[first]
        right = ((kind == 0) & (count == 1)) | ((kind == STATE) & (count == 8)) | ((kind == MESSAGE) & (count == 15))
        right |= ((kind == EVENT) & (count >= 8) & (count % 2 == 0)) | (kind == GLOBAL)
        if not right.all():
            self._refuse_line(numbers, int(np.flatnonzero(~right)[0]), "damaged: no record of a Paraver trace")
        self.others += int(np.count_nonzero(kind == GLOBAL))
        self._add_states(numbers, np.flatnonzero(kind == STATE))
        self._add_events(numbers, np.flatnonzero(kind == EVENT), count)
        self._add_messages(numbers, np.flatnonzero(kind == MESSAGE))

    def _refuse_line(self, numbers: NumberLines, line: int, reason: str) -> None:
        raise InputError(self._path, reason, f"line {numbers.line + line}")

    def _find_threads(self, numbers: NumberLines, lines: IntArray, field: int) -> npt.NDArray[np.int32]:
        """Return the threads that three fields from ``field`` on name."""
        at = numbers.first[lines] + field
        found = self._header.find_locations(*(numbers.values[at + place] for place in range(3)))
        if (found < 0).any():
            self._refuse_line(numbers, int(lines[np.argmax(found < 0)]), "damaged: no such application, task or thread")
        return found

    def _read_times(self, numbers: NumberLines, lines: IntArray, field: int) -> IntArray:
        times = numbers.values[numbers.first[lines] + field]
        wrong = (times < 0) | (times > self._header.ticks)
        if wrong.any():
            self._refuse_line(numbers, int(lines[np.argmax(wrong)]), "damaged: a time outside of the trace")
        return times

    def _extend_span(self, location: npt.NDArray[np.int32], begin: IntArray, end: IntArray) -> None:
        np.minimum.at(self.begin, location, begin)
        np.maximum.at(self.end, location, end)

    def _add_states(self, numbers: NumberLines, lines: IntArray) -> None:
        location = self._find_threads(numbers, lines, 2)
        begin, end = self._read_times(numbers, lines, 5), self._read_times(numbers, lines, 6)
        if (end < begin).any():
            self._refuse_line(numbers, int(lines[np.argmax(end < begin)]), "damaged: a state ends before it begins")
        state = np.clip(numbers.values[numbers.first[lines] + 7], 0, STATES - 1)
        np.add.at(self.states.reshape(-1), location * STATES + state, end - begin)
        present = state != 2  # not created yet
        self._extend_span(location[present], begin[present], end[present])
        if self._known.by_states:
            self._add_states_as_calls(location, begin, end, state)

    def _add_states_as_calls(
        self, location: npt.NDArray[np.int32], begin: IntArray, end: IntArray, state: IntArray
    ) -> None:
        region = self._known.find_state_regions(state)
        chosen = np.flatnonzero(region >= 0)
        kinds = np.tile(np.array((Kind.ENTER, Kind.LEAVE), dtype=np.uint8), len(chosen))
        columns: Columns = {
            "location": np.repeat(location[chosen], 2),
            "region": np.repeat(region[chosen], 2),
            "kind": kinds,
        }
        columns["ticks"] = np.stack((begin[chosen], end[chosen]), axis=1).reshape(-1)
        nothing = np.full(len(kinds), -1, dtype=np.int32)
        self.events.append(**{name: columns.get(name, nothing) for name in EVENTS})

    def _add_messages(self, numbers: NumberLines, lines: IntArray) -> None:
        at = numbers.first[lines]
        tag = numbers.values[at + 14]
        columns: Columns = {
            "number": self.messages.used + np.arange(len(lines)),
            "sender": self._find_threads(numbers, lines, 2),
            "send": self._read_times(numbers, lines, 5),
            "receiver": self._find_threads(numbers, lines, 8),
            "post": self._read_times(numbers, lines, 11),
            "receive": self._read_times(numbers, lines, 12),
            "size": numbers.values[at + 13],
            "tag": np.where(np.abs(tag) <= _MOST_TAG, tag, _MOST_TAG),
        }
        self._read_times(numbers, lines, 6)
        wrong = (columns["receive"] < columns["post"]) | (columns["size"] < 0)
        if wrong.any():
            self._refuse_line(numbers, int(lines[np.argmax(wrong)]), "damaged: an impossible message")
        self.messages.append(**columns)

    def _add_events(self, numbers: NumberLines, lines: IntArray, count: IntArray) -> None:
        location, ticks = self._find_threads(numbers, lines, 2), self._read_times(numbers, lines, 5)
        self._extend_span(location, ticks, ticks)
        pairs = (count[lines] - 6) // 2
        of_line = np.repeat(np.arange(len(lines)), pairs)
        within = np.arange(len(of_line)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        at = numbers.first[lines][of_line] + 6 + 2 * within
        types = numbers.values[at]
        self.unlisted += int(np.count_nonzero(~np.isin(types, self._known.listed)))
        self.counters += int(np.count_nonzero((types >= catalogue.COUNTERS.start) & (types < catalogue.COUNTERS.stop)))
        wanted = np.isin(types, self._known.types)
        of_line, types, values = of_line[wanted], types[wanted], numbers.values[at[wanted] + 1]
        block = _EventBlock(of_line, types, values, location.astype(np.int64), ticks)
        started = np.flatnonzero(types == catalogue.APPLICATION)
        step = np.where(values[started] != 0, 1, -1)
        np.add.at(self.started, location[of_line[started]], step)
        if self._known.by_states:
            return
        place = np.minimum(np.searchsorted(self._known.calls, types), len(self._known.calls) - 1)
        calls = np.flatnonzero(self._known.calls[place] == types)
        parts = [
            self._build_calls(block, calls, place[calls]),
            self._build_forks(block),
            self._build_collectives(block),
            self._build_file_operations(block),
        ]
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.argsort(joined.pop("order"), kind="stable")
        self.events.append(**{name: column[order] for name, column in joined.items()})

    def _build_calls(self, block: _EventBlock, chosen: IntArray, group: IntArray) -> Columns:
        """Return beginnings and ends of calls."""
        value, line = block.values[chosen], np.zeros(len(chosen), dtype=np.int64)
        for function, lines in self._known.lines.items():
            mine = np.flatnonzero(block.types[chosen] == function)
            line[mine] = block.attribute_values(lines, block.of_line[chosen[mine]], 0)
        entering = value != 0
        region = np.full(len(chosen), -1, dtype=np.int32)
        region[entering] = self._known.number_regions(group[entering], value[entering], line[entering])
        kind = np.where(entering, Kind.ENTER, Kind.LEAVE)
        return block.build_rows(chosen, kind, 2 * chosen, region=region, group=group)

    def _build_forks(self, block: _EventBlock) -> Columns:
        chosen = np.flatnonzero(block.types == catalogue.PARALLEL)
        kind = np.where(block.values[chosen] != 0, Kind.FORK, Kind.JOIN)
        return block.build_rows(chosen, kind, 2 * chosen)

    def _build_collectives(self, block: _EventBlock) -> Columns:
        """Return the collective operations that begin: who takes part, and what is moved."""
        chosen = np.flatnonzero((block.types == catalogue.COLLECTIVE) & (block.values != 0))
        line = block.of_line[chosen]
        size = block.attribute_values(catalogue.SENT, line, 0) + block.attribute_values(catalogue.RECEIVED, line, 0)
        location = block.location[line]
        comm = block.attribute_values(catalogue.COMMUNICATOR, line, -1)
        is_root = block.attribute_values(catalogue.ROOT, line, 0) != 0
        rank = self._header.rank[location]
        return block.build_rows(
            chosen,
            np.full(len(chosen), Kind.COLLECTIVE),
            2 * chosen + 1,
            comm=self._find_communicators(rank, comm),
            partner=np.where(is_root, rank, -1),
            size=size,
        )

    def _find_communicators(self, rank: IntArray, identity: IntArray) -> IntArray:
        """Return the number of each communicator, which its application and its id tell, -1 where it is not known."""
        application = np.searchsorted(self._header.tasks_before, rank, side="right")
        found = np.full(len(rank), -1, dtype=np.int64)
        for key in {*zip(*(part.tolist() for part in _distinct_rows(application, identity)), strict=True)}:
            found[(application == key[0]) & (identity == key[1])] = self._comms.get(key, -1)
        return found

    def _build_file_operations(self, block: _EventBlock) -> Columns:
        """Return the I/O operations that begin, with descriptor as request and the file where it is named."""
        chosen = np.flatnonzero((block.types == catalogue.IO_CALL) & (block.values != 0))
        line = block.of_line[chosen]
        named = block.attribute_values(catalogue.FILE_NAME, line, 0)
        file = np.full(len(chosen), -1, dtype=np.int64)
        for value in np.unique(named).tolist():
            file[named == value] = self._files.get(value, -1)
        return block.build_rows(
            chosen,
            np.full(len(chosen), Kind.IO),
            2 * chosen + 1,
            partner=file,
            size=block.attribute_values(catalogue.IO_SIZE, line, -1),
            request=block.attribute_values(catalogue.IO_DESCRIPTOR, line, -1),
        )


class _EventBlock:
    """Pairs of type and value that matter, with the line that each stands in; per line thread and time."""

    def __init__(
        self, of_line: IntArray, types: IntArray, values: IntArray, location: IntArray, ticks: IntArray
    ) -> None:
        self.of_line, self.types, self.values = of_line, types, values
        self.location, self.ticks = location, ticks

    def attribute_values(self, kind: int, line: IntArray, absent: int) -> IntArray:
        """Return the value of type ``kind`` in each of the lines."""
        mine = np.flatnonzero(self.types == kind)
        result = np.full(len(line), absent, dtype=np.int64)
        if len(mine):
            place = np.minimum(np.searchsorted(self.of_line[mine], line), len(mine) - 1)
            here = self.of_line[mine][place] == line
            result[here] = self.values[mine[place[here]]]
        return result

    def build_rows(self, chosen: IntArray, kind: IntArray, order: IntArray, **columns: npt.NDArray[Any]) -> Columns:
        """Return rows of ``EVENTS`` for the chosen pairs, with their ``order``; what is not given is -1."""
        line = self.of_line[chosen]
        filled: Columns = {
            name: np.full(len(chosen), -1, dtype=dtype) for name, dtype in EVENTS.items() if dtype is not np.uint8
        }
        return (
            filled
            | {"location": self.location[line], "ticks": self.ticks[line], "kind": kind, "order": order}
            | columns
        )


def _distinct_rows(*columns: IntArray) -> npt.NDArray[np.int64]:
    return np.unique(np.stack(columns), axis=1) if len(columns[0]) else np.zeros((len(columns), 0), dtype=np.int64)
