"""From the rows of a Paraver trace to a ``Trace``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats import numerals
from advisor.formats.paraver import catalogue, merging, pairing
from advisor.formats.paraver.notes import Flaws, notes
from advisor.formats.paraver.pairing import NOTHING, Line
from advisor.model.errors import InputError
from advisor.trace import spool
from advisor.trace.events import COLUMNS, Kind, Location, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from advisor.formats.numerals import Columns
    from advisor.formats.paraver.catalogue import Catalogue
    from advisor.formats.paraver.header import Header
    from advisor.formats.paraver.labels import Labels
    from advisor.formats.paraver.rows import Rows
    from advisor.model.records import IntArray

#: States that belong to no call of MPI: running, not created, threads, I/O (also the tracer's own) …
_NO_CALL: Final = (0, 1, 2, 5, 7, 9, 12, 14)
#: States that Dimemas writes, and no tracer.
_SIMULATED: Final = (26, 27)


@dataclass(slots=True)
class Tally:
    """What is counted while threads are looked at, one after the other."""

    unopened: int = 0
    unclosed: int = 0
    strays: int = 0
    strangers: int = 0
    unlike: int = 0


class Assembly:
    """A Paraver trace on its way to a ``Trace``: its rows have been read."""

    def __init__(self, path: Path, header: Header, known: Catalogue, rows: Rows) -> None:
        self._path, self._header, self._known, self._rows = path, header, known, rows
        self._threads = len(header.rank)
        self._tally = Tally()
        self._columns, self._first = numerals.sorted_by("location", rows.events.take(), self._threads)
        self._roles: npt.NDArray[np.int64] = np.array([region.role for region in known.regions], dtype=np.int64)

    def trace(self, names: Labels, nodes: tuple[str, ...]) -> Trace:
        """Return the events of all threads; raises ``InputError`` where they make no sense."""
        if self._rows.end.max() <= self._rows.begin.min():
            raise InputError(self._path, "the trace holds no events, or no time passes in it")
        self._check_order()
        parts = [part for _, part in self._lines()]
        dropped = pairing.judge(self._columns["kind"], self._columns["group"], self._known.own, parts)
        self._close()
        self._compact()
        self._complete_collectives()
        self._complete_files()
        columns: dict[str, Any] = {**self._merged()}
        return Trace(
            program=catalogue.program(names),
            tool="Extrae" if catalogue.APPLICATION in names.types else "Paraver",
            locations=self._locations(nodes),
            regions=tuple(self._known.regions),
            communicators=tuple(self._header.communicators.values()),
            files=self._known.files(),
            ticks_s=1 / self._header.per_second,
            notes=notes(self._flaws(names, dropped)),
            **columns,
        )

    def _lines(self) -> Iterator[tuple[int, slice[int, int, None]]]:
        """Yield each thread's number and rows; rows that lie on disk do not stay in memory."""
        for number in range(self._threads):
            yield number, slice(int(self._first[number]), int(self._first[number + 1]))
            spool.release(self._columns.values())

    def _check_order(self) -> None:
        for number, part in self._lines():
            ticks = self._columns["ticks"][part]
            early = np.flatnonzero(ticks[1:] < ticks[:-1]) + 1
            if len(early):
                title = ".".join(str(part) for part in self._header.title[number])
                place = f"thread {title}, time {int(ticks[early[0]])}"
                raise InputError(self._path, "damaged: time runs backwards here", place)

    def _close(self) -> None:
        spent = np.isin(self._known.calls, (*catalogue.MPI_CALLS, catalogue.STARTING))
        for number, part in self._lines():
            kind, region, group = (self._columns[name][part] for name in ("kind", "region", "group"))
            faults = pairing.close(kind, region, group, self._known.nested)
            self._tally.unopened += faults.unopened
            self._tally.unclosed += faults.unclosed
            if not self._known.by_states and self._rows.states[number].any():
                moves = (kind == Kind.ENTER) | (kind == Kind.LEAVE)
                called = np.flatnonzero(moves & spent[np.maximum(group, 0)] & (group >= 0))
                sign = np.where(kind[called] == Kind.LEAVE, 1, -1)
                inside = int((self._columns["ticks"][part][called] * sign).sum())
                states = np.delete(self._rows.states[number], _NO_CALL)
                self._tally.unlike += inside != int(states.sum())

    def _compact(self) -> None:
        """Forget the rows that became nothing; what starts threads becomes forks and joins."""
        forked, done = self._known.regions.get(catalogue.FORKED, -2), 0
        first = np.zeros_like(self._first)
        for number, part in self._lines():
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
        for _, part in self._lines():
            kind, ticks = self._columns["kind"][part], self._columns["ticks"][part]
            begun = np.flatnonzero(((kind == Kind.COLLECTIVE) | (kind == Kind.IO))[:-1] & (kind[1:] == Kind.LEAVE))
            ticks[begun] = ticks[begun + 1]
            self._tally.strangers += int(np.count_nonzero(self._columns["comm"][part][kind == Kind.COLLECTIVE] < 0))
            for comm, rows in self._operations(part):
                named = self._columns["partner"][part][rows]
                known = roots.get(comm, named[:0])
                shorter, longer = sorted((known, named), key=len)
                roots[comm] = longer.copy()
                np.maximum(longer[: len(shorter)], shorter, out=roots[comm][: len(shorter)])
        for _, part in self._lines():
            for comm, rows in self._operations(part):
                self._columns["partner"][part][rows] = roots[comm][: len(rows)]

    def _operations(self, part: slice[int, int, None]) -> Iterator[tuple[int, IntArray]]:
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
            spool.release(self._columns.values())

    def _merged(self) -> Columns:
        """Return the columns of the trace: the rows with the ends of messages and the beginnings of threads."""
        messages = self._rows.messages.take()
        sent, got = (numerals.sorted_by(end, messages, self._threads) for end in ("sender", "receiver"))
        room = len(self._columns["kind"]) + 3 * len(messages["number"]) + 2 * self._threads
        result = {name: numerals.empty_column(room, kind) for name, kind in COLUMNS.items()}
        first = np.zeros(self._threads + 1, dtype=np.int64)
        for number, part in self._lines():
            line = {name: column[part] for name, column in self._columns.items()}
            line |= {"request": np.zeros_like(line["request"]), "tag": np.zeros(len(line["kind"]), dtype=np.int32)}
            parts = self._inserted(number, line, *(_of_number(each, number) for each in (sent, got)))
            if parts:
                line = merging.merged(line, parts)
            begin, first[number + 1] = first[number], first[number] + len(line["kind"])
            line["time_s"] = line.pop("ticks") / self._header.per_second
            for name, column in line.items():
                result[name][begin : first[number + 1]] = column
            spool.release((*result.values(), *sent[0].values(), *got[0].values()))
        return {"first": first} | {name: column[: first[-1]] for name, column in result.items()}

    def _inserted(self, number: int, line: Columns, sent: Columns, got: Columns) -> list[Columns]:
        """Return the rows of a thread that no event stands for: ends of messages, and its own begin and end."""
        calls = Line(line["ticks"], line["kind"], self._roles[line["region"]])
        sends = calls.sends(sent["send"])
        ends = [sends, *calls.receives(got["post"], got["receive"])]
        self._tally.strays += sum(each.strays for each in ends)
        begin, end = int(self._rows.begin[number]), int(self._rows.end[number])
        times = np.concatenate([each.ticks for each in ends])
        if end < 0 and not len(times):
            return []
        rank = self._header.rank
        rows = [merging.message_rows(sends, sent, rank[sent["receiver"]])]
        rows += [merging.message_rows(each, got, rank[got["sender"]]) for each in ends[1:]]
        begin, end = int(times.min(initial=begin)), int(times.max(initial=end))
        return [*rows, *merging.thread_rows(len(line["kind"]), begin, end)]

    def _locations(self, nodes: tuple[str, ...]) -> tuple[Location, ...]:
        header = self._header
        hosts = [nodes[node - 1] if 1 <= node <= len(nodes) else None for node in header.node.tolist()]
        titles = ("THREAD " + ".".join(str(part) for part in title) for title in header.title)
        columns = zip(titles, header.rank.tolist(), header.thread.tolist(), hosts, strict=True)
        return tuple(Location(*each) for each in columns)

    def _flaws(self, names: Labels, dropped: set[int]) -> Flaws:
        rows, header, tally = self._rows, self._header, self._tally
        return Flaws(
            by_states=self._known.by_states,
            names_cut=not names.complete and not self._known.by_states,
            simulated=bool(rows.states[:, _SIMULATED].any()),
            undefined=self._known.undefined.total(),
            unlisted=rows.unlisted,
            unopened=tally.unopened,
            unclosed=tally.unclosed,
            strays=tally.strays,
            strangers=tally.strangers,
            crossing=tuple(sorted(self._known.label(number) for number in dropped)),
            counters=rows.counters,
            others=rows.others,
            short_s=(header.ticks - int(rows.end.max())) / header.per_second,
            running=int(np.count_nonzero(rows.started)),
            unlike=tally.unlike,
            missing=max((header.declared or 0) - len(header.communicators), 0),
        )


def _of_number(found: tuple[Columns, IntArray], number: int) -> Columns:
    """Return the rows of one number of what ``numerals.sorted_by`` gave."""
    columns, first = found
    return {name: column[first[number] : first[number + 1]] for name, column in columns.items()}
