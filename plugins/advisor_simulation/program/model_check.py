"""Compares a model with its program: misses by array and loads, each with its error."""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.mds.coherence import KINDS
from advisor_simulation.mds.costs import MachineCosts
from advisor_simulation.mds.engine import Simulation
from advisor_simulation.model.checks import read_model
from advisor_simulation.model.world import build_world
from advisor_simulation.program.address_trace import compile_part
from advisor_simulation.program.array_layout import iterate_in_loops
from advisor_simulation.program.cache_check import CacheGeometry, count_misses
from advisor_simulation.program.messages import list_calls
from advisor_simulation.program.program_model import fold_program, retrace_program, write_program_model

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.events import Trace
    from advisor_simulation.mds.log import SimulationLog
    from advisor_simulation.model.records import Model
    from advisor_simulation.program.program_model import FoldedProgram, TracedProgram

#: Arrays with a smaller share of all misses are compared together, and their error is a share of all misses.
_SMALL: Final = 0.01
#: Of the references to an array so many fetch a line for false sharing where it is worth a word: where parts only meet
#: within lines it was at most 1 % in the programs of examples/models, where counters lie together 50 % and more.
SHARED: Final = 0.05


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity of the model beside the measured one; where less than ``least`` was measured, errors are of that."""

    name: str
    modelled: float
    measured: float
    least: float = 0.0

    @property
    def error(self) -> float:
        """The error of the model as a share of what was measured."""
        whole = max(self.measured, self.least)
        if whole == 0:
            return 0.0 if self.modelled == 0 else 1.0
        return (self.modelled - self.measured) / whole


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


@dataclass(frozen=True, slots=True)
class SharedLines:
    """An array with false sharing: its transactions for that, and the references to it in the run."""

    array: str
    transactions: int
    references: int

    @property
    def share(self) -> float:
        """Transactions by reference."""
        return self.transactions / max(self.references, 1)


def find_false_sharing(
    names: Sequence[str], log: SimulationLog, traced: TracedProgram, folded: FoldedProgram
) -> list[SharedLines]:
    """Return the arrays whose references often fetch a line only because others write beside them, the worst first.

    Parts that meet within a line share it too, but seldom touch it.
    """
    references = _count_references(traced, folded)
    counts = np.zeros(len(names), dtype=np.int64)
    if log.transactions is not None:
        counts = log.transactions[:, :, KINDS.index("false sharing")].sum(axis=1)
    found = [SharedLines(name, int(count), references[name]) for name, count in zip(names, counts, strict=True)]
    return sorted((one for one in found if one.share >= SHARED), key=lambda one: -one.transactions)


def _count_references(traced: TracedProgram, folded: FoldedProgram) -> Counter[str]:
    """Return the references to each array that were traced."""
    references: Counter[str] = Counter()
    for number, times in Counter(folded.order).items():
        for step in folded.folded[number].steps:
            for use in iterate_in_loops(step.body, step.most):
                references[traced.names[use.reference.data]] += use.reference.count * times
    return references


def compare_references(
    names: Sequence[str], log: SimulationLog, traced: TracedProgram, folded: FoldedProgram
) -> Comparison:
    """Return the references to arrays; a loop that is entered anew within one turn of that around it loses some."""
    references = _count_references(traced, folded)
    return Comparison("references to arrays", log.references, sum(references[name] for name in names))


def compare_loads(log: SimulationLog, folded: FoldedProgram) -> list[Comparison]:
    """Return the instructions of each processor in parallel phases, as the model has them and as they were counted.

    The errors of processors that did next to nothing are shares of 1 % of what the busiest one did.
    """
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
        Comparison(f"instructions of processor {q}", float(modelled[q]), float(measured[q]), _SMALL * measured.max())
        for q in range(folded.processors)
        if measured[q] or modelled[q]
    ]


def compare_messages(log: SimulationLog, trace: Trace, processors: int) -> list[Comparison]:
    """Return messages and bytes of each rank, and calls and bytes of collective operations, modelled and recorded."""
    modelled, measured = np.zeros((4, processors), dtype=np.int64), np.zeros((4, processors), dtype=np.int64)
    for one in log.messages:
        row = 2 if one.collective else 0
        modelled[row] += one.count
        modelled[row + 1] += one.size_B
    for rank, calls in list_calls(trace).items():
        for call in calls:
            for partner, size in call.sent:
                row = 2 if partner < 0 else 0
                measured[row : row + 2, rank] += (1, size)
    names = ("messages", "bytes of messages", "collective calls", "bytes of collective calls")
    return [
        Comparison(f"{name} of rank {rank}", float(modelled[row, rank]), float(measured[row, rank]))
        for row, name in enumerate(names)
        for rank in range(processors)
        if modelled[row, rank] or measured[row, rank]
    ]


def compare_misses(
    model: Model,
    folder: Path,
    traced: TracedProgram,
    folded: FoldedProgram,
    command: Sequence[str],
    scratch: Path,
    user_cache: Path,
    cache: CacheGeometry | None = None,
) -> list[Comparison]:
    """Return the misses of each array in a first cache, simulated by the model and by valgrind.

    valgrind lets the threads of a process share one cache: such programs are compared at one thread, also those that
    ask for more, and where the model holds for no other number of threads, a model made at one thread is compared.
    Raises ``UsageError`` where that fails. valgrind counts by instruction; where one goes to several arrays, what the
    tracer saw says how its misses are shared. ``scratch`` takes files, ``user_cache`` what is compiled.
    """
    cache = cache or CacheGeometry()
    processors = folded.processors if traced.ranked else 1
    variables = {**traced.variables, "OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1"}
    copying = frozenset(access.address for access in traced.code.accesses if access.returns)
    counted = count_misses(command, traced.image.path, cache, scratch, variables, copying)
    alone = traced
    if not traced.ranked and folded.processors > 1:
        alone = retrace_program(traced, command, user_cache, scratch, variables)
    if not traced.ranked and model.processors not in (None, 1):
        folder = scratch
        place = scratch / "alone.yaml"
        place.write_text(write_program_model(alone, fold_program(alone, user_cache), place), encoding="utf-8")
        model = read_model(place)
    names, log = simulate_plain(model, folder, processors, cache)
    total = count_traced_misses(alone, cache, user_cache)
    shares = _share_misses(alone, total)
    # what the allocator fetches is not the program's to valgrind: it counts as it was traced
    own = [place for place, access in enumerate(alone.code.accesses) if not access.address]
    measured = {name: float(total[own, k].sum()) for k, name in enumerate(alone.names)}
    for address, counts in counted.items():
        for name, share in shares.get(address, {}).items():
            measured[name] = measured.get(name, 0.0) + (counts.read_misses + counts.write_misses) * share
    modelled = {} if log.transactions is None else dict(zip(names, log.transactions.sum(axis=(1, 2)), strict=True))
    return _compare_arrays({name: float(modelled.get(name, 0)) for name in names}, measured)


def compute_error(rows: Sequence[Comparison]) -> float:
    """Return the largest error of what was compared: what the model may be wrong by, as a share."""
    return max((abs(row.error) for row in rows), default=0.0)


def _share_misses(traced: TracedProgram, total: IntArray) -> dict[int, dict[str, float]]:
    """Return for each instruction, by address, the share of its misses that goes to each array."""
    found: dict[int, dict[str, float]] = {}
    for access, row in zip(traced.code.accesses, total, strict=True):
        if row.sum():
            shares = row / row.sum()
            found[access.address] = {traced.names[k]: float(shares[k]) for k in np.flatnonzero(row[:-1])}
    return found


def count_traced_misses(traced: TracedProgram, cache: CacheGeometry, user_cache: Path) -> IntArray:
    """Return the misses of each instruction in each object, the last column of nothing known, over all processes.

    Each process has a cache of its own, that its threads share.
    """
    library = ctypes.CDLL(str(compile_part("locate.c", user_cache)))
    count = len(traced.names)
    misses = np.zeros((len(traced.code.accesses), count + 1), dtype=np.int64)
    number = {name: place for place, name in enumerate(traced.names)}
    sets = cache.size // (cache.line * cache.ways)
    for process, objects in zip(traced.processes, traced.objects, strict=True):
        which = np.array([*(number[one.name] for one in objects), -1], dtype=np.int32)
        sizes = np.zeros(len(traced.code.accesses), dtype=np.uint8)
        for place, size in process.sizes.items():
            sizes[place] = size
        tags = np.zeros(sets * cache.ways, dtype=np.uint64)
        for thread in process.threads:
            words = np.ascontiguousarray(thread.words)
            owner = which[thread.owners]
            pointers = [ctypes.c_void_p(one.ctypes.data) for one in (sizes, owner)]
            numbers = (count, cache.line.bit_length() - 1, sets, cache.ways)
            kinds = (ctypes.c_int64, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
            library.count_misses(
                ctypes.c_void_p(words.ctypes.data), ctypes.c_int64(len(words)), *pointers,
                *(kind(one) for kind, one in zip(kinds, numbers, strict=True)),
                ctypes.c_void_p(tags.ctypes.data), ctypes.c_void_p(misses.ctypes.data),
            )  # fmt: skip
    return misses


def _compare_arrays(modelled: dict[str, float], measured: dict[str, float]) -> list[Comparison]:
    total = sum(measured.values())
    large = [name for name in modelled if measured.get(name, 0.0) >= _SMALL * total]
    rows = [Comparison(name, modelled[name], measured.get(name, 0.0)) for name in large]
    rest = Comparison(
        "all other arrays",
        sum(modelled[name] for name in modelled if name not in large),
        sum(measured.get(name, 0.0) for name in modelled if name not in large),
        total,
    )
    return [*rows, rest] if rest.modelled or rest.measured else rows
