"""A long trace in windows that fit into memory, cut where all processes synchronize and nothing is in flight.

Behind a synchronization of all processes nobody has anything to do with what came before, once every message and every
request has found its end. There the trace is cut, for each process at its own leave. The calls that are open there,
functions of the program, are entered again at the begin of the next window. Threads are cut at the moment at which
their process is, where they have nothing to do then. A trace whose messages never come out even is one window, unless
none of its receives was recorded, and so is one of a single process, which synchronizes with nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.trace import segmentation
from advisor.trace.events import COLUMNS, Kind, Trace
from advisor.trace.locations import first_locations
from advisor.trace.spool import release_memory
from advisor.trace.spreading import Spread, run_locally

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.nesting import Calls

#: Events that are looked at together.
WINDOW_EVENTS = 1 << 18
#: What nobody asks for any more once it is known which calls and messages belong together.
MATCHING_COLUMNS: Final = ("comm", "request")


class UncleanError(Exception):
    """A trace was cut while an operation was in flight."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """The regions that are open at a cut, outermost first, location after location: ``depth`` (locations,) of each."""

    region: IntArray
    depth: IntArray


@dataclass(frozen=True, slots=True)
class TraceWindow:
    """A part of a trace that is itself a trace.

    ``reentered`` (locations,) counts the calls that were open before the window and begin it; ``begin_s`` and ``end_s``
    (locations,) are the times at which it begins and ends by each location's clock, -inf and inf for the run's ends.
    ``compiled`` says whether loops over its events are compiled.
    """

    trace: Trace
    reentered: IntArray
    begin_s: FloatArray
    end_s: FloatArray
    compiled: bool

    def is_continued(self, calls: Calls) -> npt.NDArray[np.bool_]:
        """Return which calls were entered before this window."""
        return calls.enter < (self.trace.first[:-1] + self.reentered)[calls.location]


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """A window by number, whether it is the last, and from and up to which event of each location it goes."""

    number: int
    last: bool
    low: IntArray
    high: IntArray


class TraceWindows:
    """A trace cut into windows of about ``events`` events."""

    def __init__(
        self, trace: Trace, events: int = WINDOW_EVENTS, *, compiled: bool = False, cutting: Spread | None = None
    ) -> None:
        self.trace = trace
        self.compiled = compiled
        self.edges = _window_edges(trace, events, cutting or partial(run_locally, trace), compiled=compiled)

    def __len__(self) -> int:
        return len(self.edges) - 1

    def as_one_window(self) -> TraceWindows:
        """Return the same trace as one window."""
        return TraceWindows(self.trace, len(self.trace.kind), compiled=self.compiled)

    def empty_stacks(self) -> Stacks:
        """Return what is open at the begin of the trace."""
        return Stacks(np.zeros(0, dtype=np.int64), np.zeros(len(self.trace.locations), dtype=np.int64))

    def make_window(self, number: int, opened: Stacks, *, matched: bool = False) -> TraceWindow:
        """Return a window as ``extract_window`` does."""
        if len(self) == 1:
            nowhere = np.full(len(self.trace.locations), np.inf)
            return TraceWindow(self.trace, np.zeros(len(nowhere), dtype=np.int64), -nowhere, nowhere, self.compiled)
        place = self.place_window(number)
        return extract_window(self.trace, place, opened, compiled=self.compiled, matched=matched)

    def place_window(self, number: int) -> WindowPlace:
        """Return where a window lies."""
        return WindowPlace(number, number + 1 == len(self), self.edges[number], self.edges[number + 1])


def extract_window(
    trace: Trace, place: WindowPlace, opened: Stacks, *, compiled: bool, matched: bool = False
) -> TraceWindow:
    """Return a window of ``trace``; ``opened`` are the calls that the one before left open.

    Of a window whose calls and messages are ``matched`` already, the columns that only this needs are empty.
    """
    masters, nowhere = first_locations(trace), np.full(len(trace.locations), np.inf)
    begin = trace.time_s[place.low[masters] - 1] if place.number else -nowhere
    end = nowhere if place.last else trace.time_s[place.high[masters] - 1]
    names = [name for name in COLUMNS if not (matched and name in MATCHING_COLUMNS)]
    extracted = _extract_events(trace, place.low, place.high, opened, begin, names, compiled=compiled)
    return TraceWindow(extracted, opened.depth, begin, end, compiled)


def has_calls(trace: Trace) -> bool:
    """Return whether any call was entered."""
    return any((trace.kind[block] == Kind.ENTER).any() for block in segmentation.iterate_blocks(0, len(trace.kind)))


def find_open_regions(window: TraceWindow, calls: Calls) -> Stacks:
    """Return the regions that are open at the end of a window."""
    first = window.trace.first
    full = np.flatnonzero(np.diff(first))
    call = np.full(len(first) - 1, -1, dtype=np.int64)
    call[full] = calls.open_after[first[full + 1] - 1]
    layers = []
    while (call >= 0).any():
        layers.append(call)
        call = np.where(call >= 0, calls.parent[call], -1)
    stacked = np.stack(layers[::-1], axis=1) if layers else np.zeros((len(call), 0), dtype=np.int64)
    return Stacks(calls.region[stacked[stacked >= 0]], (stacked >= 0).sum(axis=1))


def _extract_events(
    trace: Trace,
    low: IntArray,
    high: IntArray,
    opened: Stacks,
    begin: FloatArray,
    names: Sequence[str],
    *,
    compiled: bool,
) -> Trace:
    """Return the events from ``low`` to ``high`` of each location, behind enters of the calls that are open."""
    depth = opened.depth
    first = np.r_[0, np.cumsum(depth + high - low)].astype(np.int64)
    entered: dict[str, Any] = {"kind": Kind.ENTER, "comm": -1, "partner": -1, "tag": 0, "size": -1, "request": 0}
    entered |= {"region": opened.region, "time_s": np.repeat(begin, depth)}
    again = np.arange(depth.sum()) + np.repeat(first[:-1] - np.cumsum(depth) + depth, depth)
    columns: dict[str, Any] = {name: np.zeros(0, dtype=kind) for name, kind in COLUMNS.items()}
    extract = _extract_by_loop if compiled else _extract_column
    for name in names:
        column = getattr(trace, name)
        columns[name] = extract(column, low, high, first)
        columns[name][again] = entered[name]
        release_memory([column])  # one by one: the system may map 2 MB around each location's part of a column
    return replace(trace, first=first, **columns)


def _extract_column(column: npt.NDArray[Any], low: IntArray, high: IntArray, first: IntArray) -> npt.NDArray[Any]:
    """Return what lies between ``low`` and ``high`` of each location at the ends of parts that ``first`` delimits."""
    source = np.arange(first[-1]) + np.repeat(high - first[1:], np.diff(first))
    extracted: npt.NDArray[Any] = column[np.maximum(source, 0)]  # what lies before is written to afterwards
    return extracted


def _extract_by_loop(column: npt.NDArray[Any], low: IntArray, high: IntArray, first: IntArray) -> npt.NDArray[Any]:
    """Return what ``_extract_column`` does, by a compiled loop; what lies before is not written to."""
    from advisor.trace import compiled_loops

    extracted = np.empty(int(first[-1]), dtype=column.dtype)
    compiled_loops.extract_column(column, low, high, first, extracted)
    return extracted


def _window_edges(trace: Trace, events: int, cutting: Spread, *, compiled: bool) -> IntArray:
    """Return (windows + 1, locations): the events at which windows begin."""
    ends = np.stack((trace.first[:-1], trace.first[1:]))
    places = segmentation.find_cut_points(trace, cutting, compiled=compiled) if len(trace.kind) > events else None
    if places is None:
        return ends
    before = (places - trace.first[:-1]).sum(axis=1)
    before = before[before < len(trace.kind)]
    taken: list[int] = []
    done = 0
    while len(trace.kind) - done > events and len(before) and before[-1] > done:
        within = int(np.searchsorted(before, done + events, side="right")) - 1
        chosen = max(within, int(np.searchsorted(before, done, side="right")))
        taken.append(chosen)
        done = int(before[chosen])
    return np.vstack((ends[:1], places[taken], ends[1:]))
