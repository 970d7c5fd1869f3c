"""The records that flow through the pipeline, in the order in which they appear.

``Profile`` is what a reader returns. ``Bound`` and ``Gap`` are computed from it. ``Finding`` comes from
plugins, ``Recommendation`` from the rules, and ``Advice`` holds it all. Records are frozen; numbers live
in numpy arrays, seconds unless the name says otherwise. Unmeasured is absent, never zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import numpy as np
import numpy.typing as npt

from advisor.model.devices import DEVICE_GAPS, DEVICE_LEVELS, DeviceUse
from advisor.model.gap_parts import GapAccount, GapPart
from advisor.model.recommendations import Dismissed, Need, Recommendation, Total
from advisor.model.reports import Picture
from advisor.model.timeline import Timeline

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Status = Literal["measured", "estimated", "modelled", "unavailable"]
PhaseKind = Literal["parallel", "serial", "whole"]
#: Seconds, or NaN where the tool recorded no such time.
SecondsOrNaN = Annotated[float, math.nan]

#: The arrays that a phase may hold, each (region, processor, iteration), seconds.
MEASURES = ("wall_s", "cpu_s", "transfer_s", "wait_s", "sync_s", "io_s", "os_s", "work_s")
#: Categories of a cause: which of a processor's seconds it explains; ``outside`` are those in no phase.
CAUSE_CATEGORIES = ("transfer", "wait", "sync", "io", "outside")
#: Kinds of causes of I/O of which it is known whether they begin at a block of the file system.
ALIGNED_FILE = "aligned file"
UNALIGNED_FILE = "unaligned file"
#: The note of a profile that does not tell work from waiting at all.
WAITING_UNKNOWN = "waiting unknown"
#: The part of a run, outside of its phases, in which other programs held the cores.
OTHER_PROGRAMS = "other programs"
#: The note that there are more processors than cores.
SHARED_CORES = "processors share cores"
#: The note on a program of devices of which only the host was recorded: what waits for them looks like work.
DEVICES_UNSEEN = "device activity not recorded"
#: The notes with what the program's output itself says about how it could be faster, and about its build.
OWN_ADVICE, OLDER_BUILD = "advice of the program", "built for older processors"
#: The note on threads or processes that what was recorded waits for.
OTHERS_UNRECORDED = "others not recorded"
#: The note of a profile whose tool added the ranks up: its processors stand for ranks, but nobody knows which.
RANKS_ADDED_UP = "ranks added up"
#: Reads and writes of at most so many bytes are small.
SMALL_IO_B = 100 << 10
#: Kinds of findings that are shown apart: what bounds the computation, where the time or counts are, and a large gap
#: that no recommendation is about.
COMPUTATION = "computation"
HOT_SPOTS = "hot spots"
UNANSWERED = "unanswered"
Verdict = Literal["advice", "nothing significant", "insufficient evidence"]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the hierarchy: the bound's name, what it adds, and the gap that leads up to it."""

    bound: str
    adds: str
    gap: str | None


#: The hierarchy of a run on CPUs, lowest bound first (Hung and Davidson, section 3.2.1; S' and W are this project's).
LEVELS = (
    Level("M", "machine peak", None),
    Level("MA", "the mix of operations", "A"),
    Level("MAC", "what the compiler emitted", "C"),
    Level("MACS", "the actual schedule", "S"),
    Level("I", "finite cache", "$"),
    Level("IP", "degree of parallelization", "P"),
    Level("IPC", "communication", "C'"),
    Level("IPCO", "I/O and operating system", "O"),
    Level("IPCOL", "overall load imbalance", "L"),
    Level("IPCOLM", "multiphase imbalance", "M'"),
    Level("IPCOLMD", "dynamic imbalance", "D"),
    Level("IPCOLMDS", "synchronization", "S'"),
    Level("IPCOLMDSW", "waiting inside phases", "W"),
    Level("actual", "start-up, shutdown and the rest", "X"),
)
#: All levels of both hierarchies; each bound has its place behind the one below it.
ALL_LEVELS = (*LEVELS, *(Level(level.bound, level.adds, level.gap) for level in DEVICE_LEVELS))
BOUND_NAMES = tuple(level.bound for level in LEVELS)
GAP_NAMES = (*(level.gap for level in LEVELS if level.gap), *DEVICE_GAPS)
#: Gaps between the bounds below I, which only operation counts tell apart.
OF_COMPUTATION: Final = frozenset(("A", "C", "S", "$"))


def find_adjacent_bounds(gap_name: str) -> tuple[str, str]:
    """Return the bounds right below and above a gap, by its letter."""
    upper = next(number for number, level in enumerate(ALL_LEVELS) if level.gap == gap_name)
    return ALL_LEVELS[upper - 1].bound, ALL_LEVELS[upper].bound


@dataclass(frozen=True, slots=True)
class Processor:
    """One rank, one thread of a rank, or one stream of its ``device``: streams count on behind the threads."""

    rank: int
    thread: int = 0
    host: str | None = None
    from_s: float | None = None
    to_s: float | None = None
    device: int | None = None

    @property
    def name(self) -> str:
        """``rank 3``, ``rank 3 thread 1`` for a thread that is not the first, ``rank 3 device 0 stream 2``."""
        if self.device is not None:
            return f"rank {self.rank} device {self.device} stream {self.thread}"
        return f"rank {self.rank}" if self.thread == 0 else f"rank {self.rank} thread {self.thread}"


@dataclass(frozen=True, slots=True)
class Region:
    """A named piece of source; ``threaded`` when executed inside a parallel region of threads."""

    name: str
    file: str | None = None
    line: int | None = None
    threaded: bool = False


@dataclass(frozen=True, slots=True)
class Phase:
    """A span of the run up to a synchronization of all processors, with all its iterations.

    ``regions`` (R,) holds indices into ``Profile.regions``; every array of ``arrays`` has the shape
    (R, Q, I): own seconds of region, processor, iteration. ``duration_s`` (I,) is the time between the
    two synchronizations, on one clock. ``kind`` is ``whole`` when the profile has no phases at all.
    """

    name: str
    kind: PhaseKind
    regions: IntArray
    arrays: Mapping[str, FloatArray]
    closed_by: str | None = None
    start_s: FloatArray | None = None
    duration_s: FloatArray | None = None

    @property
    def iterations(self) -> int:
        """How often the phase occurred."""
        return next(iter(self.arrays.values())).shape[2] if self.arrays else 0


@dataclass(frozen=True, slots=True)
class Causes:
    """Why processors communicated, waited, synchronized or did I/O: one row per distinct combination.

    All columns have the same length. ``category`` indexes ``CAUSE_CATEGORIES``; ``kind`` indexes
    ``kinds`` (``late sender``, ``late receiver``, ``late root``, ``collective``, ``barrier``, ``message``,
    ``unmatched``, ``thread barrier``, ``thread start``, ``file``, ``unaligned file``, ``start-up``, ``shutdown`` …).
    ``phase`` indexes ``Profile.phases`` (-1: outside); ``call`` and ``caller`` index ``Profile.regions`` (caller -1:
    unknown); ``processor`` and ``partner`` index ``Profile.processors`` (-1: none or all); ``target`` indexes
    ``targets`` (files, -1: none); ``size_class`` is the bit length of the bytes of one call (-1: unknown).
    ``seconds``, ``count`` and ``bytes`` are totals over the row.
    """

    kinds: tuple[str, ...]
    targets: tuple[str, ...]
    category: IntArray
    kind: IntArray
    phase: IntArray
    call: IntArray
    caller: IntArray
    processor: IntArray
    partner: IntArray
    target: IntArray
    size_class: IntArray
    seconds: FloatArray
    count: IntArray
    bytes: IntArray


@dataclass(frozen=True, slots=True)
class Note:
    """One fact about the quality of a profile: how bad (``penalty`` 0 to 1 off the grade) and what to do."""

    name: str
    text: str
    penalty: float = 0.0
    collect: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """One run of one program, as far as it was measured; ``program`` is empty where the format does not name it.

    ``actual_s`` is the run's wall time, NaN where only operations were counted or CPU times taken (``has_run_time``).
    ``phases`` holds one phase of kind ``whole`` when the tool recorded none. ``outside`` maps parts of the run that lie
    in no phase (``start-up``, ``shutdown``, ``not running``, ``idle``) to seconds per processor (Q,): over all phases a
    processor's wall time plus its outside seconds is ``actual_s``. ``counts`` maps a count (``calls``, ``messages``,
    ``bytes``, ``source_ops.fp_add``, ``compiled_ops.load``, ``scheduled_cycles``, ``misses.L1`` …) to an array
    (regions, processors). ``status`` gives the status of each measure. ``executable`` is the path of the program's file
    where the run was recorded, ``job`` its batch job, as the scheduler calls it. ``command`` is the command line of
    which all processes together were accounted for, with what launched them, where nothing was recorded inside of them.
    ``devices`` is the account of a run with accelerators: then its bounds and gaps are those of ``DEVICE_LEVELS``.
    ``sampled_code`` holds the places in the program's file, in bytes, at which there are samples, and their number;
    ``sampled_processors`` the same by processor, (place, processor, samples), empty if not known; ``sampled_registers``
    what registers (``REGISTER_NAMES``) held at some of them in one thread, (samples, 16), ``sampled_pairs`` in two,
    (2, samples, 16), ``sampled_progress`` at two samples in a row, with their CPU cycles and places, (pairs, 2, 18).
    """

    program: str
    run: str
    reader: str
    actual_s: SecondsOrNaN
    processors: tuple[Processor, ...]
    regions: tuple[Region, ...]
    phases: tuple[Phase, ...]
    status: Mapping[str, Status]
    build: str | None = None
    started: str | None = None
    machine: str | None = None
    cores: int | None = None
    language: str | None = None
    executable: str | None = None
    paradigms: tuple[str, ...] = ()
    parameters: Mapping[str, str | float] = field(default_factory=dict)
    outside: Mapping[str, FloatArray] = field(default_factory=dict)
    counts: Mapping[str, FloatArray] = field(default_factory=dict)
    causes: Causes | None = None
    notes: tuple[Note, ...] = ()
    ranks_expected: int | None = None
    clock_uncertainty_s: float | None = None
    devices: DeviceUse | None = None
    job: str | None = None
    command: str | None = None
    sampled_code: tuple[tuple[int, int], ...] = ()
    sampled_processors: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64), compare=False)
    sampled_registers: Mapping[int, npt.NDArray[np.uint64]] = field(default_factory=dict)
    sampled_pairs: Mapping[int, npt.NDArray[np.uint64]] = field(default_factory=dict)
    sampled_progress: Mapping[int, npt.NDArray[np.uint64]] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        """The number of processes with any record."""
        return len({processor.rank for processor in self.processors})

    @property
    def has_run_time(self) -> bool:
        """Whether the wall time of the run was recorded."""
        return not math.isnan(self.actual_s)

    @property
    def start_and_shutdown_s(self) -> float:
        """The mean seconds of start-up and shutdown; 0 if they were not distinguished."""
        return sum(float(self.outside[name].mean()) for name in ("start-up", "shutdown") if name in self.outside)

    @property
    def is_simulated(self) -> bool:
        """Whether the times come from a simulation or a replay, so that they have no noise."""
        return bool(self.status) and set(self.status.values()) == {"modelled"}

    @property
    def has_phases(self) -> bool:
        """Whether synchronizations divide the run, so that M', D and S' can be distinguished."""
        return bool(self.phases) and self.phases[0].kind != "whole"

    def has_measure(self, measure: str) -> bool:
        """Whether every phase holds the array ``measure``."""
        return bool(self.phases) and all(measure in phase.arrays for phase in self.phases)

    def sum_by_region(self, measure: str) -> FloatArray:
        """Return a measure's seconds (regions, processors) over the phases that hold it; 0 for regions without."""
        total = np.zeros((len(self.regions), len(self.processors)))
        for phase in self.phases:
            if measure in phase.arrays:
                np.add.at(total, phase.regions, phase.arrays[measure].sum(axis=2))
        return total


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the run time in seconds; without a value, why and which command would give it."""

    name: str
    seconds: float | None
    status: Status
    reason: str | None = None
    collect: str | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A named part of a gap: a region with its phase and place, a processor, an iteration or a cause."""

    name: str
    seconds: float
    phase: str | None = None
    file: str | None = None
    line: int | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference of two neighbouring known bounds, and where it comes from."""

    name: str
    members: tuple[str, ...]
    lower: str
    upper: str
    seconds: float
    share: float
    status: Status
    reason: str | None = None
    regions: tuple[Share, ...] = ()
    processors: tuple[Share, ...] = ()
    iterations: tuple[Share, ...] = ()
    causes: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True)
class Efficiency:
    """A POP efficiency (0 to 1) with its status; ``None`` where the data do not allow it."""

    name: str
    value: float | None
    status: Status
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What a plugin noticed: ``kind`` and ``subject`` name it, ``measures`` hold the numbers, ``pictures`` more.

    ``explains`` are the parts of gaps that it explains, in seconds.
    """

    plugin: str
    kind: str
    subject: str
    text: str
    measures: Mapping[str, float] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    explains: tuple[GapPart, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A file that describes runs without being one: what it is, in ``words``, and the program it is about."""

    words: str
    program: str | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """How reliable a profile is: A (fully) to F (not at all), with the reasons."""

    letter: Literal["A", "B", "C", "D", "F"]
    score: float
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """Everything that is said about one run; ``accounts`` hold what findings explain of its gaps.

    ``timeline`` and ``pictures`` show the arrays of the profile, which the history does not keep.
    """

    profile: Profile
    grade: Grade
    bounds: tuple[Bound, ...]
    gaps: tuple[Gap, ...]
    efficiencies: tuple[Efficiency, ...]
    findings: tuple[Finding, ...]
    recommendations: tuple[Recommendation, ...]
    total: Total
    steps_to_revisit: tuple[int, ...]
    needs: tuple[Need, ...]
    verdict: Verdict
    problems: tuple[str, ...] = ()
    dismissed: tuple[Dismissed, ...] = ()
    accounts: tuple[GapAccount, ...] = ()
    timeline: Timeline | None = None
    pictures: tuple[Picture, ...] = ()

    @property
    def pending(self) -> tuple[Recommendation, ...]:
        """The recommendations that nobody suppressed, the best first."""
        return tuple(item for item in self.recommendations if item.state != "suppressed")
