"""What can be wrong in a model beyond its form: names that mean nothing, weights with two values, loops in calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model import units
from advisor.model.errors import DocumentError, Problem, UsageError
from advisor.support.documents import Mark, Marked, load_document, suggest_word
from advisor_simulation.model import records

if TYPE_CHECKING:
    from advisor.support.expressions import Expression
    from advisor_simulation.model.records import BodyItem, Decomposition, Model, Parallel, Serial, Step, Weight

#: Names that always mean something: the number of processors.
ALWAYS: Final = frozenset({"P"})
DEEPEST: Final = 20
#: Processors of a model, where nobody says how many.
PROCESSORS: Final = 4


def read_model(path: Path) -> Model:
    """Return the model in a file; DocumentError with every mistake, each with line and column."""
    model = load_document(path, records.Model)
    problems = list(_ModelChecker(model).find_problems())
    if problems:
        raise DocumentError(problems)
    return model


def resolve_processors(model: Model, asked: int | None) -> int:
    """Return how many processors to simulate; UsageError where the model holds for another number only."""
    if model.processors is None:
        return PROCESSORS if asked is None else asked
    if asked not in (None, model.processors):
        run = f"a run on {units.format_count(model.processors, 'processor')}"
        raise UsageError(f"--processors {asked}: {model.name} is the model of {run} and holds for no other number")
    return model.processors


class _ModelChecker:
    """Walks through a model with the names that are known at each place."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.known = ALWAYS | set(model.parameters) | set(model.tables) | {f"{name}_count" for name in model.tables}

    def find_problems(self) -> Iterator[Problem]:
        """Yield every mistake."""
        model = self.model
        if model.processors is not None and model.processors < 1:
            yield model.mark.make_problem("processors: expected a number from 1 on")
        if not model.control:
            yield model.mark.make_problem("control: expected a step at least; this model does nothing")
        yield from self._check_clashes()
        yield from self._check_modules()
        weights = {*self.known, *model.weights}
        yield from self._check_steps(model.control, weights, ())
        for name, steps in model.procedures.items():
            yield from self._check_steps(steps, weights | self._all_indices(), (name,))

    def _check_clashes(self) -> Iterator[Problem]:
        spaces = (self.model.parameters, self.model.tables, self.model.weights)
        seen: set[str] = set(ALWAYS)
        for space in spaces:
            for name in space:
                if name in seen:
                    yield self.model.mark.make_problem(f"the name '{name}' stands for two things")
                seen.add(name)

    def _check_modules(self) -> Iterator[Problem]:
        model = self.model
        for table in model.tables.values():
            if isinstance(table, records.Computed):
                yield from self._check_formula(table.size, set(model.parameters) | ALWAYS)
                yield from self._check_formula(table.formula, self.known | {"i"})
            elif isinstance(table, records.Grid):
                for side in table.grid:
                    yield from self._check_formula(side, set(model.parameters) | ALWAYS)
        for domain in model.domains.values():
            yield from self._check_formula(domain.size, self.known)
            if domain.decomposition is not None:
                yield from self._check_decomposition(domain.decomposition)
        for array in model.arrays.values():
            if not 1 <= len(array.shape) <= 2:
                yield array.mark.make_problem("shape: expected one or two numbers: rows, and items of a row")
            for side in array.shape:
                yield from self._check_formula(side, self.known)
        for name in (name for group in model.groups for name in group):
            yield from self._check_known(name, model.arrays, "array")
        for weight in model.weights.values():
            yield from self._check_weight(weight)

    def _check_decomposition(self, parts: Decomposition) -> Iterator[Problem]:
        if parts.kind == "explicit" and parts.owner is None:
            yield parts.mark.make_problem("explicit needs owner: the table of processors")
        if parts.kind in ("graph", "metis") and parts.graph is None:
            yield parts.mark.make_problem(f"{parts.kind} needs graph: the table of neighbours")
        if parts.kind == "block-cyclic" and parts.block is None:
            yield parts.mark.make_problem("block-cyclic needs block: the number of indices in a block")
        for table in (parts.owner, parts.graph):
            if table is not None:
                yield from self._check_known(table, self.model.tables, "table")
        for formula in (parts.block, parts.weight):
            if formula is not None:
                yield from self._check_formula(formula, self.known | set(self.model.weights) | {"i"})

    def _check_weight(self, weight: Weight) -> Iterator[Problem]:
        given = (weight.constant, weight.table, weight.expression, weight.profile)
        if sum(one is not None for one in given) != 1:
            yield weight.mark.make_problem("expected one of constant, table, expression and profile")
        if weight.table is not None:
            yield from self._check_known(weight.table, self.model.tables, "table")
        if weight.expression is not None:
            yield from self._check_formula(weight.expression, self.known | {"i"} | self._all_indices())
        if weight.profile is not None and (weight.region is None or weight.domain is None):
            yield weight.mark.make_problem(
                "profile needs region: whose seconds, and domain: over which they are spread"
            )
        if weight.domain is not None:
            yield from self._check_known(weight.domain, self.model.domains, "domain")

    def _all_indices(self) -> set[str]:
        bodies = (self.model.control, *self.model.procedures.values())
        return {step.index for body in bodies for step in iterate_steps(body) if isinstance(step, records.Loop)}

    def _check_steps(self, steps: Iterable[Step], known: set[str], inside: tuple[str, ...]) -> Iterator[Problem]:
        for step in steps:
            if isinstance(step, records.Loop):
                yield from self._check_formula(step.times, known)
                yield from self._check_index(step.index, step.mark)
                yield from self._check_steps(step.do, known | {step.index}, inside)
            elif isinstance(step, records.When):
                if (step.ratio is None) == (step.condition is None):
                    yield step.mark.make_problem("expected either ratio or condition")
                if step.condition is not None:
                    yield from self._check_formula(step.condition, known)
                yield from self._check_steps((*step.do, *step.else_), known, inside)
            elif isinstance(step, records.Call):
                yield from self._check_call(step, inside)
            elif isinstance(step, records.Parallel | records.Serial):
                yield from self._check_work(step, known)
            elif isinstance(step, records.Exchange):
                yield from self._check_formula(step.cost, known | {"p"})
            elif isinstance(step, records.Messages):
                for formula in (step.size, step.to, step.count, step.where):
                    if formula is not None:
                        yield from self._check_formula(formula, known | {"p"})

    def _check_call(self, step: records.Call, inside: tuple[str, ...]) -> Iterator[Problem]:
        name = step.call.value
        if name not in self.model.procedures:
            yield from self._check_known(step.call, self.model.procedures, "procedure")
        elif name in inside or len(inside) > DEEPEST:
            yield step.call.mark.make_problem(f"'{name}' calls itself")
        else:
            called = iterate_steps(self.model.procedures[name])
            for inner in called:
                if isinstance(inner, records.Call):
                    yield from self._check_call(inner, (*inside, name))

    def _check_work(self, step: Parallel | Serial, known: set[str]) -> Iterator[Problem]:
        if step.over is not None:
            yield from self._check_known(step.over, self.model.domains, "domain")
            yield from self._check_index(step.index, step.mark)
        here = known | ({step.index} if step.over is not None else set())
        formulas = [step.weight, step.where] if isinstance(step, records.Parallel) else [step.weight]
        for formula in formulas:
            if formula is not None:
                yield from self._check_formula(formula, here)
        for access in (*step.reads, *step.writes):
            if access.value.array not in self.model.arrays:
                hint = suggest_word(access.value.array, self.model.arrays)
                yield access.mark.make_problem(f"there is no array '{access.value.array}'{hint}")
            yield from self._check_names(access.value.names, here, access.mark, access.value.text)
        yield from self._check_body(step.body, here | {"p"})

    def _check_body(self, body: Iterable[BodyItem], known: set[str]) -> Iterator[Problem]:
        for item in body:
            if isinstance(item, records.Nest):
                yield from self._check_formula(item.times, known)
                yield from self._check_index(item.for_, item.mark)
                yield from self._check_body(item.body, known | {item.for_})
                continue
            access = item.read if isinstance(item, records.Read) else item.write
            if access.value.array not in self.model.arrays:
                hint = suggest_word(access.value.array, self.model.arrays)
                yield access.mark.make_problem(f"there is no array '{access.value.array}'{hint}")
            yield from self._check_names(access.value.names, known, access.mark, access.value.text)
            if item.where is not None:
                yield from self._check_formula(item.where, known)

    def _check_index(self, index: str, mark: Mark) -> Iterator[Problem]:
        if index in self.known or index in self.model.weights:
            yield mark.make_problem(f"index: '{index}' already stands for something else")

    def _check_formula(self, formula: Marked[Expression], known: Collection[str]) -> Iterator[Problem]:
        yield from self._check_names(formula.value.names, known, formula.mark, formula.value.text)

    def _check_names(self, names: Iterable[str], known: Collection[str], mark: Mark, text: str) -> Iterator[Problem]:
        for name in sorted(set(names) - set(known)):
            yield mark.make_problem(f"{text}: '{name}' means nothing here{suggest_word(name, known)}")

    def _check_known(self, name: Marked[str], known: Collection[str], what: str) -> Iterator[Problem]:
        if name.value not in known:
            yield name.mark.make_problem(f"there is no {what} '{name.value}'{suggest_word(name.value, known)}")


def iterate_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield all steps, those inside of others too, in the order of the text."""
    for step in steps:
        yield step
        if isinstance(step, records.Loop):
            yield from iterate_steps(step.do)
        elif isinstance(step, records.When):
            yield from iterate_steps((*step.do, *step.else_))
