"""How many bytes calls moved: user events tell the sizes of messages and of what was read and written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.tau.function_names import build_node, split_path
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.tau.sheet import UserEvent
    from advisor.model.records import FloatArray
    from advisor.trace.callpaths.records import CallPathNode

_SIZE: Final = "Message size for "
_SENT: Final = "Message size sent to "
_ALL: Final = "Message size sent to all nodes"
#: Which calls the sizes of an event are of.
_COLLECTIVES: Final = {
    "all-reduce": ("MPI_Allreduce", "MPI_Iallreduce"),
    "all-to-all": ("MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw"),
    "all-gather": ("MPI_Allgather", "MPI_Allgatherv"),
    "broadcast": ("MPI_Bcast",),
    "gather": ("MPI_Gather", "MPI_Gatherv"),
    "reduce": ("MPI_Reduce",),
    "reduce-scatter": ("MPI_Reduce_scatter", "MPI_Reduce_scatter_block"),
    "scan": ("MPI_Scan", "MPI_Exscan"),
    "scatter": ("MPI_Scatter", "MPI_Scatterv"),
}
_SENDS: Final = (
    "MPI_Send", "MPI_Isend", "MPI_Sendrecv", "MPI_Sendrecv_replace", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend",
    "MPI_Ibsend", "MPI_Issend", "MPI_Irsend", "MPI_Start", "MPI_Startall",
)  # fmt: skip
_WRITTEN: Final = ("Bytes Written", "MPI-IO Bytes Written")
_READ: Final = ("Bytes Read", "MPI-IO Bytes Read")


@dataclass(slots=True)
class MovedBytes:
    """Bytes by processor: ``of_calls`` those whose calls are told, ``sent``, ``read`` and ``written`` the others."""

    of_calls: dict[tuple[int, tuple[str, ...]], float] = field(default_factory=lambda: defaultdict(float))
    attributed_bytes: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    sent: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    files: dict[tuple[int, bool], float] = field(default_factory=lambda: defaultdict(float))
    leaves: dict[str, str] = field(default_factory=dict)

    def add_events(self, events: Sequence[UserEvent], processor: int) -> None:
        """Take in the user events of a processor."""
        for event in events:
            total = event.number * event.mean if event.number else 0.0
            if not total > 0:
                continue
            name, colon, path = event.name.decode("utf-8", "surrogateescape").strip().partition(" : ")
            if name.startswith(_SIZE) and not colon:
                calls = _COLLECTIVES.get(name.removeprefix(_SIZE))
                if calls:
                    self.of_calls[processor, calls] += total
            elif name == _ALL and not colon:
                self.sent[processor] += total
            elif name.startswith(_SENT) and name != _ALL and colon:
                self.of_calls[processor, (self._find_leaf(path),)] += total
                self.attributed_bytes[processor] += total
            elif name in (*_WRITTEN, *_READ) and not colon:
                self.files[processor, name in _WRITTEN] += total

    def _find_leaf(self, path: str) -> str:
        """Return the call at the end of a path of calls."""
        if path not in self.leaves:
            self.leaves[path] = build_node(split_path(path)[-1], ("MPI",), -1).name
        return self.leaves[path]

    def share_by_node(
        self, nodes: Sequence[CallPathNode], visits: FloatArray, kept: Sequence[int]
    ) -> FloatArray | None:
        """Return bytes (nodes, processors): of each kind of call in proportion to the calls; None without any.

        ``kept`` holds the number of each processor of ``visits`` (nodes, processors). None as well where messages
        were sent whose sizes TAU was not asked for: zeros would be taken as sizes.
        """
        found = np.zeros(visits.shape)
        column = {number: place for place, number in enumerate(kept)}
        numbers: dict[str, list[int]] = defaultdict(list)
        for n, one in enumerate(nodes):
            numbers[one.name].append(n)
        for (processor, calls), total in self.of_calls.items():
            _share_bytes(found, visits, [n for call in calls for n in numbers[call]], column.get(processor), total)
        sends = [n for call in _SENDS for n in numbers[call]]
        if visits[sends].any() and not any(self.sent.values()) and not self.attributed_bytes:
            return None
        for processor, total in self.sent.items():
            # What is told by call paths is a part of this; rounding leaves a little.
            left = total - self.attributed_bytes[processor]
            if left > 1e-6 * total:
                _share_bytes(found, visits, sends, column.get(processor), left)
        for (processor, written), total in self.files.items():
            word = "write" if written else "read"
            files = [n for n, one in enumerate(nodes) if one.role == Role.IO and word in one.name.lower()]
            _share_bytes(found, visits, files, column.get(processor), total)
        return found if found.any() else None


def _share_bytes(found: FloatArray, visits: FloatArray, nodes: list[int], processor: int | None, total: float) -> None:
    """Add ``total`` to nodes of a processor in proportion to their calls there."""
    if processor is None:
        return
    called = visits[nodes, processor]
    if len(nodes) and called.sum() > 0:
        found[nodes, processor] += total * called / called.sum()
