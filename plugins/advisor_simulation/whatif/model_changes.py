"""Changes of an application model: decomposition, layout, binding, schedule, synchronization."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.documents import Marked
from advisor_simulation.model import records
from advisor_simulation.model.checks import walk
from advisor_simulation.model.expressions import Expression
from advisor_simulation.model.world import World, build
from advisor_simulation.whatif.buffering import buffered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from advisor.model import FloatArray
    from advisor_simulation.model.records import Array, Model, Parallel, Step

#: Turns of a loop at which weights that change are looked at.
SAMPLES: Final = 5
#: Chunks of a dynamic schedule for each processor.
CHUNKS: Final = 16
_WEIGHT: Final = "measured_weight"


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a model is changed for: its files, the number of processors, and the line of their caches (bytes)."""

    folder: Path
    processors: int
    line: int


def parallel_loops(model: Model) -> list[Parallel]:
    """Return all parallel loops of a model."""
    bodies = (model.control, *model.procedures.values())
    return [step for body in bodies for step in walk(body) if isinstance(step, records.Parallel)]


def rewritten(model: Model, change: Callable[[Step], tuple[Step, ...]]) -> Model:
    """Return the model with each step that holds no others replaced by what ``change`` makes of it."""

    def inside(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(made for step in steps for made in one(step))

    def one(step: Step) -> tuple[Step, ...]:
        if isinstance(step, records.Loop):
            return (replace(step, do=inside(step.do)),)
        if isinstance(step, records.When):
            return (replace(step, do=inside(step.do), else_=inside(step.else_)),)
        return change(step)

    procedures = {name: inside(steps) for name, steps in model.procedures.items()}
    return replace(model, control=inside(model.control), procedures=procedures)


def decomposed(model: Model, setting: Setting) -> Model | None:
    """Cut domains whose loops follow lists of neighbours along these lists, balanced by the mean weight of an index."""
    world = build(model, setting.folder, setting.processors, None, setting.line)
    domains, tables = dict(model.domains), dict(model.tables)
    for name, domain in model.domains.items():
        graph = _graph(model, world, name)
        if graph is None or (domain.decomposition and domain.decomposition.kind in ("graph", "metis")):
            continue
        table = f"{_WEIGHT}_{len(tables)}"
        tables[table] = records.Values(tuple(map(float, mean_weight(world, name))), model.mark)
        weight = Marked(Expression.parse(f"{table}[i]"), domain.mark)
        parts = records.Decomposition("graph", domain.mark, graph=Marked(graph, domain.mark), weight=weight)
        domains[name] = replace(domain, decomposition=parts)
    return replace(model, domains=domains, tables=tables) if len(tables) > len(model.tables) else None


def _graph(model: Model, world: World, domain: str) -> str | None:
    """Return the list of neighbours that loops over a domain follow."""
    for step in parallel_loops(model):
        for access in step.reads if step.over.value == domain else ():
            for name in sorted(access.value.names & world.ragged.keys()):
                if world.ragged[name].rows == world.sizes[domain]:
                    return name
    return None


def mean_weight(world: World, domain: str) -> FloatArray:
    """Return the weight of each index of a domain over one pass of all its loops, mean over some turns."""
    index = np.arange(world.sizes[domain], dtype=np.float64)
    total: FloatArray = np.zeros(len(index))
    for step, scope, share in _executed(world, world.model.control, world.names, 1.0):
        if step.over.value == domain and step.weight is not None:
            total += share * world.values(step.weight, {**scope, step.index: index}, len(index))
    return total if total.any() else np.ones(len(index))


def _executed(
    world: World, steps: tuple[Step, ...], scope: Mapping[str, object], share: float
) -> Iterator[tuple[Parallel, Mapping[str, object], float]]:
    for step in steps:
        if isinstance(step, records.Parallel):
            yield step, scope, share
        elif isinstance(step, records.Loop):
            times = max(world.whole(step.times, scope), 0)
            for turn in np.unique(np.linspace(0, times - 1, min(SAMPLES, times)).astype(int)):
                inner = {**scope, step.index: np.float64(turn)}
                yield from _executed(world, step.do, inner, share / min(SAMPLES, times))
        elif isinstance(step, records.When):
            yield from _executed(world, step.do, scope, share)
        elif isinstance(step, records.Call):
            yield from _executed(world, world.model.procedures[step.call.value], scope, share)


def padded(model: Model, setting: Setting) -> Model | None:
    """Make each row of an array that loops write a whole number of lines."""
    written = {access.value.array for step in parallel_loops(model) for access in step.writes}
    world = build(model, setting.folder, setting.processors, None, setting.line)
    arrays = dict(model.arrays)
    for name in written:
        place, array = world.arrays[name], model.arrays[name]
        missing = -place.row_step % setting.line // place.element
        if array.order == "row" and missing and not array.private and place.items > 1:
            arrays[name] = replace(array, pad=array.pad + missing)
    return replace(model, arrays=arrays) if arrays != model.arrays else None


def grouped(model: Model, setting: Setting) -> Model | None:
    """Lay rows of arrays that loops read and write together next to each other."""
    if model.groups:
        return None
    together: dict[tuple[str, ...], list[str]] = {}
    for name, array in model.arrays.items():
        users = tuple(step.parallel for step in parallel_loops(model) if _uses(step, name))
        together.setdefault((*users, _shape(array)), []).append(name)
    groups = tuple(
        tuple(Marked(name, model.arrays[name].mark) for name in names) for names in together.values() if len(names) > 1
    )
    return replace(model, groups=groups) if groups else None


def _uses(step: Parallel, array: str) -> bool:
    return any(access.value.array == array for access in (*step.reads, *step.writes))


def _shape(array: Array) -> str:
    return ",".join(side.value.text for side in array.shape)


def bound(model: Model, setting: Setting) -> Model | None:
    """Bind each sub-domain to a processor."""
    return replace(model, migration=0.0) if model.migration else None


def merged(model: Model, setting: Setting) -> Model | None:
    """Make one barrier of several in a row."""

    def inside(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        kept: list[Step] = []
        for step in steps:
            if isinstance(step, records.Loop):
                step = replace(step, do=inside(step.do))
            if not (kept and _closes(kept[-1]) and isinstance(step, records.Barrier) and step.kind == "all"):
                kept.append(step)
        return tuple(kept)

    made = replace(model, control=inside(model.control))
    return made if made.control != model.control else None


def _closes(step: Step) -> bool:
    if isinstance(step, records.Parallel):
        return step.end == "barrier"
    return isinstance(step, records.Barrier) and step.kind == "all"


def pairwise(model: Model, setting: Setting) -> Model | None:
    """Let processors wait only for those whose data they read; what that costs has to be known."""
    if not model.costs.signal or not any(step.reads for step in parallel_loops(model)):
        return None
    return _ends(model, "neighbours")


def _ends(model: Model, end: records.End) -> Model | None:
    def relaxed(step: Step) -> tuple[Step, ...]:
        return (replace(step, end=end),) if isinstance(step, records.Parallel) and step.end == "barrier" else (step,)

    made = rewritten(model, relaxed)
    return made if made.control != model.control else None


def dynamic(model: Model, setting: Setting) -> Model | None:
    """Let processors fetch chunks of the loops themselves."""
    world = build(model, setting.folder, setting.processors, None, setting.line)

    def fetched(step: Step) -> tuple[Step, ...]:
        if not isinstance(step, records.Parallel) or step.schedule != "static":
            return (step,)
        chunk = max(1, world.sizes[step.over.value] // (CHUNKS * setting.processors))
        return (replace(step, schedule="dynamic", chunk=chunk),)

    made = rewritten(model, fetched)
    return made if made.control != model.control else None


#: What can be done to a model: action, step, change. Padding stands in step 2: it is about lines that processors share.
CHANGES: Final[tuple[tuple[str, str, int, Callable[[Model, Setting], Model | None]], ...]] = (
    ("A-1", "a decomposition along the lists of neighbours, balanced by weight", 1, decomposed),
    ("G-12", "rows padded to whole lines of the cache", 2, padded),
    ("A-5", "arrays that are used together grouped by row", 2, grouped),
    ("A-3", "sub-domains bound to processors", 2, bound),
    ("A-29", "loops handed out in chunks", 4, dynamic),
    ("G-14", "one barrier instead of several in a row", 5, merged),
    ("A-31", "synchronization of those who exchange data", 5, pairwise),
    ("A-40", "two copies of what a loop overwrites, and no barrier in front of it", 7, buffered),
)
