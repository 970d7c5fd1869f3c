"""From the rows of a Paraver trace to a ``Trace``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.errors import InputError
from advisor.readers.paraver import catalogue, pairing
from advisor.readers.paraver.merging import Inserted, Merge
from advisor.readers.paraver.notes import Flaws, notes
from advisor.readers.paraver.pairing import NOTHING, Line
from advisor.readers.paraver.rows import EVENTS, MESSAGES
from advisor.traces.events import Kind, Location, Trace
from advisor.traces.nesting import occurrence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from advisor.model import IntArray
    from advisor.readers.numerals import Columns
    from advisor.readers.paraver.catalogue import Catalogue
    from advisor.readers.paraver.header import Header
    from advisor.readers.paraver.labels import Labels
    from advisor.readers.paraver.rows import Rows

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
        order, self._first = _by_number(rows.events.take("location"), self._threads)
        self._columns: Columns = {name: rows.events.take(name)[order] for name in EVENTS if name != "location"}
        self._roles: npt.NDArray[np.int64] = np.array([region.role for region in known.regions], dtype=np.int64)

    def trace(self, names: Labels, nodes: tuple[str, ...]) -> Trace:
        """Return the events of all threads; raises ``InputError`` where they make no sense."""
        if self._rows.end.max() <= self._rows.begin.min():
            raise InputError(self._path, "the trace holds no events, or no time passes in it")
        self._check_order()
        parts = [part for _, part in self._lines()]
        dropped = pairing.judge(self._columns["kind"], self._columns["group"], self._known.own, parts)
        self._close()
        self._fork()
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
        for number in range(self._threads):
            yield number, slice(int(self._first[number]), int(self._first[number + 1]))

    def _check_order(self) -> None:
        ticks = self._columns["ticks"]
        early = np.flatnonzero(ticks[1:] < ticks[:-1]) + 1
        early = early[~np.isin(early, self._first)]
        if len(early):
            thread = int(np.searchsorted(self._first, early[0], side="right")) - 1
            title = ".".join(str(part) for part in self._header.title[thread])
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

    def _fork(self) -> None:
        """Turn the beginnings and ends of what starts threads into forks and joins."""
        kind, region = self._columns["kind"], self._columns["region"]
        rows = np.flatnonzero(region == self._known.regions.get(catalogue.FORKED, -2))
        kind[rows] = np.where(kind[rows] == Kind.ENTER, Kind.FORK, Kind.JOIN)
        region[rows] = -1

    def _compact(self) -> None:
        """Forget the rows that became nothing."""
        kept = self._columns["kind"] != NOTHING
        if not kept.all():
            self._first = np.r_[0, np.cumsum(kept)][self._first]
            self._columns = {name: column[kept] for name, column in self._columns.items()}
        del self._columns["group"]

    def _complete_collectives(self) -> None:
        """Let operations last to the end of their call, and tell the root, which only itself records, to all."""
        kind, ticks, comm = (self._columns[name] for name in ("kind", "ticks", "comm"))
        begun = np.flatnonzero(((kind == Kind.COLLECTIVE) | (kind == Kind.IO))[:-1] & (kind[1:] == Kind.LEAVE))
        ticks[begun] = ticks[begun + 1]
        rows = np.flatnonzero(kind == Kind.COLLECTIVE)
        self._tally.strangers = int(np.count_nonzero(comm[rows] < 0))
        rows = rows[comm[rows] >= 0]
        if not len(rows):
            return
        location = np.searchsorted(self._first, rows, side="right") - 1
        turn = occurrence(comm[rows].astype(np.int64) * self._threads + location)
        key = comm[rows] * (int(turn.max()) + 1) + turn
        keys, which = np.unique(key, return_inverse=True)
        root = np.full(len(keys), -1, dtype=np.int32)
        np.maximum.at(root, which, self._columns["partner"][rows])
        self._columns["partner"][rows] = root[which]

    def _complete_files(self) -> None:
        """Give I/O operations the file that their descriptor was opened for."""
        request, partner = self._columns["request"], self._columns["partner"]
        rows = np.flatnonzero((self._columns["kind"] == Kind.IO) & (request >= 0))
        rank = self._header.rank[np.searchsorted(self._first, rows, side="right") - 1]
        order = np.lexsort((rows, self._columns["ticks"][rows], request[rows], rank))
        rows, rank = rows[order], rank[order]
        place = np.arange(len(rows))
        fresh = np.r_[True, (np.diff(rank) != 0) | (np.diff(request[rows]) != 0)][: len(rows)]
        begin = np.maximum.accumulate(np.where(fresh, place, 0)) if len(rows) else place
        named = np.maximum.accumulate(np.where(partner[rows] >= 0, place, -1)) if len(rows) else place
        known = named >= begin
        partner[rows[known]] = partner[rows[named[known]]]
        request[:] = 0

    def _merged(self) -> Columns:
        """Return the columns of the trace: the rows with the ends of messages and the beginnings of threads."""
        messages: Columns = {name: self._rows.messages.take(name) for name in MESSAGES}
        merge = Merge(self._inserted(messages), len(self._columns["kind"]))
        rank, size, tag = self._header.rank, messages["size"], messages["tag"]
        partner = merge.of_ends(rank[messages["receiver"]], rank[messages["sender"]])
        kind = merge.column(self._columns.pop("kind"), merge.kind)
        return {
            "first": merge.first(self._first),
            "kind": kind,
            "time_s": merge.column(self._columns.pop("ticks"), merge.ticks) / self._header.per_second,
            "region": merge.column(self._columns.pop("region"), merge.regions),
            "comm": merge.column(self._columns.pop("comm"), -1),
            "partner": merge.column(self._columns.pop("partner"), partner),
            "size": merge.column(self._columns.pop("size"), merge.of_ends(size, size)),
            "request": merge.column(self._columns.pop("request"), merge.message + 1).astype(np.uint64),
            "tag": merge.column(np.zeros(int(self._first[-1]), dtype=np.int32), merge.of_ends(tag, tag)),
        }

    def _inserted(self, messages: Columns) -> Inserted:
        """Return the rows that no event stands for."""
        by_sender = _by_number(messages["sender"], self._threads)
        by_receiver = _by_number(messages["receiver"], self._threads)
        inserted = Inserted()
        for number, part in self._lines():
            ticks, kind, region = (self._columns[name][part] for name in ("ticks", "kind", "region"))
            line = Line(ticks, kind, self._roles[region])
            sent = by_sender[0][by_sender[1][number] : by_sender[1][number + 1]]
            got = by_receiver[0][by_receiver[1][number] : by_receiver[1][number + 1]]
            received = line.receives(got, messages["post"][got], messages["receive"][got])
            ends = [line.sends(sent, messages["send"][sent]), *received]
            self._tally.strays += sum(each.strays for each in ends)
            inserted.add(number, part, ends, int(self._rows.begin[number]), int(self._rows.end[number]))
        return inserted

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


def _by_number(numbers: npt.NDArray[np.int32], count: int) -> tuple[IntArray, IntArray]:
    """Return the order that sorts by number and keeps the order among equals, and where each number begins."""
    small = numbers.astype(np.uint16) if count < 1 << 16 else numbers
    order = np.argsort(small, kind="stable")
    return order, np.r_[0, np.cumsum(np.bincount(numbers, minlength=count))].astype(np.int64)
