"""A trace that the workers of a cluster see: definitions are sent to them, columns lie in files that all read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from advisor.trace import spool
from advisor.trace.events import COLUMNS, Trace

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.support.cluster import Cluster
    from advisor.trace.spreading import Result

#: Bytes written at a time.
_BLOCK = 1 << 24


class ColumnFile(NamedTuple):
    """Where a column lies: file, first byte, type, and number of values."""

    path: str
    offset: int
    kind: str
    length: int


@dataclass(slots=True)
class SharedTrace:
    """``definitions`` are a trace without events, whose columns lie in ``files``; workers open them once."""

    definitions: Trace
    files: dict[str, ColumnFile]
    opened: Trace | None = None

    def open_trace(self) -> Trace:
        """Return the trace, whose columns can be read only."""
        if self.opened is None:
            columns: dict[str, Any] = {name: _open_column(file) for name, file in self.files.items()}
            self.opened = replace(self.definitions, **columns)
        return self.opened


class SharedWork:
    """A trace held by the workers of a cluster; spreads work over them as ``spreading.Spread`` says."""

    def __init__(self, cluster: Cluster, trace: Trace) -> None:
        self.cluster = cluster
        self._held = cluster.send_to_all(share_trace(trace, str(cluster.folder)))

    def __call__(self, work: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """Yield what ``work`` makes of the trace and each of the tasks, in their order."""
        return self.cluster.map_tasks(run_trace_task, ((self._held, work, *task) for task in tasks))


def run_trace_task(shared: SharedTrace, work: Callable[..., Result], *task: Any) -> Result:  # noqa: ANN401
    """Do a task on a worker."""
    return work(shared.open_trace(), *task)


def share_trace(trace: Trace, folder: str) -> SharedTrace:
    """Return what lets workers read a trace; columns that lie in no file of theirs yet are written to ``folder``."""
    files = {name: _share_column(getattr(trace, name), folder) for name in COLUMNS}
    empty: dict[str, Any] = {name: np.zeros(0, dtype=kind) for name, kind in COLUMNS.items()}
    return SharedTrace(replace(trace, **empty), files)


def _share_column(column: npt.NDArray[Any], folder: str) -> ColumnFile:
    known = spool.find_file(column)
    if known is not None and column.flags.c_contiguous:
        return ColumnFile(*known, column.dtype.str, len(column))
    with tempfile.NamedTemporaryFile(prefix="column-", dir=folder, delete=False) as file:
        step = _BLOCK // column.itemsize
        for begin in range(0, len(column), step):
            file.write(np.ascontiguousarray(column[begin : begin + step]).data)
            spool.release_memory([column])
        file.flush()
        os.fsync(file.fileno())  # before workers on other machines look at it
    return ColumnFile(file.name, 0, column.dtype.str, len(column))


def _open_column(file: ColumnFile) -> npt.NDArray[Any]:
    if not file.length:
        return np.zeros(0, dtype=file.kind)
    mapped = np.memmap(file.path, dtype=file.kind, mode="r", offset=file.offset, shape=(file.length,))
    return mapped.view(np.ndarray)
