"""The communicators of all processes as those of one trace."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.trace.events import Kind

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.recorded_threads import RecordedThread
    from advisor.trace.recordings.processes import Process


class Communicators:
    """Which communicator of the trace, and which rank of the world, the numbers of each process stand for.

    Communicators with the same members are told apart by the order in which their members made them, which is the same
    in all of them. ``members`` lists the ranks of each, in its order.
    """

    def __init__(self, processes: tuple[Process, ...]) -> None:
        numbers: dict[tuple[object, ...], int] = {}
        self.members: list[tuple[int, ...]] = []
        self._tables = {id(process): self._table(process, numbers) for process in processes}

    def _table(
        self, process: Process, numbers: dict[tuple[object, ...], int]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return of a process, by its own numbers: the communicators, where the partners' ranks begin, the ranks."""
        room = max(process.communicators, default=0) + 1
        number, first = np.full(room, -1, dtype=np.int32), np.zeros(room + 1, dtype=np.int64)
        ranks: list[int] = []
        seen: Counter[tuple[object, ...]] = Counter()
        for own in range(room):
            first[own] = len(ranks)
            mine, remote = process.communicators.get(own, []), process.remotes.get(own)
            if not mine:
                continue
            everybody = tuple(sorted({*mine, *remote})) if remote else tuple(mine)
            key = (everybody, remote is not None, seen[everybody, remote is not None])
            seen[everybody, remote is not None] += 1
            if key not in numbers:
                numbers[key] = len(self.members)
                self.members.append(everybody)
            number[own] = numbers[key]
            ranks.extend(remote or mine)
        first[room] = len(ranks)
        return number, first, np.array([*ranks, -1], dtype=np.int32)

    def communicator_numbers(self, thread: RecordedThread, records: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Return the communicator of each record, -1 for none."""
        number = self._tables[id(thread.process)][0]
        return number[np.where(records["comm"] < len(number), records["comm"], 0)]

    def partner_ranks(self, thread: RecordedThread, records: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Return the partner or root of each record as a rank of the world, -1 for none."""
        number, first, ranks = self._tables[id(thread.process)]
        own = np.where(records["comm"] < len(number), records["comm"], 0).astype(np.int64)
        size = first[own + 1] - first[own]
        partner = records["partner"].astype(np.int64)
        known = (partner >= 0) & (partner < size)
        known &= ~np.isin(records["event"], (Kind.ISEND_DONE, Kind.IRECV_POST))
        return ranks[np.where(known, first[own] + partner, len(ranks) - 1)]
