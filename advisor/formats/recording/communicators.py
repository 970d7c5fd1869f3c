"""The communicators of all processes as those of one trace."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.trace.events import Kind
from advisor.trace.recordings.processes import Members, Process, compact_members

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.recorded_threads import RecordedThread


class Communicators:
    """Which communicator of the trace, and which rank of the world, the numbers of each process stand for.

    Communicators with the same members are told apart by the order in which their members made them, which is the same
    in all of them. ``members`` lists the ranks of each, in its order. Lists that are equal are kept once: where each
    rank has its own, they would take ranks^2 x communicators.
    """

    def __init__(self, processes: tuple[Process, ...]) -> None:
        self._numbers: dict[tuple[Members, bool, int], int] = {}
        self._lists: dict[Members, int] = {}
        self._tables = {id(process): self._table(process) for process in processes}
        ranks = {members: tuple(members) for members, *_ in self._numbers}
        self.members = tuple(ranks[members] for members, *_ in self._numbers)
        self._size = np.array([*map(len, self._lists), 0], dtype=np.int64)
        self._first = np.cumsum(self._size) - self._size
        self._ranks = np.fromiter(chain(*self._lists, (-1,)), dtype=np.int32)

    def _table(self, process: Process) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return of a process, by its own numbers: the communicators, and the lists that their partners are in."""
        room = max(process.communicators, default=0) + 1
        number, partners = np.full((2, room), -1, dtype=np.int32)
        seen: Counter[tuple[Members, bool]] = Counter()
        for own, mine in sorted(process.communicators.items()):
            if not mine:
                continue
            remote = process.remotes.get(own)
            everybody = compact_members(sorted({*mine, *remote})) if remote else mine
            kind = everybody, remote is not None
            number[own] = self._numbers.setdefault((*kind, seen[kind]), len(self._numbers))
            seen[kind] += 1
            partners[own] = self._lists.setdefault(remote or mine, len(self._lists))
        return number, partners

    def communicator_numbers(self, thread: RecordedThread, records: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Return the communicator of each record, -1 for none."""
        return self._tables[id(thread.process)][0][_own_numbers(records, len(self._tables[id(thread.process)][0]))]

    def partner_ranks(self, thread: RecordedThread, records: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Return the partner or root of each record as a rank of the world, -1 for none."""
        lists = self._tables[id(thread.process)][1]
        chosen = lists[_own_numbers(records, len(lists))].astype(np.int64)
        partner = records["partner"].astype(np.int64)
        known = (partner >= 0) & (partner < self._size[chosen])
        known &= ~np.isin(records["event"], (Kind.ISEND_DONE, Kind.IRECV_POST))
        return self._ranks[np.where(known, self._first[chosen] + partner, len(self._ranks) - 1)]


def _own_numbers(records: npt.NDArray[Any], room: int) -> npt.NDArray[np.uint16]:
    """Return the communicator that each record names, 0 where its process does not explain it."""
    return np.where(records["comm"] < room, records["comm"], 0)
