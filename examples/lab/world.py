"""A program and what it runs on: phases in a loop, executed by the simulator."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from lab.engine import Engine, Event, Machine
from lab.operations import Enter, Leave, Pass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.loads import Floats
    from lab.operations import Program
    from lab.patterns import Phase


@dataclass(frozen=True, slots=True)
class Noise:
    """What disturbs computation: jitter of each piece of work, rare long disturbances, a rank on a slow core.

    ``jitter`` is a standard deviation relative to the work. A disturbance lasts ``disturbance_s`` on average and hits a
    piece of work with the probability ``disturbed``. The rank ``slow_rank`` needs ``slowness`` times as long.
    """

    jitter: float = 0.0
    disturbed: float = 0.0
    disturbance_s: float = 0.0
    slow_rank: int = -1
    slowness: float = 1.0


@dataclass(frozen=True, slots=True)
class Code:
    """A program: ``phases`` follow each other in each of ``iterations``; ``once`` come before the loop."""

    seed: int
    shape: str
    ranks: int
    iterations: int
    phases: tuple[Phase, ...]
    threads: int = 1
    once: tuple[Phase, ...] = ()
    machine: Machine = field(default_factory=Machine)
    noise: Noise = field(default_factory=Noise)
    faults: tuple[str, ...] = ()
    start_s: float = 0.005

    def changed(self, name: str, phase: Phase) -> Code:
        """Return the program with another phase in the place of the one of that name."""
        return replace(self, phases=tuple(phase if each.name == name else each for each in self.phases))

    def sources(self) -> dict[str, tuple[str, int]]:
        """Return file and line of each user region."""
        names = [region for phase in (*self.once, *self.phases) for region in phase.regions()]
        places = {name: (f"{self.shape}.c", 40 + 25 * number) for number, name in enumerate(dict.fromkeys(names))}
        return {**places, "main": (f"{self.shape}.c", 12)}


@dataclass(frozen=True, slots=True)
class World:
    """What a phase needs to know while a program runs.

    ``work_s`` holds the seconds (ranks, iterations) by the name of the phase, ``mail`` the contents of messages that
    matter: the tasks that a master sent to each worker.
    """

    code: Code
    work_s: dict[str, Floats]
    mail: dict[int, range] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.code.ranks

    def seconds(self, phase: Phase, rank: int, iteration: int) -> float:
        """Return the work of a rank in a phase."""
        return float(self.work_s[phase.name][rank, iteration])

    def number(self, phase: Phase) -> int:
        """Return the place of a phase in the loop."""
        return next(number for number, each in enumerate(self.code.phases) if each.name == phase.name)


@dataclass(frozen=True, slots=True)
class Run:
    """A run: its wall time and, if it was recorded, its events by location."""

    wall_s: float
    log: list[list[Event]]


def run(code: Code, *, record: bool = False) -> Run:
    """Execute a program in virtual time; raises ``DeadlockError``."""
    engine = Engine(code.ranks, code.machine, threads=code.threads, record=record)
    world = World(code, {each.name: work_of(code, each) for each in (*code.once, *code.phases)})
    wall = engine.run([_rank(world, rank) for rank in range(code.ranks)])
    return Run(wall, engine.log)


def work_of(code: Code, phase: Phase) -> Floats:
    """Return the seconds (ranks, iterations) that each rank computes in a phase: load, slow cores and noise.

    Noise belongs to a rank and an iteration, so that it stays the same where the program is changed.
    """
    noise, shape = code.noise, (code.ranks, code.iterations)
    slow = np.ones(code.ranks)
    if 0 <= noise.slow_rank < code.ranks:
        slow[noise.slow_rank] = noise.slowness
    generator = np.random.default_rng([code.seed, zlib.crc32(phase.name.encode())])
    jitter, hit, long = generator.standard_normal(shape), generator.random(shape), generator.exponential(size=shape)
    seconds: Floats = phase.work_s * phase.load.shares(code.ranks, code.iterations, slow)
    seconds = seconds * np.maximum(1.0 + noise.jitter * jitter, 0.5)
    seconds += np.where(hit < noise.disturbed, noise.disturbance_s * long, 0.0) * (seconds > 0)
    return seconds


def _rank(world: World, rank: int) -> Program:
    code = world.code
    yield Enter("main")
    yield Pass("MPI_Init", code.start_s)
    for phase in code.once:
        yield from phase.steps(world, rank, 0)
    for iteration in range(code.iterations):
        for phase in code.phases:
            yield from phase.steps(world, rank, iteration)
    yield Pass("MPI_Finalize", 1e-4)
    yield Leave("main")


def scaled(phases: Sequence[Phase], factor: float) -> tuple[Phase, ...]:
    """Return phases with so many times the work for each rank."""
    return tuple(replace(phase, work_s=phase.work_s * factor) for phase in phases)
