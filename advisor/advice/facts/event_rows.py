"""Counts and seconds of communication, synchronization and I/O at one site, from the causes of a profile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES
from advisor.trace import io_calls
from advisor.trace.events import Role
from advisor.trace.regions import POLLS, classify_region, is_hand_over, is_interpreter_wait, is_notice_wait

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    from advisor.model.records import Causes, Profile

    #: Which regions (regions,) have a trait.
    CallTraits = dict[str, npt.NDArray[np.bool_]]


#: What calls do, told from their canonical names.
SENDS: Final = "sends"
REDUCTIONS: Final = "reductions"
ALL_TO_ALL: Final = "all to all"
EXPLICIT_BARRIERS: Final = "explicit barriers"
#: Collecting data of all ranks at one of them, and giving all ranks what one of them has.
COLLECTS: Final = "collects"
BROADCASTS: Final = "broadcasts"
#: Collecting them as they are, not their sum.
GATHERS: Final = "gathers"
#: Writing into or reading from the memory of another rank, and waiting until that has happened.
ONE_SIDED: Final = "one-sided"
#: The part of this that names what is moved.
MOVES_REMOTE: Final = "moves remote data"
#: Meetings of ranks that share a window, or access each other's memory.
FENCES: Final = "meets at a window"
#: Looking whether something has come or is complete, without waiting for it.
POLLING: Final = "polls"
#: Making and freeing communicators and windows.
SETS_UP: Final = "sets up"
#: Waiting for a notice of another thread.
NOTICES: Final = "notices"
#: Waiting for a turn in the interpreter of Python.
INTERPRETER: Final = "waits for the interpreter"
#: Waiting for a notice of another thread or process that hands over work, as at a queue.
QUEUES: Final = "waits at a queue"
#: Waiting for locks and notices of threads and processes that hand work to each other.
HANDS_OVER: Final = "hands over"
#: Creating threads of POSIX or processes, and creating them and waiting for their ends.
CREATES_THREADS: Final = "creates threads"
CREATES_OR_JOINS: Final = "creates or joins threads"

_REDUCING: Final = ("reduce", "scan")
_FENCES: Final = frozenset(f"mpi_win_{word}" for word in ("fence", "post", "start", "complete", "wait"))


def call_traits(name: str) -> frozenset[str]:
    """Return what a call of that name does, in the words above; nothing for code of the program."""
    canonical, role = classify_region(name)
    call = canonical.lower()
    found = set()
    if role in (Role.SEND, Role.SENDRECV) or (role == Role.POST and "send" in call):
        found.add(SENDS)
    if call.startswith("mpi_") and not call.startswith("mpi_file_"):
        if any(word in call for word in _REDUCING) and role != Role.LOCAL:
            found.add(REDUCTIONS)
        if "alltoall" in call and "neighbor" not in call:
            found.add(ALL_TO_ALL)
    if role == Role.ALL_TO_ONE:
        found |= {COLLECTS} if any(word in call for word in _REDUCING) else {COLLECTS, GATHERS}
    elif role == Role.ONE_TO_ALL and "bcast" in call:
        found.add(BROADCASTS)
    if role == Role.RMA:
        found |= {ONE_SIDED} if call.startswith("mpi_win_") else {ONE_SIDED, MOVES_REMOTE}
    if call in _FENCES:
        found.add(FENCES)
    if role == Role.COMM_OTHER:
        found.add(SETS_UP)
    if canonical in POLLS:
        found.add(POLLING)
    if role == Role.BARRIER or (role == Role.OMP_BARRIER and "implicit" not in call) or call == "mpi_ibarrier":
        found.add(EXPLICIT_BARRIERS)
    if call in ("pthread_create", "thrd_create", "fork"):
        found |= {CREATES_THREADS, CREATES_OR_JOINS}
    elif call in ("pthread_join", "thrd_join", "wait", "wait3", "wait4", "waitpid"):
        found.add(CREATES_OR_JOINS)
    for trait, has in ((NOTICES, is_notice_wait), (INTERPRETER, is_interpreter_wait), (HANDS_OVER, is_hand_over)):
        if has(name):
            found.add(trait)
    if {NOTICES, HANDS_OVER} <= found:
        found.add(QUEUES)
    return frozenset(found | (io_calls.find_io_traits(call) if role == Role.IO else set()))


def find_call_traits(profile: Profile) -> CallTraits:
    """Return which regions (regions,) have each trait."""
    found = [call_traits(region.name) for region in profile.regions]
    ranks = (SENDS, REDUCTIONS, ALL_TO_ALL, EXPLICIT_BARRIERS, COLLECTS, BROADCASTS, GATHERS)
    remote = (ONE_SIDED, MOVES_REMOTE, SETS_UP, FENCES, POLLING)
    threads = (NOTICES, INTERPRETER, HANDS_OVER, QUEUES, CREATES_THREADS, CREATES_OR_JOINS)
    names = (*ranks, *remote, *threads, *io_calls.TRAITS)
    return {name: np.array([name in each for each in found], dtype=bool) for name in names}


@dataclass(frozen=True, slots=True)
class EventRows:
    """The rows of a profile's causes in some phases and, after ``select_rows``, of one kind of event."""

    causes: Causes
    calls: CallTraits
    rows: npt.NDArray[np.int64]
    by_category: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict, compare=False, repr=False)

    def select_rows(self, category: str, kinds: Collection[str] = (), trait: str | None = None) -> EventRows:
        """Return the rows of a category (and of these kinds, and of calls that have the trait)."""
        causes = self.causes
        if category not in self.by_category:  # dozens of facts ask for the same few
            mine = causes.category[self.rows] == CAUSE_CATEGORIES.index(category)
            self.by_category[category] = self.rows[mine]
        rows = self.by_category[category]
        if kinds:
            wanted = np.array([name in kinds for name in causes.kinds], dtype=bool)
            rows = rows[wanted[causes.kind[rows]]]
        if trait is not None:
            rows = rows[self.calls[trait][causes.call[rows]]]
        return EventRows(causes, self.calls, rows)

    def select_mask(self, chosen: npt.NDArray[np.bool_]) -> EventRows:
        """Return the rows where ``chosen`` (rows,) is true."""
        return EventRows(self.causes, self.calls, self.rows[chosen])

    def select_sizes(self, above: float, most: float) -> EventRows:
        """Return the rows whose calls move more than ``above`` and at most ``most`` bytes each (0: also none)."""
        sized = self.sized_rows
        moved, count = self.causes.bytes[sized.rows], self.causes.count[sized.rows]
        return sized.select_mask(((moved > above * count) | (above == 0)) & (moved <= most * count))

    @property
    def targets(self) -> npt.NDArray[np.int64]:
        """The file of each row, -1 where it is not known."""
        return self.causes.target[self.rows]

    @property
    def sized_rows(self) -> EventRows:
        """The rows whose calls have a known number of bytes."""
        return EventRows(self.causes, self.calls, self.rows[self.causes.size_class[self.rows] >= 0])

    @property
    def seconds(self) -> float:
        """Seconds of all rows."""
        return float(self.causes.seconds[self.rows].sum())

    @property
    def count(self) -> int:
        """Calls of all rows."""
        return int(self.causes.count[self.rows].sum())

    @property
    def in_shared_files(self) -> EventRows | None:
        """The rows on files that more than one processor is at; None where the file of a row is not known."""
        target, processor = self.causes.target[self.rows], self.causes.processor[self.rows]
        if (target < 0).any():
            return None
        users = np.unique(np.stack((target, processor)), axis=1)
        files, count = np.unique(users[0], return_counts=True)
        return EventRows(self.causes, self.calls, self.rows[np.isin(target, files[count > 1])])

    @property
    def processors(self) -> npt.NDArray[np.int64]:
        """The processors that take part, without repetition."""
        return np.flatnonzero(np.bincount(self.causes.processor[self.rows] + 1)) - 1

    def calls_per_processor(self) -> float:
        """Return the calls per processor that takes part; 0 where none does."""
        taking_part = len(self.processors)
        return self.count / taking_part if taking_part else 0.0

    def mean_bytes(self) -> float | None:
        """Return the bytes per call whose size is known; 0 without calls, None where no size is known."""
        sized = self.sized_rows
        if not sized.count:
            return None if self.count else 0.0
        return float(self.causes.bytes[sized.rows].sum()) / sized.count

    def share_up_to(self, size: float) -> float | None:
        """Return the share of the calls of known size that move at most ``size`` bytes each; as ``mean_bytes``."""
        sized = self.sized_rows
        if not sized.count:
            return None if self.count else 0.0
        counts = self.causes.count[sized.rows]
        small = self.causes.bytes[sized.rows] <= size * counts
        return float(counts[small].sum()) / sized.count

    def seconds_by_processor(self, processors: int) -> npt.NDArray[np.float64]:
        """Return the seconds of each processor (Q,)."""
        found: npt.NDArray[np.float64] = np.zeros(processors)
        np.add.at(found, self.causes.processor[self.rows], self.causes.seconds[self.rows])
        return found


def select_events(causes: Causes, calls: CallTraits, phases: Sequence[int]) -> EventRows:
    """Return all rows of the causes that lie in these phases."""
    return EventRows(causes, calls, np.flatnonzero(np.isin(causes.phase, list(phases))))
