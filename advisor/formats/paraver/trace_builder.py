"""From the rows of a Paraver trace to a ``Trace``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats import number_lines
from advisor.formats.paraver import call_pairing, catalogue, row_merging
from advisor.formats.paraver.call_pairing import NOTHING, ThreadCalls
from advisor.formats.paraver.notes import TraceFlaws, build_notes
from advisor.model.errors import InputError
from advisor.trace import spool
from advisor.trace.events import COLUMNS, Kind, Location, Trace

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.number_lines import Columns
    from advisor.formats.paraver.catalogue import EventCatalogue
    from advisor.formats.paraver.header import TraceHeader
    from advisor.formats.paraver.labels import Labels
    from advisor.formats.paraver.rows import ParaverRows
    from advisor.model.records import IntArray

#: States that belong to no call of MPI: running, not created, threads, I/O (also the tracer's own) …
_NO_CALL: Final = (0, 1, 2, 5, 7, 9, 12, 14)
#: States that Dimemas writes, and no tracer.
_SIMULATED: Final = (26, 27)


@dataclass(slots=True)
class FlawTally:
    """What is counted while threads are looked at, one after the other."""

    unopened_calls: int = 0
    unclosed_calls: int = 0
    stray_messages: int = 0
    unknown_communicators: int = 0
    unlike_threads: int = 0


class TraceBuilder:
    """A Paraver trace on its way to a ``Trace``: its rows have been read."""

    def __init__(self, path: Path, header: TraceHeader, known: EventCatalogue, rows: ParaverRows) -> None:
        self._path, self._header, self._known, self._rows = path, header, known, rows
        self._threads = len(header.rank)
        self._tally = FlawTally()
        self._columns, self._first = number_lines.sort_columns("location", rows.events.take_columns(), self._threads)
        self._roles: npt.NDArray[np.int64] = np.array([region.role for region in known.regions], dtype=np.int64)

    def build_trace(self, names: Labels, nodes: tuple[str, ...]) -> Trace:
        """Return the events of all threads; raises ``InputError`` where they make no sense."""
        if self._rows.end.max() <= self._rows.begin.min():
            raise InputError(self._path, "the trace holds no events, or no time passes in it")
        self._check_order()
        parts = [part for _, part in self._iterate_threads()]
        dropped = call_pairing.drop_crossing_groups(
            self._columns["kind"], self._columns["group"], self._known.own, parts
        )
        self._close_calls()
        self._compact_rows()
        self._complete_collectives()
        self._complete_files()
        columns: dict[str, Any] = {**self._merge_rows()}
        return Trace(
            program=catalogue.find_program(names),
            tool="Extrae" if catalogue.APPLICATION in names.types else "Paraver",
            locations=self._build_locations(nodes),
            regions=tuple(self._known.regions),
            communicators=tuple(self._header.communicators.values()),
            files=self._known.file_names(),
            ticks_s=1 / self._header.per_second,
            notes=build_notes(self._collect_flaws(names, dropped)),
            **columns,
        )

    def _iterate_threads(self) -> Iterator[tuple[int, slice[int, int, None]]]:
        """Yield each thread's number and rows; rows that lie on disk do not stay in memory."""
        for number in range(self._threads):
            yield number, slice(int(self._first[number]), int(self._first[number + 1]))
            spool.release_memory(self._columns.values())

    def _check_order(self) -> None:
        for number, part in self._iterate_threads():
            ticks = self._columns["ticks"][part]
            early = np.flatnonzero(ticks[1:] < ticks[:-1]) + 1
            if len(early):
                title = ".".join(str(part) for part in self._header.title[number])
                place = f"thread {title}, time {int(ticks[early[0]])}"
                raise InputError(self._path, "damaged: time runs backwards here", place)

    def _close_calls(self) -> None:
        spent = np.isin(self._known.calls, (*catalogue.MPI_CALLS, catalogue.STARTING))
        for number, part in self._iterate_threads():
            kind, region, group = (self._columns[name][part] for name in ("kind", "region", "group"))
            faults = call_pairing.close_calls(kind, region, group, self._known.nested)
            self._tally.unopened_calls += faults.unopened_calls
            self._tally.unclosed_calls += faults.unclosed_calls
            if not self._known.by_states and self._rows.states[number].any():
                moves = (kind == Kind.ENTER) | (kind == Kind.LEAVE)
                called = np.flatnonzero(moves & spent[np.maximum(group, 0)] & (group >= 0))
                sign = np.where(kind[called] == Kind.LEAVE, 1, -1)
                inside = int((self._columns["ticks"][part][called] * sign).sum())
                states = np.delete(self._rows.states[number], _NO_CALL)
                self._tally.unlike_threads += inside != int(states.sum())

    def _compact_rows(self) -> None:
        """Forget the rows that became nothing; what starts threads becomes forks and joins."""
        forked, done = self._known.regions.get(catalogue.FORKED, -2), 0
        first = np.zeros_like(self._first)
        for number, part in self._iterate_threads():
            line = {name: column[part] for name, column in self._columns.items() if name != "group"}
            rows = np.flatnonzero(line["region"] == forked)
            line["kind"][rows] = np.where(line["kind"][rows] == Kind.ENTER, Kind.FORK, Kind.JOIN)
            line["region"][rows] = -1
            kept = np.flatnonzero(line["kind"] != NOTHING)
            for name, column in line.items():
                self._columns[name][done : done + len(kept)] = column[kept]
            done += len(kept)
            first[number + 1] = done
        del self._columns["group"]
        self._first = first

    def _complete_collectives(self) -> None:
        """Let operations last to the end of their call, and tell the root, which only itself records, to all."""
        roots: dict[int, npt.NDArray[np.int32]] = {}
        for _, part in self._iterate_threads():
            kind, ticks = self._columns["kind"][part], self._columns["ticks"][part]
            begun = np.flatnonzero(((kind == Kind.COLLECTIVE) | (kind == Kind.IO))[:-1] & (kind[1:] == Kind.LEAVE))
            ticks[begun] = ticks[begun + 1]
            self._tally.unknown_communicators += int(
                np.count_nonzero(self._columns["comm"][part][kind == Kind.COLLECTIVE] < 0)
            )
            for comm, rows in self._iterate_collectives(part):
                named = self._columns["partner"][part][rows]
                known = roots.get(comm, named[:0])
                shorter, longer = sorted((known, named), key=len)
                roots[comm] = longer.copy()
                np.maximum(longer[: len(shorter)], shorter, out=roots[comm][: len(shorter)])
        for _, part in self._iterate_threads():
            for comm, rows in self._iterate_collectives(part):
                self._columns["partner"][part][rows] = roots[comm][: len(rows)]

    def _iterate_collectives(self, part: slice[int, int, None]) -> Iterator[tuple[int, IntArray]]:
        """Yield the communicators that a thread uses, and the rows of its collective operations in each."""
        rows = np.flatnonzero(self._columns["kind"][part] == Kind.COLLECTIVE)
        comm = self._columns["comm"][part][rows]
        for number in np.unique(comm[comm >= 0]).tolist():
            yield number, rows[comm == number]

    def _complete_files(self) -> None:
        """Give I/O operations the file that their descriptor was opened for."""
        request, partner = self._columns["request"], self._columns["partner"]
        for threads in np.split(np.arange(self._threads), np.flatnonzero(np.diff(self._header.rank)) + 1):
            parts = [slice(int(self._first[number]), int(self._first[number + 1])) for number in threads]
            used = [np.flatnonzero(self._columns["kind"][part] == Kind.IO) + part.start for part in parts]
            rows = np.concatenate(used)
            rows = rows[request[rows] >= 0]
            rows = rows[np.lexsort((rows, self._columns["ticks"][rows], request[rows]))]
            place = np.arange(len(rows))
            fresh = np.r_[True, np.diff(request[rows]) != 0][: len(rows)]
            begin = np.maximum.accumulate(np.where(fresh, place, 0))
            named = np.maximum.accumulate(np.where(partner[rows] >= 0, place, -1))
            known = named >= begin
            partner[rows[known]] = partner[rows[named[known]]]
            spool.release_memory(self._columns.values())

    def _merge_rows(self) -> Columns:
        """Return the columns of the trace: the rows with the ends of messages and the beginnings of threads."""
        messages = self._rows.messages.take_columns()
        sent, got = (number_lines.sort_columns(end, messages, self._threads) for end in ("sender", "receiver"))
        room = len(self._columns["kind"]) + 3 * len(messages["number"]) + 2 * self._threads
        result = {name: number_lines.empty_column(room, kind) for name, kind in COLUMNS.items()}
        first = np.zeros(self._threads + 1, dtype=np.int64)
        for number, part in self._iterate_threads():
            line = {name: column[part] for name, column in self._columns.items()}
            line |= {"request": np.zeros_like(line["request"]), "tag": np.zeros(len(line["kind"]), dtype=np.int32)}
            parts = self._build_inserted_rows(number, line, *(_select_rows(each, number) for each in (sent, got)))
            if parts:
                line = row_merging.merge_rows(line, parts)
            begin, first[number + 1] = first[number], first[number] + len(line["kind"])
            line["time_s"] = line.pop("ticks") / self._header.per_second
            for name, column in line.items():
                result[name][begin : first[number + 1]] = column
            spool.release_memory((*result.values(), *sent[0].values(), *got[0].values()))
        return {"first": first} | {name: column[: first[-1]] for name, column in result.items()}

    def _build_inserted_rows(self, number: int, line: Columns, sent: Columns, got: Columns) -> list[Columns]:
        """Return the rows of a thread that no event stands for: ends of messages, and its own begin and end."""
        calls = ThreadCalls(line["ticks"], line["kind"], self._roles[line["region"]])
        sends = calls.place_sends(sent["send"])
        ends = [sends, *calls.place_receives(got["post"], got["receive"])]
        self._tally.stray_messages += sum(each.stray_messages for each in ends)
        begin, end = int(self._rows.begin[number]), int(self._rows.end[number])
        times = np.concatenate([each.ticks for each in ends])
        if end < 0 and not len(times):
            return []
        rank = self._header.rank
        rows = [row_merging.message_rows(sends, sent, rank[sent["receiver"]])]
        rows += [row_merging.message_rows(each, got, rank[got["sender"]]) for each in ends[1:]]
        begin, end = int(times.min(initial=begin)), int(times.max(initial=end))
        return [*rows, *row_merging.thread_rows(len(line["kind"]), begin, end)]

    def _build_locations(self, nodes: tuple[str, ...]) -> tuple[Location, ...]:
        header = self._header
        hosts = [nodes[node - 1] if 1 <= node <= len(nodes) else None for node in header.node.tolist()]
        titles = ("THREAD " + ".".join(str(part) for part in title) for title in header.title)
        columns = zip(titles, header.rank.tolist(), header.thread.tolist(), hosts, strict=True)
        return tuple(Location(*each) for each in columns)

    def _collect_flaws(self, names: Labels, dropped: set[int]) -> TraceFlaws:
        rows, header, tally = self._rows, self._header, self._tally
        return TraceFlaws(
            by_states=self._known.by_states,
            names_cut=not names.complete and not self._known.by_states,
            simulated=bool(rows.states[:, _SIMULATED].any()),
            undefined_calls=self._known.undefined.total(),
            unlisted_events=rows.unlisted,
            unopened_calls=tally.unopened_calls,
            unclosed_calls=tally.unclosed_calls,
            stray_messages=tally.stray_messages,
            unknown_communicators=tally.unknown_communicators,
            crossing_types=tuple(sorted(self._known.type_name(number) for number in dropped)),
            counter_values=rows.counters,
            other_records=rows.others,
            short_s=(header.ticks - int(rows.end.max())) / header.per_second,
            running_threads=int(np.count_nonzero(rows.started)),
            unlike_threads=tally.unlike_threads,
            missing_communicators=max((header.declared or 0) - len(header.communicators), 0),
        )


def _select_rows(found: tuple[Columns, IntArray], number: int) -> Columns:
    """Return the rows of one number of what ``numerals.sorted_by`` gave."""
    columns, first = found
    return {name: column[first[number] : first[number + 1]] for name, column in columns.items()}
