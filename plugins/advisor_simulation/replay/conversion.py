"""From the events of a trace to a program: the computation between calls, and what happens in the calls."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import InputError
from advisor.trace import locations, matching
from advisor.trace.aligned_times import align_times
from advisor.trace.events import Role, Trace, TraceRegion
from advisor_simulation.replay import operation_matching
from advisor_simulation.replay.polling import wait_in_receives
from advisor_simulation.replay.program import Op, Program
from advisor_simulation.replay.scanning import SETTING_UP, ScannedRows, scan_trace

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.operation_matching import MatchedCollectives


_COLUMNS = ("time_s", "kind", "region", "comm", "partner", "tag", "size", "request")


def convert_trace(trace: Trace) -> Program:
    """Return the program that ``trace`` records; raises ``InputError`` where there is nothing to replay."""
    trace = _select_first_threads(trace)
    if not len(trace.time_s) or (np.diff(trace.first) == 0).any():
        raise InputError(trace.program or "trace", "a process without events: there is nothing to replay")
    trace = replace(trace, time_s=align_times(trace))
    return _TraceConverter(trace).build_program()


#: The traces that were asked about last: a run and an excerpt of it are asked about in turn.
_latest: deque[tuple[Trace, Program]] = deque(maxlen=2)


def find_program(trace: Trace) -> Program:
    """Return the result of ``convert_trace``, cached for the latest trace."""
    known = next((program for one, program in _latest if one is trace), None)
    if known is None:
        known = convert_trace(trace)
        _latest.append((trace, known))
    return known


def _select_first_threads(trace: Trace) -> Trace:
    """Return the trace with the first thread of each process, in the order of ranks; a replay knows no others."""
    kept = np.flatnonzero(locations.are_first_threads(trace))
    kept = kept[np.argsort(locations.ranks_of_locations(trace)[kept], kind="stable")]
    if np.array_equal(kept, np.arange(len(trace.locations))):
        return trace
    parts = [np.arange(trace.first[each], trace.first[each + 1]) for each in kept.tolist()]
    events = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    return replace(
        trace, locations=tuple(trace.locations[each] for each in kept.tolist()),
        first=np.r_[0, np.cumsum([len(part) for part in parts])].astype(np.int64),
        **{name: getattr(trace, name)[events] for name in _COLUMNS},
    )  # fmt: skip


class _TraceConverter:
    """The rows of all ranks, and the numbers of the messages and collective operations they take part in."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._rows = scan_trace(trace)
        self._ranks = locations.ranks_of_locations(trace)
        self._rank = np.repeat(np.arange(len(self._ranks)), np.diff(self._rows.first))
        self._position = np.full(int(self._ranks.max()) + 1, -1, dtype=np.int64)
        self._position[self._ranks] = np.arange(len(self._ranks))
        self._link = np.full(len(self._rows.op), -1, dtype=np.int64)
        self._value = np.zeros(len(self._rows.op))
        self._left_out: list[str] = []

    def build_program(self) -> Program:
        """Return the program."""
        rows, trace = self._rows, self._trace
        source, target = self._match_messages()
        joint = self._match_collectives()
        begin = self._begin_times()
        lost = (self._link < 0) & ~np.isin(rows.op, (Op.BURST, Op.FIXED))
        rows.op[lost] = Op.FIXED
        spent = _measure_rows(rows, begin)
        rows = rows._replace(end_s=wait_in_receives(trace, rows, self._link, spent))
        spent = _measure_rows(rows, begin)
        timed = np.isin(rows.op, (Op.BURST, Op.FIXED))
        self._value[timed] = spent[timed]
        return Program(
            first=rows.first, op=rows.op, value=self._value, link=self._link.astype(np.int32), call=rows.call,
            region=rows.region, source=source, target=target, collectives=joint.collectives,
            communicators=tuple(self._member_positions(group) for group in trace.communicators),
            names=tuple(region.name for region in trace.regions), places=tuple(map(_describe_place, trace.regions)),
            title=trace.program, end_s=rows.end_s,
            hosts=tuple(location.host for location in trace.locations), left_out=tuple(self._left_out),
            start_s=begin,
        )  # fmt: skip

    def _member_positions(self, group: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(self._position[rank]) for rank in group)

    def _event_column(self, column: npt.NDArray[np.generic], rows: IntArray) -> IntArray:
        return column[self._rows.event[rows]].astype(np.int64)

    def _partner_positions(self, rows: IntArray) -> IntArray:
        partner = self._event_column(self._trace.partner, rows)
        known = (partner >= 0) & (partner < len(self._position))
        return np.where(known, self._position[np.where(known, partner, 0)], -1)

    def _match_messages(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Match sends and receives, number the messages, and return their sources and targets."""
        op = self._rows.op
        sends = np.flatnonzero(np.isin(op, (Op.SEND, Op.ISEND)))
        got = np.flatnonzero(np.isin(op, (Op.RECV, Op.DONE)))
        group = self._request_groups()
        posts = self._find_posts(got, group)
        order = np.argsort(posts, kind="stable")
        got, posts = got[order], posts[order]
        there, here = self._partner_positions(sends), self._partner_positions(got)
        everything = len(sends) + len(got)
        sends, got, posts = sends[there >= 0], got[here >= 0], posts[here >= 0]
        label = operation_matching.number_labels(
            *(self._event_column(column, np.r_[sends, got]) for column in (self._trace.comm, self._trace.tag))
        )
        channel = operation_matching.number_channels(
            np.r_[self._rank[sends], here[here >= 0]], np.r_[there[there >= 0], self._rank[got]], label
        )
        left, right = operation_matching.match_ends(channel[: len(sends)], channel[len(sends) :])
        self._number_messages(sends[left], got[right], posts[right], group)
        lost = everything - 2 * len(left)
        if lost:
            self._left_out.append(f"{lost} ends of messages without the other end")
        return self._rank[sends[left]].astype(np.int32), self._rank[got[right]].astype(np.int32)

    def _request_groups(self) -> IntArray:
        """Return one number per row, equal where rank and request are."""
        event = self._rows.event
        request = np.where(event >= 0, self._trace.request[np.maximum(event, 0)], np.uint64(0))
        known, number = np.unique(request, return_inverse=True)
        return self._rank * len(known) + number

    def _find_posts(self, got: IntArray, group: IntArray) -> IntArray:
        """Return the row that posted each receive: its mate, the latest post of the request, or itself."""
        posts = np.where(self._rows.mate[got] >= 0, self._rows.mate[got], got)
        waits = np.flatnonzero((self._rows.op[got] == Op.DONE) & (self._rows.mate[got] < 0))
        sources = np.flatnonzero((self._rows.op == Op.IRECV) & (self._rows.event >= 0))
        found = operation_matching.find_latest(group, sources, got[waits])
        posts[waits] = np.where(found >= 0, found, got[waits])
        return posts

    def _number_messages(self, sends: IntArray, got: IntArray, posts: IntArray, group: IntArray) -> None:
        """Give the number of a message to all operations on it."""
        op, number = self._rows.op, np.arange(len(sends))
        self._link[posts] = number
        self._link[got] = number
        self._link[sends] = number
        op[got[posts == got]] = Op.RECV
        self._value[sends] = np.maximum(self._event_column(self._trace.size, sends), 0)
        closing = np.flatnonzero((op == Op.SENT) & (self._rows.mate >= 0))
        self._link[closing] = self._link[self._rows.mate[closing]]
        silent, completed = match_completions(self._trace, self._rows, self._rank)
        silent, completed = silent[self._link[completed] >= 0], completed[self._link[completed] >= 0]
        ends = np.flatnonzero((op == Op.SENT) & (self._rows.mate < 0))
        found = operation_matching.find_latest(group, np.flatnonzero((op == Op.ISEND) & (self._rows.event >= 0)), ends)
        self._link[ends] = np.where(found >= 0, self._link[np.maximum(found, 0)], -1)
        op[silent], self._link[silent] = Op.SENT, self._link[completed]

    def _match_collectives(self) -> MatchedCollectives:
        """Number the collective operations; those of setting up take their own time once all are there."""
        rows, trace = self._rows, self._trace
        at = np.flatnonzero(rows.op == Op.JOIN)
        role = np.array([region.role for region in trace.regions], dtype=np.int64)
        at = at[np.isin(role[rows.call[at]], (*matching.COLLECTIVE_ROLES, *SETTING_UP))]
        root = np.maximum(self._event_column(trace.partner, at), -1)
        position = np.where((root >= 0) & (root < len(self._position)), self._position[np.maximum(root, 0)], -1)
        comm, size = self._event_column(trace.comm, at), self._event_column(trace.size, at)
        joint = operation_matching.match_collectives(
            trace, self._rank[at], comm, rows.call[at].astype(np.int64), position, size
        )
        self._link[at] = joint.link
        self._divide_setup(np.flatnonzero((rows.op == Op.FIXED) & (rows.mate >= 0)), joint)
        lost = joint.lost + int((rows.op == Op.JOIN).sum()) - len(at)
        if lost:
            self._left_out.append(f"{lost} calls of collective operations that not all members took part in")
        return joint

    def _divide_setup(self, rests: IntArray, joint: MatchedCollectives) -> None:
        """Let the operations of setting up end when the last rank is there, and their rests take the time behind."""
        rows = self._rows
        joins = rows.mate[rests]
        known = self._link[joins] >= 0
        rests, joins = rests[known], joins[known]
        begin = np.where(np.isin(joins, rows.first[:-1]), self._begin_times()[self._rank[joins]], rows.end_s[joins - 1])
        latest = np.full(len(joint.collectives), -np.inf)
        np.maximum.at(latest, self._link[joins], begin)
        rows.end_s[joins] = np.clip(latest[self._link[joins]], begin, rows.end_s[rests])

    def _begin_times(self) -> FloatArray:
        """Return when each process began, seconds."""
        result: FloatArray = self._trace.time_s[self._trace.first[:-1]]
        return result


def _measure_rows(rows: ScannedRows, begin_s: FloatArray) -> FloatArray:
    """Return how long each row takes (rows,), s; ``begin_s`` is when each process began."""
    spent: FloatArray = np.diff(rows.end_s, prepend=0.0)
    spent[rows.first[:-1]] = rows.end_s[rows.first[:-1]] - begin_s
    return spent


def _describe_place(region: TraceRegion) -> str:
    if region.file is None or region.line is None or region.role == Role.USER:
        return ""
    return f"{PurePath(region.file).name}:{region.line}"


def match_completions(trace: Trace, rows: ScannedRows, rank: IntArray) -> tuple[IntArray, IntArray]:
    """Return rows of waits in which nothing is recorded, and the row of the send that each completes."""
    nothing = np.zeros(0, dtype=np.int64)
    sends = np.flatnonzero((rows.op == Op.ISEND) & (rows.event >= 0))
    told = ((rows.op == Op.SENT) & (rows.mate < 0)).any()
    if told or not len(sends):
        return nothing, nothing
    role = np.array([region.role for region in trace.regions], dtype=np.int64)
    known = np.maximum(rows.call, 0)
    waiting = (rows.call >= 0) & (role[known] == Role.WAIT) & np.isin(rows.op, (Op.FIXED, Op.DONE))
    for_all = np.array(["all" in region.name.lower() for region in trace.regions])[known]
    test = np.array(["test" in region.name.lower() for region in trace.regions])[known]
    waits = np.flatnonzero(waiting & ~test & (for_all | (rows.op == Op.FIXED)))
    everything = np.sort(np.r_[sends, waits])
    columns = rank[everything], rows.op[everything], for_all[everything]
    return _match_in_order(everything, *(column.tolist() for column in columns))


def _match_in_order(row: IntArray, rank: list[int], op: list[int], for_all: list[bool]) -> tuple[IntArray, IntArray]:
    """Go through sends and waits in the order of each rank."""
    waits, completed = [], []
    open_: deque[int] = deque()
    last = -1
    for at, who, what, several in zip(row.tolist(), rank, op, for_all, strict=True):
        if who != last:
            open_.clear()
            last = who
        if what == Op.ISEND:
            open_.append(at)
        elif open_:
            latest = open_[-1] if several else open_.popleft()
            if several:
                open_.clear()
            if what == Op.FIXED:
                waits.append(at)
                completed.append(latest)
    return np.array(waits, dtype=np.int64), np.array(completed, dtype=np.int64)
