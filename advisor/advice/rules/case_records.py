"""The records of ``rules/cases.yaml``: small runs on which the examples of rules are tested."""

from dataclasses import dataclass, field
from typing import Final, Literal

from advisor.advice.rules.records import Changed, Model
from advisor.model.units import Bytes, Seconds
from advisor.support.documents import Mark
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

COLLECTIVES: Final = (Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN)
THREAD_ROLES: Final = (Role.OMP_BARRIER, Role.OMP_PARALLEL, Role.OMP_LOCK)


@dataclass(frozen=True, slots=True)
class CaseEvent:
    """Calls that each processor makes in every iteration: how many, of how many bytes, and seconds in all of them.

    ``seconds`` is one number for all processors or one for each; without time no call is made. ``waits`` names the
    kind of waiting that these seconds are.
    """

    call: str
    seconds: tuple[float, ...]
    mark: Mark
    count: int = 1
    bytes: Bytes | None = None
    waits: str | None = None

    @property
    def role(self) -> Role:
        """What the call does."""
        return classify_region(self.call)[1]

    @property
    def category(self) -> str:
        """The measure that the seconds belong to, without its unit."""
        if self.waits:
            return "wait"
        if self.role == Role.IO:
            return "io"
        return "sync" if self.role in (Role.BARRIER, *THREAD_ROLES) else "transfer"

    @property
    def kind(self) -> str:
        """The kind of cause that the calls are."""
        if self.waits:
            return self.waits
        kinds = {Role.IO: "file", Role.BARRIER: "barrier", Role.OMP_BARRIER: "thread barrier", Role.OMP_LOCK: "lock"}
        kinds |= {Role.OMP_PARALLEL: "thread start", **dict.fromkeys(COLLECTIVES, "collective")}
        return kinds.get(self.role, "message")


@dataclass(frozen=True, slots=True)
class CasePhase:
    """A phase that ends when the last processor is done; the others wait for it in ``closed_by``.

    ``work_s`` holds one row for each iteration (they repeat), with a number for each processor or one for all; with
    ``moves`` a row goes on by one processor every so many iterations. Inside a ``threaded`` phase all threads work,
    outside only the first of each rank. ``os_s`` is what the operating system takes.
    """

    name: str
    work_s: tuple[tuple[float, ...], ...]
    mark: Mark
    iterations: int = 10
    closed_by: str | None = "MPI_Barrier"
    serial: bool = False
    threaded: bool = False
    moves: int | None = None
    os_s: tuple[float, ...] = (0.0,)
    events: tuple[CaseEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A run: ``ranks`` processes of ``threads`` threads on ``cores`` cores (default: one for each thread).

    ``knows`` says what was measured: all but CPU times, these too, or nothing but the work of the regions.
    ``device_seconds`` makes it a run with devices: seconds of ``compute`` and of each gap of ``DEVICE_LEVELS``, one
    number for all devices or one for each; ``peak`` is what the kernels would take at the peak of the device. ``facts``
    gives facts that need counts of the processor, and gaps of the machine bounds.
    """

    id: str
    about: str
    mark: Mark
    phases: tuple[CasePhase, ...] = ()
    ranks: int = 4
    threads: int = 1
    cores: int | None = None
    start_up: Seconds = 0.5
    shutdown: Seconds = 0.1
    device_seconds: dict[str, tuple[float, ...]] = field(default_factory=dict)
    knows: Literal["trace", "cpu times", "work"] = "trace"
    models: tuple[Model, ...] = ()
    facts: dict[Changed, str] = field(default_factory=dict)
