"""Rows of the reading process become the columns of ``Trace``, which grow in place."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from advisor.readers.libotf2.events import EVENTS
from advisor.traces import spool
from advisor.traces.events import COLUMNS, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.model import FloatArray
    from advisor.readers.otf2.communicators import Communicators

#: The layout of ``libotf2.events.ROW``.
ROWS = np.dtype(
    [
        ("time", np.uint64),
        ("size", np.uint64),
        ("request", np.uint64),
        ("reference", np.uint32),
        ("partner", np.uint32),
        ("tag", np.uint32),
        ("event", np.uint32),
    ]
)
_KINDS = np.array([Kind[event.kind] for event in EVENTS], dtype=np.uint8)
#: Whether events of a kind belong to a communicator, by kind.
_IN_COMM = np.isin(np.arange(256), (Kind.SEND, Kind.RECV, Kind.ISEND, Kind.IRECV, Kind.COLLECTIVE))
_TYPES = {"ticks": "u8", **{name: kind for name, kind in COLUMNS.items() if name != "time_s"}}
#: Rows handled at a time where temporary arrays are needed.
_BLOCK = 1 << 17
#: Rows after which columns on disk are let go of.
_KEPT = 1 << 20
#: From here on float64 no longer holds every tick.
_EXACT = 1 << 53


class Lookup:
    """Maps recorded ids to numbers; ids that were never defined map to -1 and are counted."""

    def __init__(self, numbers: dict[int, int]) -> None:
        self._known = np.array([*sorted(numbers), -1], dtype=np.int64)
        self._numbers = np.array([*(numbers[identity] for identity in sorted(numbers)), -1], dtype=np.int32)
        self.undefined: Counter[int] = Counter()

    def __call__(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
        """Return the number of each id."""
        position = np.searchsorted(self._known[:-1], ids)
        missing = self._known[position] != ids
        if missing.any():
            position[missing] = len(self._known) - 1
            self.undefined.update(ids[missing].tolist())
        return self._numbers[position]


class Columns:
    """Columns under construction, location after location; the first ``used`` rows are valid.

    Few of them are in memory, and the room for them is written to at once: the system finds it while the reading
    process starts. Many lie on disk, and some blocks of them are in memory.
    """

    def __init__(self, regions: Lookup, comms: Lookup, files: Lookup, room: int) -> None:
        self.used = 0
        self._regions, self._comms, self._files = regions, comms, files
        self.ticks: npt.NDArray[np.uint64]
        self.kind: npt.NDArray[np.uint8]
        self.region: npt.NDArray[np.int32]
        self.comm: npt.NDArray[np.int32]
        self.partner: npt.NDArray[np.int32]
        self.tag: npt.NDArray[np.int32]
        self.size: npt.NDArray[np.int64]
        self.request: npt.NDArray[np.uint64]
        for name in _TYPES:
            setattr(self, name, _empty(name, room))

    def append(self, rows: npt.NDArray[np.void]) -> None:
        """Add rows: ids become numbers, what is undefined becomes -1; ticks and partners stay as recorded."""
        new = slice(self.used, self.used + len(rows))
        if new.stop > len(self.kind):
            self._move(max(new.stop, 2 * len(self.kind)))
        kind, reference = _KINDS[rows["event"]], rows["reference"]
        self.kind[new] = kind
        self.ticks[new] = rows["time"]
        self.request[new] = rows["request"]
        self.size[new] = rows["size"].view(np.int64)
        self.tag[new] = rows["tag"].view(np.int32)
        self.partner[new] = rows["partner"].view(np.int32)
        for column, concerned, lookup in (
            (self.region, kind <= Kind.LEAVE, self._regions),
            (self.comm, _IN_COMM[kind], self._comms),
            (self.partner, kind == Kind.IO, self._files),
        ):
            chosen = np.flatnonzero(concerned)
            if len(chosen):
                column[new][chosen] = lookup(reference[chosen])
        if new.start // _KEPT != new.stop // _KEPT:
            self._release()
        self.used = new.stop

    def collectives(self, start: int) -> dict[int, int]:
        """Return the number of collective operations from row ``start`` on, by communicator number."""
        total: Counter[int] = Counter()
        for block in self._blocks(start, self.used):
            comm, count = np.unique(self.comm[block][self.kind[block] == Kind.COLLECTIVE], return_counts=True)
            total.update(dict(zip(comm.tolist(), count.tolist(), strict=True)))
        return total

    def place(self, start: int, end: int, rank: int, communicators: Communicators) -> int:
        """Turn communicator numbers and partners of a rank's rows into communicators and ranks.

        Returns how many messages and collective operations stay without.
        """
        unknown, meant = 0, communicators.of_rank(rank)
        for block in self._blocks(start, end):
            concerned = np.flatnonzero(_IN_COMM[self.kind[block]]) + block.start
            chosen = meant[self.comm[concerned]]
            partner = communicators.ranks(chosen, self.partner[concerned])
            self.partner[concerned] = partner
            self.comm[concerned] = communicators.communicator[chosen]
            alone = (partner < 0) & (self.kind[concerned] != Kind.COLLECTIVE)
            unknown += int(np.count_nonzero(alone | (self.comm[concerned] < 0)))
        return unknown

    def backwards(self, start: int) -> int | None:
        """Return the first row from ``start`` on that is earlier than the one before, None if none is."""
        for block in self._blocks(start, self.used):
            ticks = self.ticks[max(block.start - 1, start) : block.stop]
            earlier = np.flatnonzero(ticks[1:] < ticks[:-1])
            if len(earlier):
                return max(int(block.start) - 1, start) + int(earlier[0]) + 1
        return None

    def name_undefined(self, region: int) -> bool:
        """Give calls of regions that were never defined the number ``region``; return whether there are any."""
        found = False
        for block in self._blocks(0, self.used):
            undefined = (self.region[block] < 0) & (self.kind[block] <= Kind.LEAVE)
            self.region[block][undefined] = region
            found |= bool(undefined.any())
        return found

    def seconds(self, offset: int, per_second: int) -> FloatArray:
        """Return the times since ``offset`` (or the first event, where that lies too far back), in seconds.

        The difference is taken in whole ticks; the result takes the place of ``ticks``.
        """
        self._trim()
        ticks = self.ticks
        edges = [(int(ticks[block].min()), int(ticks[block].max())) for block in self._blocks(0, len(ticks))]
        if edges and max(high for _, high in edges) - offset >= _EXACT:
            offset = min(low for low, _ in edges)
        result = ticks.view(np.float64)
        for block in self._blocks(0, len(ticks)):
            result[block] = (ticks[block] - np.uint64(offset)).view(np.int64) / per_second
        return result

    def _blocks(self, start: int, end: int) -> Iterator[slice[int, int, None]]:
        """Yield the rows in blocks; what lies on disk does not stay in memory."""
        for begin in range(start, end, _BLOCK):
            yield slice(begin, min(begin + _BLOCK, end))
            if begin // _KEPT != (begin + _BLOCK) // _KEPT:
                self._release()
        self._release()

    def _release(self) -> None:
        spool.release(getattr(self, name) for name in _TYPES)

    def _move(self, room: int) -> None:
        for name in _TYPES:
            old = getattr(self, name)
            new = _empty(name, room)
            new[: self.used] = old[: self.used]
            setattr(self, name, new)

    def _trim(self) -> None:
        for name in _TYPES:
            setattr(self, name, getattr(self, name)[: self.used])


def _empty(name: str, room: int) -> npt.NDArray[Any]:
    fill = -1 if name in ("region", "comm") else 0
    return spool.column(room, _TYPES[name], fill, spooled=room >= spool.SPOOLED_EVENTS)
