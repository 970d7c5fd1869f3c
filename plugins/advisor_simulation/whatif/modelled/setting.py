"""Where a model is changed for, and what all changes look at."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor_simulation.mds.nests import iterate_references
from advisor_simulation.model import records
from advisor_simulation.model.checks import iterate_steps
from advisor_simulation.model.world import build_world

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor_simulation.model.accesses import Access
    from advisor_simulation.model.records import Model, Parallel, Reference, Step
    from advisor_simulation.model.world import Profiles, World


@dataclass(frozen=True, slots=True)
class ModelSetting:
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

    def build_world(self, model: Model) -> World:
        """Return what the names of the model mean here."""
        return build_world(model, self.folder, self.processors, self.profiles, self.line)


def find_parallel_loops(model: Model) -> list[Parallel]:
    """Return all parallel loops of a model."""
    bodies = (model.control, *model.procedures.values())
    return [step for body in bodies for step in iterate_steps(body) if isinstance(step, records.Parallel)]


def change_sequences(model: Model, change: Callable[[tuple[Step, ...]], tuple[Step, ...]]) -> Model | None:
    """Return the model with ``change`` made on every sequence of steps, the inner ones first; None if none changes."""

    def change_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return change(tuple(change_step(step) for step in steps))

    def change_step(step: Step) -> Step:
        if isinstance(step, records.Loop):
            return replace(step, do=change_steps(step.do))
        if isinstance(step, records.When):
            return replace(step, do=change_steps(step.do), else_=change_steps(step.else_))
        return step

    procedures = {name: change_steps(steps) for name, steps in model.procedures.items()}
    made = replace(model, control=change_steps(model.control), procedures=procedures)
    return made if (made.control, made.procedures) != (model.control, model.procedures) else None


def change_each_step(model: Model, change: Callable[[Step], Step]) -> Model | None:
    """Return the model with ``change`` made on every step that holds no others; None if none changes."""
    return change_sequences(model, lambda steps: tuple(change(step) for step in steps))


def is_own_row(access: Access, index: str) -> bool:
    """Return whether an access is to the row of the index itself, which no other processor executes."""
    return isinstance(access.rows, ast.Name) and access.rows.id == index


def list_reads(step: Parallel) -> tuple[Reference, ...]:
    """Return what a loop reads, in its body too."""
    return (*step.reads, *(one.read for one in iterate_references(step.body) if isinstance(one, records.Read)))


def list_writes(step: Parallel) -> tuple[Reference, ...]:
    """Return what a loop writes, in its body too."""
    return (*step.writes, *(one.write for one in iterate_references(step.body) if isinstance(one, records.Write)))


def uses_array(step: Parallel, array: str) -> bool:
    """Return whether a loop reads or writes an array."""
    return any(access.value.array == array for access in (*list_reads(step), *list_writes(step)))
