"""Fewer and looser synchronizations of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from advisor_simulation.model import records
from advisor_simulation.whatif.modelled.setting import each_step, own_row, parallel_loops, sequences, uses

if TYPE_CHECKING:
    from advisor_simulation.model.records import Model, Parallel, Step
    from advisor_simulation.whatif.modelled.setting import Setting


def merged(model: Model, setting: Setting) -> Model | None:
    """Make one barrier of several in a row."""

    def inside(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        kept: list[Step] = []
        for step in steps:
            if not (kept and _closes(kept[-1]) and _full(step)):
                kept.append(step)
        return tuple(kept)

    return sequences(model, inside)


def _full(step: Step) -> bool:
    return isinstance(step, records.Barrier) and step.kind == "all"


def _closes(step: Step) -> bool:
    return _full(step) or (isinstance(step, records.Parallel) and step.end == "barrier")


def unneeded(model: Model, setting: Setting) -> Model | None:
    """Drop the barrier between two loops of which each index touches but its own rows of what they share."""

    def inside(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        kept: list[Step] = []
        place = 0
        while place < len(steps):
            step, behind = steps[place], place + 1
            while behind < len(steps) and _full(steps[behind]):
                behind += 1
            if isinstance(step, records.Parallel) and behind < len(steps) and _apart(step, steps[behind]):
                step, place = replace(step, end="none"), behind - 1
            kept.append(step)
            place += 1
        return tuple(kept)

    return sequences(model, inside)


def _apart(first: Parallel, second: Step) -> bool:
    """Return whether two loops with the same owner of each index hand nothing from one processor to another."""
    if not isinstance(second, records.Parallel) or first.end == "none":
        return False
    if first.over.value != second.over.value or {first.schedule, second.schedule} != {"static"}:
        return False
    both = [(one.value, step.index) for step in (first, second) for one in (*step.reads, *step.writes)]
    written = {one.value.array for step in (first, second) for one in step.writes}
    shared = {name for name in written if uses(first, name) and uses(second, name)}
    return all(own_row(one, index) for one, index in both if one.array in shared)


def pairwise(model: Model, setting: Setting) -> Model | None:
    """Let processors wait only for those whose data they read; what that costs has to be known."""
    if not model.costs.signal or not any(step.reads for step in parallel_loops(model)):
        return None
    return _ending(model, "neighbours")


def fuzzy(model: Model, setting: Setting) -> Model | None:
    """Let processors do what is independent of the others before they wait; the model has to say how much that is."""
    if not any(step.independent for step in parallel_loops(model)):
        return None
    return _ending(model, "fuzzy")


def _ending(model: Model, end: records.End) -> Model | None:
    def relaxed(step: Step) -> Step:
        return replace(step, end=end) if isinstance(step, records.Parallel) and step.end == "barrier" else step

    return each_step(model, relaxed)
