"""The events of a Dimemas trace as they were recorded: for a replay, which gives communication the time it takes.

On the clock used here only computation takes time. What a process does not wait for by itself has no end: the format
does not tell when a non-blocking send is over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.dimemas.records import OPERATIONS, DimemasRecords, RecordKind
from advisor.formats.dimemas.rows import AT, TraceRows
from advisor.trace.events import Kind, Role, Trace, TraceRegion

if TYPE_CHECKING:
    from advisor.formats.number_lines import Columns
    from advisor.formats.paraver.labels import Labels
    from advisor.model.records import IntArray

#: Operations from or to one process.
_ROOTED: Final = [
    number for number, name in enumerate(OPERATIONS)
    if name.removesuffix("v") in ("MPI_Bcast", "MPI_Gather", "MPI_Scatter", "MPI_Reduce")
]  # fmt: skip
#: What a record of a receive stands for, by its code.
_RECEIVES: Final = np.array([Kind.RECV, Kind.IRECV_POST, Kind.IRECV], dtype=np.int64)
_NON_BLOCKING: Final = 2
#: The calls that messages stand in where the trace tells of none.
_MESSAGE_CALLS: Final = {
    Kind.SEND: TraceRegion("MPI_Send", Role.SEND),
    Kind.ISEND: TraceRegion("MPI_Isend", Role.POST),
    Kind.RECV: TraceRegion("MPI_Recv", Role.RECV),
    Kind.IRECV_POST: TraceRegion("MPI_Irecv", Role.POST),
    Kind.IRECV: TraceRegion("MPI_Wait", Role.WAIT),
}


def build_event_trace(records: DimemasRecords, names: Labels) -> Trace:
    """Return all messages, requests and collective operations of ``records``, between the calls they stand in.

    ``partner`` of a rooted operation is its root; each message has a ``request`` number of its own.
    """
    return _EventTraceBuilder(records, names).build_trace()


class _EventTraceBuilder(TraceRows):
    """The rows of everything that communicates."""

    def build_trace(self) -> Trace:
        """Return the trace."""
        communicators = self._records.communicators
        members = tuple(dict.fromkeys(communicators.values()))
        numbers = {key: members.index(those) for key, those in communicators.items()}
        everybody = set(self._records.rank.tolist())
        world = next((n for n, those in enumerate(members) if set(those) == everybody), -1)
        comm = np.array([numbers[key] for key in self._records.reference[self._joint].tolist()], dtype=np.int64)
        bare, root = self._find_roles()[1], self._find_roots(self._joint)

        def build_rows(number: int) -> tuple[Columns, IntArray]:
            part = self._slice_collectives(number)
            joint = self._joint[part]
            size = self._records.amount[joint] + self._records.more[joint]
            operations = self._make_rows(joint, AT, Kind.COLLECTIVE, comm=comm[part], partner=root[part], size=size)
            alone = self._build_bare_calls(joint, bare[part])
            parts = [
                self._build_call_rows(number),
                *self._build_messages(number, world),
                operations,
                *alone,
                *self._build_root_rows(number),
            ]
            found = self._join_rows(parts)
            records = slice(*self._records.first[number : number + 2].tolist())
            return found, self._compute_row_times(records, found["order"])

        return replace(self._assemble_trace(build_rows, members), one_clock=True)

    def _build_messages(self, number: int, world: int) -> list[Columns]:
        """Return sends and receives; the format tells ranks among all processes, not in which communicator."""
        first, after = self._records.first[number : number + 2].tolist()
        kind = self._records.kind[first:after]
        sends, receives = (np.flatnonzero(kind == wanted) + first for wanted in (RecordKind.SEND, RecordKind.RECEIVE))
        apart = self._records.code[sends] & _NON_BLOCKING > 0
        kinds = np.where(apart, Kind.ISEND, Kind.SEND), _RECEIVES[self._records.code[receives]]
        return [
            self._build_message_rows(sends, kinds[0], world),
            self._build_message_rows(receives, kinds[1], world),
            *self._build_message_calls(number, np.r_[sends, receives], np.concatenate(kinds)),
        ]

    def _build_message_calls(self, number: int, index: IntArray, kind: IntArray) -> list[Columns]:
        """Return calls of their own for the messages that stand in none: a trace need not tell of calls."""
        bare = self._find_open_roles(number, index) < 0
        present, which = np.unique(kind[bare], return_inverse=True)
        return self._build_own_calls(index[bare], [_MESSAGE_CALLS[Kind(each)] for each in present], which)

    def _build_message_rows(self, index: IntArray, kind: IntArray, world: int) -> Columns:
        records = self._records
        return self._make_rows(
            index, AT, kind, comm=np.full(len(index), world), partner=records.partner[index], tag=records.tag[index],
            size=records.amount[index], request=np.where(kind == Kind.SEND, -1, records.reference[index]),
        )  # fmt: skip

    def _find_roots(self, joint: IntArray) -> IntArray:
        """Return the root of each collective operation, -1 where it has none or the tasks disagree about it.

        The tracer writes 1 at the root itself and 0 at all others; a rank that all of them name is taken too.
        """
        records = self._records
        said, rank = records.partner[joint].astype(np.int64), records.rank[self._locate_records(joint)]
        rooted = np.isin(records.code[joint], _ROOTED)
        if not rooted.any():
            return np.full(len(joint), -1, dtype=np.int64)
        instance = _number_instances(records.reference[joint].astype(np.int64), self._locate_records(joint))
        own = said == 1
        once = np.bincount(instance[own], minlength=instance.max() + 1) == 1
        itself = np.bincount(instance, np.where(own, rank, 0)).astype(np.int64)
        lowest, highest = np.full(len(once), said.max()), np.full(len(once), said.min())
        np.minimum.at(lowest, instance, said)
        np.maximum.at(highest, instance, said)
        agreed = np.where(lowest == highest, lowest, -1)
        return np.where(rooted, np.where(once, itself, agreed)[instance], -1)


def _number_instances(communicator: IntArray, location: IntArray) -> IntArray:
    """Return a number for each operation that is the same for those of its communicator at the same place in order."""
    order = np.lexsort((np.arange(len(communicator)), location, communicator))
    first = np.r_[True, (np.diff(communicator[order]) != 0) | (np.diff(location[order]) != 0)][: len(order)]
    starts = np.flatnonzero(first)
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    result = np.empty(len(order), dtype=np.int64)
    result[order] = np.unique(np.stack([communicator[order], place]), axis=1, return_inverse=True)[1].ravel()
    return result
