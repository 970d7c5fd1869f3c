"""A thread of a recording: its records and samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.trace.recordings.layout import CALL

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray
    from advisor.trace.recordings.processes import Process, ThreadSpan


@dataclass(frozen=True, slots=True)
class RecordedThread:
    """A thread's records and samples, and ``offset_ns``: what its clock lacks to that of the first process.

    ``slot`` is the number of the first thread on the processor that it shares with others (``slots``), None where it
    shares none.
    """

    process: Process
    span: ThreadSpan
    rank: int
    records: npt.NDArray[Any]
    samples: npt.NDArray[Any]
    offset_ns: int
    slot: int | None = None

    @property
    def processor(self) -> int:
        """The number of the processor that it is part of."""
        return self.span.number if self.slot is None else self.slot


def teams_of(thread: RecordedThread) -> npt.NDArray[np.int64]:
    """Return the records in which a thread does its part of a parallel region of OpenMP."""
    return calls_of(thread, "omp_parallel")


def calls_of(thread: RecordedThread, *names: str) -> IntArray:
    """Return the calls of the functions with these names."""
    numbers = [number for number, name in thread.process.functions.items() if name in names]
    if not numbers:
        return np.zeros(0, dtype=np.int64)
    records = thread.records
    return np.flatnonzero((records["kind"] == CALL) & np.isin(records["function"], numbers))
