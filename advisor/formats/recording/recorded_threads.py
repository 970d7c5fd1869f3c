"""A thread of a recording: its records and samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.trace.events import Kind
from advisor.trace.recordings.layout import CALL, FOLDED

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray, Profile
    from advisor.trace.recordings.processes import Process, ThreadSpan

#: Calls that start threads, or threads and processes, and those that wait for their ends.
STARTS: Final = ("pthread_create", "thrd_create", "fork")
WAITS_FOR_CHILDREN: Final = ("wait", "wait3", "wait4", "waitpid")
ENDS: Final = ("pthread_join", "thrd_join", *WAITS_FOR_CHILDREN)


@dataclass(frozen=True, slots=True)
class Folding:
    """Brief calls of a thread that share records: how many calls and records, the shortest and the longest call."""

    calls: int = 0
    records: int = 0
    shortest_ns: int = 0
    longest_ns: int = 0


@dataclass(frozen=True, slots=True)
class RecordedThread:
    """A thread's records and samples, and ``offset_ns``: what its clock lacks to that of the first process.

    ``registers`` are those at the first samples (n, 16); of others they are not known.
    The number of its span counts the threads of a rank, those of its first process first, then those of its workers;
    ``leads_worker`` is true of the first thread of each of these.
    ``slot`` is the number of the first thread on the processor that it shares with others (``slots``), None where it
    shares none. Records of folded calls are calls here, whose ``tag`` says how many more there were; ``folding`` says
    what is not in them.
    """

    process: Process
    span: ThreadSpan
    rank: int
    records: npt.NDArray[Any]
    samples: npt.NDArray[Any]
    registers: npt.NDArray[np.uint64]
    offset_ns: int
    folding: Folding = Folding()
    slot: int | None = None
    leads_worker: bool = False

    @property
    def is_first(self) -> bool:
        """Whether it is the first thread of its process."""
        return self.leads_worker or self.span.number == 0

    @property
    def used_s(self) -> float:
        """The CPU seconds that it is known to have used; where it was killed, up to its last sample."""
        last_ns = int(self.samples["cpu_ns"][-1:].max(initial=self.span.begin_cpu_ns))
        return ((self.span.end_cpu_ns or last_ns) - self.span.begin_cpu_ns) / 1e9

    @property
    def processor(self) -> int:
        """The number of the processor that it is part of."""
        return self.span.number if self.slot is None else self.slot


def map_processors(profile: Profile) -> dict[tuple[int, int], int]:
    """Return the columns of the processors of a profile, by rank and the number of the thread in it."""
    return {(one.rank, one.thread): q for q, one in enumerate(profile.processors)}


def unfold_records(records: npt.NDArray[Any]) -> Folding:
    """Make the records of folded calls records of calls, in place, and return what these can't tell."""
    folded = np.flatnonzero(records["kind"] == FOLDED)
    if not len(folded):
        return Folding()
    packed = records["cpu_start_ns"][folded]
    records["kind"][folded] = CALL
    records["cpu_start_ns"][folded] = records["cpu_end_ns"][folded] = 0
    return Folding(
        int(records["tag"][folded].sum(dtype=np.int64)) + len(folded),
        len(folded),
        int((packed & np.uint64(0xFFFFFFFF)).min()),
        int((packed >> np.uint64(32)).max()),
    )


def count_calls(records: npt.NDArray[Any]) -> IntArray:
    """Return how many calls each record of some calls stands for."""
    told = (records["event"] == 0) | (records["event"] == Kind.IO)
    return np.where(told, np.maximum(records["tag"], 0).astype(np.int64), 0) + 1


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
