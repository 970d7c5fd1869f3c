"""The inputs of the bounds: sums of a profile's arrays, their status, and what to run if one is missing.

Unmeasured is absent, never zero: a quantity without one of its arrays is unavailable, says why, and names the command
that would record it. All texts and commands of missing measurements stand in the table ``MISSING``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.model.records import Profile, Status

_RANK: Final[dict[Status, int]] = {"measured": 0, "estimated": 1, "modelled": 2, "unavailable": 3}
#: One ordinary run tells times, functions, messages, waiting, and input and output (docs/recording.md).
_RUN: Final = "gapwatch run -- {launch}./PROGRAM"
#: Further passes count what was executed (docs/deep.md).
_DEEP: Final = "gapwatch run --deep -- {launch}./PROGRAM"
#: The parameters of a run that say of how many independent parts (k-points) its work consists, and how many groups of
#: ranks work on them at the same time.
PARTS: Final = "k-points"
GROUPS: Final = "k-point groups"
#: The count of seconds that ranks communicate, or wait in it, where neither is told from the other nor from the rest.
COMMUNICATION_S: Final = "communication_s"
#: The count of seconds that the threads of a rank were on no core in the mean, of a table that has one column for them.
IDLE_S: Final = "idle_s"
#: What measures are called in reasons.
WORDS: Final = {
    "wall_s": "wall time",
    "work_s": "work",
    "cpu_s": "CPU time",
    "transfer_s": "time of transfer",
    "wait_s": "waiting",
    "sync_s": "time of synchronizing",
    "io_s": "time of input and output",
    "os_s": "time without a core",
}
HELD_WAITING: Final = (
    "only I/O is separated, so this includes waiting, synchronization and imbalance, up to the whole run"
)
HELD_OS: Final = "no CPU times were recorded, so computation includes operating-system time"


@dataclass(frozen=True, slots=True)
class MissingData:
    """What was not recorded, in words, and the command that records it: ``{launch}`` starts all ranks."""

    what: str
    command: str


#: Everything that a bound may lack.
MISSING: Final[dict[str, MissingData]] = {
    "wall_s": MissingData("the wall times of regions are not known", _RUN),
    "work_s": MissingData("the wall times of regions are not known", _RUN),
    "cpu_s": MissingData("the CPU times are not known", _RUN),
    "transfer_s": MissingData("the time that communication takes is not known", _RUN),
    "wait_s": MissingData("waiting time is unknown", _RUN),
    "sync_s": MissingData("the cost of synchronizing is not known", _RUN),
    "io_s": MissingData("the time of input and output is not known", _RUN),
    "phases": MissingData("no synchronizations are known that divide the run into phases", _RUN),
    "duration_s": MissingData("the times between synchronizations are not known", _RUN),
    "actual_s": MissingData("the wall time of the run is not known", _RUN),
    "functions": MissingData("the functions of the program are not separated", _RUN),
    "machine": MissingData("no machine model was given", "gapwatch advise --machine host PATH"),
    "peak": MissingData("the machine model knows no rate for these operations", "gapwatch machines list"),
    "clock": MissingData("the machine model knows no clock", "gapwatch machines list"),
    "source_ops": MissingData("the operations of the source were not counted", _DEEP),
    "compiled_ops": MissingData("the compiled operations were not counted", _DEEP),
    "scheduled_cycles": MissingData("the compiler's schedule was not analysed", _DEEP),
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A signed sum of a profile's arrays; ``unavailable`` with reason and command where one of them is missing."""

    terms: tuple[tuple[str, float], ...]
    status: Status
    reason: str | None = None
    collect: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a value."""
        return self.status != "unavailable"


@dataclass(frozen=True, slots=True)
class Quantities:
    """Seconds of computation, computation with transfer, work (``wall - wait - sync``), sync and wait.

    ``all_but_io`` tells that nothing but I/O and time without a core is told apart: then computation with transfer is
    all else.
    """

    computation: Quantity
    communication: Quantity
    work: Quantity
    sync: Quantity
    wait: Quantity
    all_but_io: bool = False


def derive_quantities(profile: Profile) -> Quantities:
    """Return what the arrays of ``profile`` make up (docs/concepts.md).

    Work is ``work_s`` where it is stated, else ``wall_s - wait_s - sync_s``. Computation is ``cpu_s``, else work
    without transfer and I/O, which then holds what the operating system took and is estimated. Where a tool recorded
    nothing but I/O, computation with transfer is all the rest.
    """
    work = _work_quantity(profile)
    # whether a tool separates nothing but O (I/O or system time) from the rest of the wall time
    others = ("cpu_s", "transfer_s", "wait_s", "sync_s")
    whole = not profile.has_phases and profile.has_measure("wall_s") and bool(find_system_measures(profile))
    all_but_io = (whole and not any(profile.has_measure(name) for name in others)) and not work.is_known
    return Quantities(
        computation=_computation_quantity(profile, work),
        communication=_all_but_io(profile) if all_but_io else _communication_quantity(profile, work),
        work=work,
        sync=_sum_arrays(profile, ("sync_s", 1.0)),
        wait=_sum_arrays(profile, ("wait_s", 1.0)),
        all_but_io=all_but_io,
    )


def join_reasons(reasons: Iterable[str | None]) -> str | None:
    """Return all reasons in one line, none of their parts twice."""
    parts = [part for reason in reasons if reason for part in reason.split("; ")]
    return "; ".join(dict.fromkeys(parts)) or None


def worst_status(statuses: Iterable[Status]) -> Status:
    """Return the least sure of ``statuses``; ``measured`` if there are none."""
    return max(statuses, key=_RANK.__getitem__, default="measured")


def recording_command(profile: Profile, name: str) -> str:
    """Return the command that would record what ``MISSING`` lists as ``name``, for this program's number of ranks."""
    return MISSING[name].command.format(launch=launch_prefix(profile))


def launch_prefix(profile: Profile) -> str:
    """Return what starts the ranks of a program of this kind, with a space behind; nothing for one process."""
    ranks = max(profile.ranks, profile.ranks_expected or 0)
    return f"mpirun -n {ranks} " if ranks > 1 or "mpi" in profile.paradigms else ""


def missing_quantity(profile: Profile, *names: str) -> Quantity:
    """Return the unavailable quantity that lacks ``names``."""
    reason = join_reasons(MISSING[name].what for name in names)
    return Quantity((), "unavailable", reason, join_reasons(recording_command(profile, name) for name in names))


def _is_alone(profile: Profile) -> bool:
    """Return whether there is no other process, so that communication took exactly no time."""
    return len(profile.processors) == 1 and not profile.paradigms and (profile.ranks_expected or 1) == 1


def _work_quantity(profile: Profile) -> Quantity:
    if profile.has_measure("work_s"):
        return _sum_arrays(profile, ("work_s", 1.0))
    return _sum_arrays(profile, ("wall_s", 1.0), ("wait_s", -1.0), ("sync_s", -1.0))


def _computation_quantity(profile: Profile, work: Quantity) -> Quantity:
    if profile.has_measure("cpu_s"):
        return _sum_arrays(profile, ("cpu_s", 1.0))
    return _without_system(profile, work, "transfer_s", "io_s")


def _communication_quantity(profile: Profile, work: Quantity) -> Quantity:
    if profile.has_measure("cpu_s"):
        return _sum_arrays(profile, ("cpu_s", 1.0), ("transfer_s", 1.0))
    return _without_system(profile, work, "io_s")


def find_system_measures(profile: Profile) -> tuple[str, ...]:
    """Return the measures in ``profile`` that make up O: input and output, and time without a core."""
    return tuple(name for name in ("io_s", "os_s") if profile.has_measure(name))


def _all_but_io(profile: Profile) -> Quantity:
    rest = _sum_arrays(profile, ("wall_s", 1.0), *((name, -1.0) for name in find_system_measures(profile)))
    status = worst_status(("estimated", rest.status))
    return Quantity(rest.terms, status, join_reasons((HELD_WAITING, rest.reason)), recording_command(profile, "wait_s"))


def _without_system(profile: Profile, work: Quantity, *names: str) -> Quantity:
    """Return work less the measures of ``names``, as far as known: an estimate, as it holds what the system took."""
    if not work.is_known:
        return work
    rest = _sum_arrays(profile, *work.terms, *((name, -1.0) for name in names))
    if not rest.is_known:
        return rest
    return Quantity(
        rest.terms,
        worst_status(("estimated", rest.status)),
        join_reasons((HELD_OS, rest.reason)),
        recording_command(profile, "cpu_s"),
    )


def _sum_arrays(profile: Profile, *terms: tuple[str, float]) -> Quantity:
    """Return the signed sum of arrays; what one processor alone cannot have spent is left out."""
    zero = {"transfer_s", "wait_s", "sync_s"} if _is_alone(profile) else set()
    absent = [name for name, _ in terms if not profile.has_measure(name) and name not in zero]
    if absent:
        return missing_quantity(profile, *absent)
    present = tuple((name, sign) for name, sign in terms if profile.has_measure(name))
    statuses = {name: profile.status.get(name, "measured") for name, _ in present}
    return Quantity(present, worst_status(statuses.values()), _describe_statuses(statuses))


def _describe_statuses(statuses: dict[str, Status]) -> str | None:
    """Return which measures are not measured, in words."""
    return "; ".join(f"{WORDS[name]} is {status}" for name, status in statuses.items() if status != "measured") or None
