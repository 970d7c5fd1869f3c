"""Which event types of a Paraver trace say what, and the regions that their values stand for.

The numbers of types are fixed by Extrae (its ``events.h``); what a value means stands in the ``.pcf`` only.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role, TraceRegion
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.paraver.labels import Labels
    from advisor.model.records import IntArray

APPLICATION, FLUSH, STARTING, IO_CALL = 40000001, 40000003, 40000002, 40000004
IO_DESCRIPTOR, IO_SIZE, FILE_NAME = 40000010, 40000011, 40000059
MPI_CALLS: Final = range(50000001, 50000100)
#: The first of these are in use: point-to-point, collective, other, one-sided, input and output.
_MPI_TYPES: Final = 5
COLLECTIVE: Final = 50000002
SENT, RECEIVED, ROOT, COMMUNICATOR = range(50100001, 50100005)
PARALLEL, WORKSHARING, THREAD_BARRIER, TASK_WAIT, JOIN = 60000001, 60000002, 60000005, 60000022, 60000016
PARALLEL_FUNCTION, FUNCTION, THREAD_FUNCTION, TASK_FUNCTION = 60000018, 60000019, 60000020, 60000023
#: Types of functions, with the type that holds the line of the same function.
LINES: Final = {function: function + 100 for function in (PARALLEL_FUNCTION, FUNCTION, THREAD_FUNCTION, TASK_FUNCTION)}
#: Types below this number are the user's own.
OWN_TYPES: Final = 10_000_000
_ATTRIBUTES: Final = (
    APPLICATION, PARALLEL, SENT, RECEIVED, ROOT, COMMUNICATOR, IO_DESCRIPTOR, IO_SIZE, FILE_NAME,
)  # fmt: skip
#: Hardware counters.
COUNTERS: Final = range(42_000_000, 42_999_999)

_FIXED: Final = {
    FLUSH: TraceRegion("TRACE BUFFER FLUSH", Role.TOOL),
    STARTING: TraceRegion("trace initialization", Role.TOOL),
    THREAD_BARRIER: TraceRegion("OpenMP barrier", Role.OMP_BARRIER),
    TASK_WAIT: TraceRegion("OpenMP taskwait", Role.OMP_LOCK),
    JOIN: TraceRegion("OpenMP implicit barrier", Role.OMP_BARRIER),
}
#: What is said of calls by the state of a thread, where their names are not known.
_STATES: Final = {
    3: ("waiting for a message", Role.RECV),
    4: ("blocking send", Role.SEND),
    5: ("synchronization", Role.OMP_BARRIER),
    6: ("test or probe", Role.WAIT),
    7: ("scheduling and fork/join", Role.OMP_LOCK),
    8: ("wait", Role.WAIT),
    9: ("blocked", Role.OMP_LOCK),
    10: ("immediate send", Role.POST),
    11: ("immediate receive", Role.POST),
    12: ("input and output", Role.IO),
    13: ("group communication", Role.ALL_TO_ALL),
    14: ("tracing disabled", Role.TOOL),
    15: ("other calls", Role.LOCAL),
    16: ("send and receive", Role.SENDRECV),
    17: ("memory transfer", Role.RMA),
    20: ("remote memory access", Role.RMA),
    25: ("one-sided operation", Role.RMA),
    26: ("start of a message", Role.COMM_OTHER),
    27: ("waiting for links", Role.COMM_OTHER),
}
#: Types of Extrae from version 4 on, by the names that their values have in the .pcf.
OUTLINED, PARALLELISM, SYNCHRONIZATION = "OpenMP Outlined function", "OpenMP Parallel", "OpenMP Synchronization"
_OPENMP: Final = (OUTLINED, PARALLELISM, SYNCHRONIZATION, "OpenMP Worksharing", "OpenMP Tasking")
_FORKING: Final = "Fork/Join"
_JOINING: Final = {"BARRIER": _FIXED[THREAD_BARRIER], "JOIN (wait)": _FIXED[JOIN]}
#: Stands for the fork and join of threads until its ends are found.
FORKED: Final = TraceRegion("OpenMP fork and join", Role.TOOL)
_FUNCTION_ROLES: Final = {PARALLEL_FUNCTION: Role.OMP_PARALLEL, TASK_FUNCTION: Role.OMP_WORK}
_PLACE: Final = re.compile(r"([^\[\]]*):(\d{1,9})\s*(?:\[(.*):\d+(?:, (.*))?\])?")


class EventCatalogue:
    """The types that matter, sorted in ``types``, those ``listed`` in the .pcf, and the regions met so far."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._openmp = {number: name for number, name in labels.types.items() if name in _OPENMP}
        numbers = {name: number for number, name in labels.types.items()}
        outlined, line = numbers.get(OUTLINED), numbers.get(f"{OUTLINED} at line/file")
        self.lines = dict(LINES) if outlined is None or line is None else {**LINES, outlined: line}
        told = {*MPI_CALLS, *self.lines, *self._openmp}
        self.by_states = told.isdisjoint(labels.types)
        calls = {IO_CALL, WORKSHARING, *_FIXED, *self.lines, *self._openmp}
        calls |= {number for number in labels.types if number in MPI_CALLS or number < OWN_TYPES}
        calls |= set() if self.by_states else set(MPI_CALLS[:_MPI_TYPES])
        self.calls: IntArray = np.array(sorted(calls), dtype=np.int64)
        self.own: IntArray = np.flatnonzero(self.calls < OWN_TYPES)
        self.nested: IntArray = np.flatnonzero(np.isin(self.calls, (*self.lines, *self._openmp)))
        others = (*_ATTRIBUTES, *self.lines.values())
        self.types: IntArray = np.array(sorted({*calls, *others}), dtype=np.int64)
        self.listed: IntArray = np.array(sorted(labels.types), dtype=np.int64)
        self.regions: dict[TraceRegion, int] = {TraceRegion("the program", Role.ROOT): 0}
        self._met: dict[tuple[int, int, int], int] = {}
        self.undefined: Counter[int] = Counter()

    def find_state_regions(self, state: IntArray) -> npt.NDArray[np.int32]:
        """Return the region of each state, -1 for those in which the program itself runs or does not."""
        named = np.full(int(max(_STATES)) + 1, -1, dtype=np.int32)
        for number in np.unique(state).tolist():
            if number in _STATES:
                named[number] = self.regions.setdefault(TraceRegion(*_STATES[number]), len(self.regions))
        return np.where(state < len(named), named[np.minimum(state, len(named) - 1)], -1).astype(np.int32)

    def type_name(self, group: int) -> str:
        """Return the name of the event type at a place among ``calls``."""
        number = int(self.calls[group])
        return self._labels.types.get(number, str(number))

    def number_regions(self, group: IntArray, value: IntArray, line: IntArray) -> npt.NDArray[np.int32]:
        """Return the region of each beginning of a call; ``line`` is the value of the type in ``LINES``, 0 without."""
        values, code = np.unique(value, return_inverse=True)
        lines, place = np.unique(line, return_inverse=True)
        key = (group * len(values) + code) * len(lines) + place
        keys, first, which, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        found = np.empty(len(keys), dtype=np.int32)
        for number, (row, times) in enumerate(zip(first.tolist(), count.tolist(), strict=True)):
            found[number] = self._number_region(int(self.calls[group[row]]), int(value[row]), int(line[row]), times)
        return found[which]

    def file_names(self) -> tuple[str, ...]:
        """Return the names of files by their value."""
        named = self._labels.values.get(FILE_NAME, {})
        return tuple(named[value] for value in sorted(named) if value)

    def file_places(self) -> dict[int, int]:
        """Return the place in ``file_names`` of each value."""
        return {
            value: place for place, value in enumerate(value for value in sorted(self._value_names(FILE_NAME)) if value)
        }

    def _value_names(self, number: int) -> dict[int, str]:
        return self._labels.values.get(number, {})

    def _number_region(self, kind: int, value: int, line: int, times: int) -> int:
        key = (kind, value, line)
        if key not in self._met:
            self._met[key] = self.regions.setdefault(self._build_region(*key), len(self.regions))
        if kind in MPI_CALLS or kind == IO_CALL or kind in self.lines:
            self.undefined[kind] += times if value not in self._value_names(kind) else 0
        return self._met[key]

    def _build_region(self, kind: int, value: int, line: int) -> TraceRegion:
        if kind in _FIXED:
            return _FIXED[kind]
        name = self._value_names(kind).get(value)
        if kind in self.lines:
            file, number = parse_source_place(self._value_names(self.lines[kind]).get(line, ""))
            role = _FUNCTION_ROLES.get(kind, Role.USER)
            return TraceRegion(name or f"function {value}", role, file, number)
        if kind in self._openmp and kind not in self.lines:
            return _build_openmp_region(self._openmp[kind], name or str(value))
        if kind == WORKSHARING:
            return TraceRegion(f"OpenMP {(name or 'worksharing').lower()}", Role.OMP_WORK)
        if kind < OWN_TYPES:
            return TraceRegion(name or self._labels.types.get(kind, f"event {kind}"), Role.USER)
        if kind == IO_CALL and not name:
            return TraceRegion(f"I/O call {value}", Role.IO)
        return TraceRegion(*classify_region(name or f"{self._labels.types.get(kind, kind)} {value}"))


def _build_openmp_region(kind: str, name: str) -> TraceRegion:
    """Return the region of an OpenMP construct."""
    if kind == PARALLELISM and name.endswith(_FORKING):
        return FORKED
    if kind == SYNCHRONIZATION and name in _JOINING:
        return _JOINING[name]
    waits = kind == SYNCHRONIZATION and not name.startswith("JOIN")
    role = Role.OMP_LOCK if waits else Role.OMP_PARALLEL if kind == PARALLELISM else Role.OMP_WORK
    return TraceRegion(f"OpenMP {name.lower()}", role)


def parse_source_place(label: str) -> tuple[str | None, int | None]:
    """Return file and line of ``solve.c:12 [/src/solve.c:12, /bin/solve]``, None without."""
    found = _PLACE.fullmatch(label)
    if not found or found[1] in ("", "??") or not int(found[2]):
        return None, None
    return found[3] or found[1], int(found[2])


def find_program(labels: Labels) -> str:
    """Return the name of the program: the file that most places in the source belong to; empty when not known."""
    files = Counter(
        found[4].rsplit("/", 1)[-1]
        for number in (*LINES.values(), *range(80000001, 80000101))
        for label in labels.values.get(number, {}).values()
        if (found := _PLACE.fullmatch(label)) and found[4] and found[4] != "??" and ".so" not in found[4]
    )
    return files.most_common(1)[0][0] if files else ""
