"""Compares a model with the program that it was made of: misses by array and loads, each with its error."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.mds.costs import MachineCosts
from advisor_simulation.mds.engine import Simulation
from advisor_simulation.model.world import build_world
from advisor_simulation.program.array_layout import iterate_in_loops
from advisor_simulation.program.cache_check import CacheGeometry, count_misses

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.model.records import FloatArray
    from advisor_simulation.mds.log import SimulationLog
    from advisor_simulation.model.records import Model
    from advisor_simulation.program.program_model import FoldedProgram, TracedProgram

#: Arrays with a smaller share of all misses are compared together.
_SMALL: Final = 0.01


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity of the model beside the measured one."""

    name: str
    modelled: float
    measured: float

    @property
    def error(self) -> float:
        """The error of the model as a share of what was measured."""
        if self.measured == 0:
            return 0.0 if self.modelled == 0 else 1.0
        return self.modelled / self.measured - 1.0


def simulate_plain(
    model: Model, folder: Path, processors: int, cache: CacheGeometry | None = None
) -> tuple[tuple[str, ...], SimulationLog]:
    """Return the arrays of a model and what a simulation at no costs writes down; infinite caches without ``cache``."""
    sets, ways = (cache.size // (cache.line * cache.ways), cache.ways) if cache else (0, 0)
    line = cache.line if cache else CacheGeometry().line
    costs = MachineCosts(
        second=1.0, hit=0.0, memory=0.0, near=0.0, far=0.0, line=line, node=processors, barrier=0.0, signal=0.0,
        dispatch=0.0, fork=0.0, sets=sets, ways=ways, latency=0.0, per_byte=0.0, assumed=(),
    )  # fmt: skip
    world = build_world(model, folder, processors, None, line)
    return tuple(world.arrays), Simulation(world, costs).run_simulation()


def compare_loads(log: SimulationLog, folded: FoldedProgram) -> list[Comparison]:
    """Return the instructions of each processor in parallel phases, as the model has them and as they were counted."""
    modelled = np.zeros(folded.processors)
    for span in log.spans:
        for entry in span.entries:
            if not entry.serial:
                modelled += entry.work
    measured: FloatArray = np.zeros(folded.processors)
    for number in folded.order:
        phase = folded.phases[number]
        if phase.parallel:
            for q, piece in phase.pieces.items():
                measured[q] += piece.end_count - piece.begin_count
    return [
        Comparison(f"instructions of processor {q}", float(modelled[q]), float(measured[q]))
        for q in range(folded.processors)
        if measured[q] or modelled[q]
    ]


def compare_misses(
    model: Model,
    folder: Path,
    traced: TracedProgram,
    folded: FoldedProgram,
    command: Sequence[str],
    scratch: Path,
    cache: CacheGeometry | None = None,
) -> list[Comparison]:
    """Return the misses of each array in a first cache, simulated by the model and by valgrind.

    valgrind lets the threads of a process share one cache: such programs are compared at one thread. Empty where the
    model holds for no other number of threads.
    """
    cache = cache or CacheGeometry()
    if traced.ranked:
        processors, variables = folded.processors, {"OMP_NUM_THREADS": "1"}
    elif model.processors not in (None, 1):
        return []
    else:
        processors, variables = 1, {"OMP_NUM_THREADS": "1"}
    names, log = simulate_plain(model, folder, processors, cache)
    counted = count_misses(command, traced.image.path, cache, scratch, variables)
    shares = _share_instructions(traced, folded)
    measured: dict[str, float] = {}
    for address, counts in counted.items():
        for name, share in shares.get(address, {}).items():
            measured[name] = measured.get(name, 0.0) + (counts.read_misses + counts.write_misses) * share
    modelled = {} if log.transactions is None else dict(zip(names, log.transactions.sum(axis=(1, 2)), strict=True))
    return _compare_arrays({name: float(modelled.get(name, 0)) for name in names}, measured)


def _share_instructions(traced: TracedProgram, folded: FoldedProgram) -> dict[int, dict[str, float]]:
    """Return for each instruction, by address, the share of its accesses that go to each array."""
    counts: dict[int, Counter[str]] = {}
    for number, times in Counter(folded.order).items():
        for step in folded.folded[number].steps:
            for use in iterate_in_loops(step.body, (len(step.owner),)):
                address = traced.code.accesses[use.reference.instruction].address
                name = traced.names[use.reference.data]
                counts.setdefault(address, Counter())[name] += use.reference.count * times
    return {at: {name: one / found.total() for name, one in found.items()} for at, found in counts.items()}


def _compare_arrays(modelled: dict[str, float], measured: dict[str, float]) -> list[Comparison]:
    total = sum(measured.values())
    large = [name for name in modelled if measured.get(name, 0.0) >= _SMALL * total]
    rows = [Comparison(name, modelled[name], measured.get(name, 0.0)) for name in large]
    rest = Comparison(
        "all other arrays",
        sum(modelled[name] for name in modelled if name not in large),
        sum(measured.get(name, 0.0) for name in modelled if name not in large),
    )
    return [*rows, rest] if rest.modelled or rest.measured else rows
