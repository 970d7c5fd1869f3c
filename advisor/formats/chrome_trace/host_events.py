"""Trace events of programs without devices: what ``B`` and ``E``, or ``X``, enclose on each thread of each process.

Many tools write these (VizTracer, Caliper's and Kokkos' converters, clang's ``-ftime-trace``, programs by themselves);
the names are the program's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from advisor.analysis.quality import HIDDEN
from advisor.formats.chrome_trace.stream import OPEN_ENDED, Event, EventArgs, EventStream
from advisor.model.errors import InputError
from advisor.model.lists import join_names
from advisor.model.records import Note, Processor
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

_MOST_SPANS: Final = 20_000_000
_MOST_NODES: Final = 100_000
_MOST_CELLS: Final = 20_000_000
_US: Final = 1e-6  # seconds in the unit of the times
_NUMBERS: Final = re.compile(r"\d+")
#: How Python's multiprocessing calls the processes of a program (without their numbers).
_PYTHON: Final = re.compile(r"MainProcess|(Fork|Spawn|ForkServer)?(Process|PoolWorker)-[:-]*")
_TOLD: Final = 4
#: A master and a worker may have no event in common.
_TEAM: Final = 2
#: What the processes of Chrome are called.
_BROWSER: Final = frozenset({"Browser", "Renderer", "GPU Process"})
_OTHER: Final = "other events"
_LANE = tuple[str, str]  # process and thread, as they are called


class _Span(NamedTuple):
    """What a thread did from ``start`` to ``end``, microseconds."""

    start: float
    end: float
    name: str


class _Lanes:
    """The events of a file, by process and thread."""

    def __init__(self) -> None:
        self.spans: dict[_LANE, list[_Span]] = {}
        self.programs: dict[str, str] = {}
        self.bad = self.open = self.count = 0
        self._begun: dict[_LANE, list[tuple[float, str]]] = {}
        self._last = -math.inf

    def add_event(self, event: Event) -> None:
        """Take in an event; raises ``TypeError`` or ``ValueError`` for one of another form."""
        kind = event.ph
        if kind == "M" and event.name == "process_name" and isinstance(event.args, EventArgs):
            self.programs[str(event.pid)] = str(event.args.name)
        if kind not in ("B", "E", "X"):
            return
        lane = str(event.pid), str(event.tid)
        now = float(event.ts)
        end = now + float(event.dur or 0) if kind == "X" else now
        if not (math.isfinite(now) and math.isfinite(end) and end >= now) or (kind != "E" and event.name is None):
            raise ValueError(event)
        self._last = max(self._last, end)
        begun = self._begun.setdefault(lane, [])
        if kind == "B":
            begun.append((now, str(event.name)))
        elif kind == "X":
            self._add_span(lane, _Span(now, end, str(event.name)))
        elif begun:
            start, name = begun.pop()
            self._add_span(lane, _Span(start, max(now, start), name))
        else:
            self.bad += 1

    def end_open_events(self) -> None:
        """End what was begun and never ended with the last event of the trace."""
        for lane, begun in self._begun.items():
            self.open += len(begun)
            for start, name in begun:
                self._add_span(lane, _Span(start, self._last, name))

    def _add_span(self, lane: _LANE, span: _Span) -> None:
        self.count += 1
        self.spans.setdefault(lane, []).append(span)


def read_call_paths(path: Path) -> CallPaths:
    """Return what the threads in the trace did; raises ``InputError`` where there are no events, or too many."""
    lanes = _Lanes()
    stream = EventStream(path)
    for batch in stream.iterate_batches():
        for event in batch:
            try:
                lanes.add_event(event)
            except (TypeError, ValueError, OverflowError):
                lanes.bad += 1
        if lanes.count > _MOST_SPANS:
            raise InputError(path, f"holds more than {_MOST_SPANS:,} events")
    lanes.end_open_events()
    if not lanes.spans:
        raise InputError(path, "the trace holds no events of threads")
    order = _order_lanes(lanes)
    _refuse_programs(path, lanes)
    nodes, wall, calls = _sum_nodes(path, [lanes.spans[lane] for lane in order])
    processes = list(dict.fromkeys(process for process, _ in order))
    threads: dict[str, int] = {}
    processors = []
    for process, _ in order:
        processors.append(Processor(processes.index(process), threads.get(process, 0)))
        threads[process] = threads.get(process, 0) + 1
    span = max(one.end for each in lanes.spans.values() for one in each) - min(
        one.start for each in lanes.spans.values() for one in each
    )
    return CallPaths(
        program=lanes.programs.get(processes[0], "") if len(processes) == 1 else "",
        run=path.name,
        reader="chrome_trace",
        processors=tuple(processors),
        nodes=nodes,
        wall_s=wall,
        visits=calls,
        actual_s=span * _US if span > 0 else None,
        status="measured",
        notes=(*([OPEN_ENDED] if stream.open_ended else ()), *_build_notes(lanes, nodes, len(processes))),
    )


def _refuse_programs(path: Path, lanes: _Lanes) -> None:
    """Raise ``InputError`` where the processes are of different programs, which share no work.

    Those without names are of different programs where several have no event in common with any other; one may be the
    master of the others. Nor is a browser a parallel run: its threads serve events, each of its own kind.
    """
    names = {_NUMBERS.sub("", lanes.programs.get(process, "")) for process, _ in lanes.spans}
    names = {"Python" if _PYTHON.fullmatch(name) else name for name in names}
    talk = any(span.name.startswith("MPI_") for spans in lanes.spans.values() for span in spans)
    if len(names) > 1 and not talk:
        told = join_names(sorted(name.strip() or "without a name" for name in names), _TOLD)
        raise InputError(path, f"holds processes of different programs, not of one parallel run: {told}")
    if names & _BROWSER:
        raise InputError(path, "holds a browser, whose threads serve events: no parallel run")
    kinds: dict[str, set[str]] = {}
    for (process, _), spans in lanes.spans.items():
        kinds.setdefault(process, set()).update(span.name for span in spans)
    alone = [
        process
        for process, mine in kinds.items()
        if not any(mine & theirs for other, theirs in kinds.items() if other != process)
    ]
    if names == {""} and len(kinds) > _TEAM and len(alone) >= _TEAM and not talk:
        told = f"what processes {alone[0][:40]} and {alone[1][:40]} do, no other does"
        raise InputError(path, f"holds processes of different programs, not of one parallel run: {told}")


def _order_lanes(lanes: _Lanes) -> list[_LANE]:
    """Return the threads by process; the main one (by its number, else the first to begin) before the others."""
    begins = {lane: min(span.start for span in spans) for lane, spans in lanes.spans.items()}
    first: dict[str, float] = {}
    for (process, _), start in begins.items():
        first[process] = min(first.get(process, math.inf), start)
    ranks = sorted(first, key=lambda process: (_parse_number(process), first[process]))
    return sorted(begins, key=lambda lane: (ranks.index(lane[0]), lane[0] != lane[1], begins[lane], lane[1]))


def _parse_number(text: str) -> float:
    return float(text) if text.isdecimal() and len(text) < 16 else math.inf


def _sum_nodes(path: Path, lanes: list[list[_Span]]) -> tuple[tuple[CallPathNode, ...], np.ndarray, np.ndarray]:
    """Return the nodes, own seconds and calls (nodes, threads)."""
    numbers: dict[tuple[int, str], int] = {}
    nodes: list[CallPathNode] = []
    cells: dict[tuple[int, int], list[float]] = {}
    for column, spans in enumerate(lanes):
        spans.sort(key=lambda span: (span.start, -span.end))
        above: list[tuple[float, int]] = []
        for start, end, name in spans:
            while above and above[-1][0] <= start:
                above.pop()
            parent = above[-1][1] if above else -1
            upto = min(end, above[-1][0]) if above else end  # one that ends after what it began in is cut there
            key = (parent, name)
            if key not in numbers:
                full = len(nodes) >= _MOST_NODES
                key = (-1, _OTHER) if full else key
                if key not in numbers:
                    numbers[key] = len(nodes)
                    role = Role.USER if full else classify_region(name)[1]
                    nodes.append(CallPathNode(_OTHER if full else name, role, parent=-1 if full else parent))
            node = numbers[key]
            mine = cells.setdefault((node, column), [0.0, 0.0])
            mine[0] += upto - start
            mine[1] += 1
            if above:
                cells[above[-1][1], column][0] -= upto - start
            above.append((upto, node))
    if len(nodes) * len(lanes) > _MOST_CELLS:
        raise InputError(path, f"{len(nodes):,} call paths on {len(lanes):,} threads are too many")
    wall, calls = np.zeros((len(nodes), len(lanes))), np.zeros((len(nodes), len(lanes)))
    for (node, column), (microseconds, count) in cells.items():
        wall[node, column], calls[node, column] = max(microseconds, 0.0) * _US, count
    return tuple(nodes), wall, calls


def _build_notes(lanes: _Lanes, nodes: tuple[CallPathNode, ...], processes: int) -> Iterator[Note]:
    if lanes.bad:
        yield Note("events not read", f"{lanes.bad:,} events lack a time or a beginning", 0.1)
    if lanes.open:
        yield Note("events not ended", f"{lanes.open:,} events are begun and never ended: they last to the end", 0.1)
    if processes > 1 and not any(Role.INIT <= node.role <= Role.LOCAL for node in nodes):
        yield Note(HIDDEN, "no event is a call of MPI, so communication and waiting count as work", 0.1)
