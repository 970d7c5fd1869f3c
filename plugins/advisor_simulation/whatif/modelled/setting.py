"""Where a model is changed for, and what all changes look at."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor_simulation.model import records
from advisor_simulation.model.checks import walk
from advisor_simulation.model.world import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from advisor.model.records import IntArray
    from advisor_simulation.model.expressions import Access
    from advisor_simulation.model.records import Model, Parallel, Step
    from advisor_simulation.model.world import Profiles, World


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a model is changed for: its files, the processors, the line of their caches (bytes), and their nodes.

    ``node`` processors share a node; ``flow`` returns the words (P, P) that each reads after each wrote them.
    ``profiles`` reads weights that come from recorded runs.
    """

    folder: Path
    processors: int
    line: int
    node: int
    flow: Callable[[Model], IntArray]
    profiles: Profiles | None = None

    def world(self, model: Model) -> World:
        """Return what the names of the model mean here."""
        return build(model, self.folder, self.processors, self.profiles, self.line)


def parallel_loops(model: Model) -> list[Parallel]:
    """Return all parallel loops of a model."""
    bodies = (model.control, *model.procedures.values())
    return [step for body in bodies for step in walk(body) if isinstance(step, records.Parallel)]


def sequences(model: Model, change: Callable[[tuple[Step, ...]], tuple[Step, ...]]) -> Model | None:
    """Return the model with ``change`` made on every sequence of steps, the inner ones first; None if none changes."""

    def inside(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return change(tuple(one(step) for step in steps))

    def one(step: Step) -> Step:
        if isinstance(step, records.Loop):
            return replace(step, do=inside(step.do))
        if isinstance(step, records.When):
            return replace(step, do=inside(step.do), else_=inside(step.else_))
        return step

    procedures = {name: inside(steps) for name, steps in model.procedures.items()}
    made = replace(model, control=inside(model.control), procedures=procedures)
    return made if (made.control, made.procedures) != (model.control, model.procedures) else None


def each_step(model: Model, change: Callable[[Step], Step]) -> Model | None:
    """Return the model with ``change`` made on every step that holds no others; None if none changes."""
    return sequences(model, lambda steps: tuple(change(step) for step in steps))


def own_row(access: Access, index: str) -> bool:
    """Return whether an access is to the row of the index itself, which nobody else executes."""
    return isinstance(access.rows, ast.Name) and access.rows.id == index


def uses(step: Parallel, array: str) -> bool:
    """Return whether a loop reads or writes an array."""
    return any(access.value.array == array for access in (*step.reads, *step.writes))
