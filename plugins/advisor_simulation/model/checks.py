"""What can be wrong in a model beyond its form: names that mean nothing, weights with two values, loops in calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.model import units
from advisor.model.errors import DocumentError, Problem, UsageError
from advisor.support.documents import load, suggestion
from advisor_simulation.model import records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from advisor.support.documents import Mark, Marked
    from advisor_simulation.model.expressions import Expression
    from advisor_simulation.model.records import Decomposition, Model, Parallel, Serial, Step, Weight

#: Names that always mean something: the number of processors.
ALWAYS: Final = frozenset({"P"})
DEEPEST: Final = 20
#: Processors of a model, where nobody says how many.
PROCESSORS: Final = 4


def read(path: Path) -> Model:
    """Return the model in a file; DocumentError with every mistake, each with line and column."""
    model = load(path, records.Model)
    problems = list(_Checker(model).problems())
    if problems:
        raise DocumentError(problems)
    return model


def processors_of(model: Model, asked: int | None) -> int:
    """Return how many processors to simulate; UsageError where the model holds for another number only."""
    if model.processors is None:
        return PROCESSORS if asked is None else asked
    if asked not in (None, model.processors):
        run = f"a run on {units.format_count(model.processors, 'processor')}"
        raise UsageError(f"--processors {asked}: {model.name} is the model of {run} and holds for no other number")
    return model.processors


class _Checker:
    """Walks through a model with the names that are known at each place."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.known = ALWAYS | set(model.parameters) | set(model.tables) | {f"{name}_count" for name in model.tables}

    def problems(self) -> Iterator[Problem]:
        """Yield every mistake."""
        model = self.model
        if model.processors is not None and model.processors < 1:
            yield model.mark.problem("processors: expected a number from 1 on")
        if not model.control:
            yield model.mark.problem("control: expected a step at least; this model does nothing")
        yield from self._clashes()
        yield from self._modules()
        weights = {*self.known, *model.weights}
        yield from self._steps(model.control, weights, ())
        for name, steps in model.procedures.items():
            yield from self._steps(steps, weights | self._indices_everywhere(), (name,))

    def _clashes(self) -> Iterator[Problem]:
        spaces = (self.model.parameters, self.model.tables, self.model.weights)
        seen: set[str] = set(ALWAYS)
        for space in spaces:
            for name in space:
                if name in seen:
                    yield self.model.mark.problem(f"the name '{name}' stands for two things")
                seen.add(name)

    def _modules(self) -> Iterator[Problem]:
        model = self.model
        for table in model.tables.values():
            if isinstance(table, records.Computed):
                yield from self._formula(table.size, set(model.parameters) | ALWAYS)
                yield from self._formula(table.formula, self.known | {"i"})
            elif isinstance(table, records.Grid):
                for side in table.grid:
                    yield from self._formula(side, set(model.parameters) | ALWAYS)
        for domain in model.domains.values():
            yield from self._formula(domain.size, self.known)
            if domain.decomposition is not None:
                yield from self._decomposition(domain.decomposition)
        for array in model.arrays.values():
            if not 1 <= len(array.shape) <= 2:
                yield array.mark.problem("shape: expected one or two numbers: rows, and items of a row")
            for side in array.shape:
                yield from self._formula(side, self.known)
        for name in (name for group in model.groups for name in group):
            yield from self._one_of(name, model.arrays, "array")
        for weight in model.weights.values():
            yield from self._weight(weight)

    def _decomposition(self, parts: Decomposition) -> Iterator[Problem]:
        if parts.kind == "explicit" and parts.owner is None:
            yield parts.mark.problem("explicit needs owner: the table of processors")
        if parts.kind in ("graph", "metis") and parts.graph is None:
            yield parts.mark.problem(f"{parts.kind} needs graph: the table of neighbours")
        if parts.kind == "block-cyclic" and parts.block is None:
            yield parts.mark.problem("block-cyclic needs block: the number of indices in a block")
        for table in (parts.owner, parts.graph):
            if table is not None:
                yield from self._one_of(table, self.model.tables, "table")
        for formula in (parts.block, parts.weight):
            if formula is not None:
                yield from self._formula(formula, self.known | set(self.model.weights) | {"i"})

    def _weight(self, weight: Weight) -> Iterator[Problem]:
        given = (weight.constant, weight.table, weight.expression, weight.profile)
        if sum(one is not None for one in given) != 1:
            yield weight.mark.problem("expected one of constant, table, expression and profile")
        if weight.table is not None:
            yield from self._one_of(weight.table, self.model.tables, "table")
        if weight.expression is not None:
            yield from self._formula(weight.expression, self.known | {"i"} | self._indices_everywhere())
        if weight.profile is not None and (weight.region is None or weight.domain is None):
            yield weight.mark.problem("profile needs region: whose seconds, and domain: over which they are spread")
        if weight.domain is not None:
            yield from self._one_of(weight.domain, self.model.domains, "domain")

    def _indices_everywhere(self) -> set[str]:
        bodies = (self.model.control, *self.model.procedures.values())
        return {step.index for body in bodies for step in walk(body) if isinstance(step, records.Loop)}

    def _steps(self, steps: Iterable[Step], known: set[str], inside: tuple[str, ...]) -> Iterator[Problem]:
        for step in steps:
            if isinstance(step, records.Loop):
                yield from self._formula(step.times, known)
                yield from self._fresh(step.index, step.mark)
                yield from self._steps(step.do, known | {step.index}, inside)
            elif isinstance(step, records.When):
                if (step.ratio is None) == (step.condition is None):
                    yield step.mark.problem("expected either ratio or condition")
                if step.condition is not None:
                    yield from self._formula(step.condition, known)
                yield from self._steps((*step.do, *step.else_), known, inside)
            elif isinstance(step, records.Call):
                yield from self._call(step, inside)
            elif isinstance(step, records.Parallel | records.Serial):
                yield from self._work(step, known)
            elif isinstance(step, records.Exchange):
                yield from self._formula(step.cost, known | {"p"})

    def _call(self, step: records.Call, inside: tuple[str, ...]) -> Iterator[Problem]:
        name = step.call.value
        if name not in self.model.procedures:
            yield from self._one_of(step.call, self.model.procedures, "procedure")
        elif name in inside or len(inside) > DEEPEST:
            yield step.call.mark.problem(f"'{name}' calls itself")
        else:
            called = walk(self.model.procedures[name])
            for inner in called:
                if isinstance(inner, records.Call):
                    yield from self._call(inner, (*inside, name))

    def _work(self, step: Parallel | Serial, known: set[str]) -> Iterator[Problem]:
        if step.over is not None:
            yield from self._one_of(step.over, self.model.domains, "domain")
            yield from self._fresh(step.index, step.mark)
        here = known | ({step.index} if step.over is not None else set())
        formulas = [step.weight, step.where] if isinstance(step, records.Parallel) else [step.weight]
        for formula in formulas:
            if formula is not None:
                yield from self._formula(formula, here)
        for access in (*step.reads, *step.writes):
            if access.value.array not in self.model.arrays:
                hint = suggestion(access.value.array, self.model.arrays)
                yield access.mark.problem(f"there is no array '{access.value.array}'{hint}")
            yield from self._names(access.value.names, here, access.mark, access.value.text)

    def _fresh(self, index: str, mark: Mark) -> Iterator[Problem]:
        if index in self.known or index in self.model.weights:
            yield mark.problem(f"index: '{index}' already stands for something else")

    def _formula(self, formula: Marked[Expression], known: Collection[str]) -> Iterator[Problem]:
        yield from self._names(formula.value.names, known, formula.mark, formula.value.text)

    def _names(self, names: Iterable[str], known: Collection[str], mark: Mark, text: str) -> Iterator[Problem]:
        for name in sorted(set(names) - set(known)):
            yield mark.problem(f"{text}: '{name}' means nothing here{suggestion(name, known)}")

    def _one_of(self, name: Marked[str], known: Collection[str], what: str) -> Iterator[Problem]:
        if name.value not in known:
            yield name.mark.problem(f"there is no {what} '{name.value}'{suggestion(name.value, known)}")


def walk(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield all steps, those inside of others too, in the order of the text."""
    for step in steps:
        yield step
        if isinstance(step, records.Loop):
            yield from walk(step.do)
        elif isinstance(step, records.When):
            yield from walk((*step.do, *step.else_))
