"""A model with numbers in it: sizes, tables, owners of indices, addresses of items, for one number of processors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from advisor.model.errors import DocumentError
from advisor_simulation.model.decompose import compute_owners
from advisor_simulation.model.layout import PlacedArray, place_arrays
from advisor_simulation.model.tables import RaggedTable, read_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from advisor.model.records import FloatArray, IntArray
    from advisor.support.documents import Mark, Marked
    from advisor.support.expressions import Expression, Values
    from advisor_simulation.model.records import Decomposition, Domain, Model, Weight

    #: The seconds of each processor in a region of a profile: ``(file, region) -> (Q,)``.
    Profiles = Callable[[str, str], FloatArray]

T = TypeVar("T")
#: The most indices of a domain.
LARGEST = 50_000_000


@dataclass(frozen=True, slots=True)
class World:
    """What names mean for one number of processors.

    ``names`` holds numbers and rectangular tables, ``ragged`` the lists of neighbours, ``sizes`` and ``owner`` the
    domains, ``arrays`` where data lie, ``spread`` the weights that are tables by index. ``end`` is the first free
    address.
    """

    model: Model
    processors: int
    names: Mapping[str, object]
    ragged: Mapping[str, RaggedTable]
    sizes: Mapping[str, int]
    owner: Mapping[str, IntArray]
    arrays: Mapping[str, PlacedArray]
    spread: Mapping[str, FloatArray]
    end: int

    def evaluate_number(self, formula: Marked[Expression], scope: Mapping[str, object]) -> float:
        """Return the value of a formula; DocumentError at its place where it has none."""
        full = self._add_weights(formula, scope)
        return run_at_mark(formula.mark, lambda: formula.value.evaluate_number(full))

    def evaluate_whole(self, formula: Marked[Expression], scope: Mapping[str, object]) -> int:
        """Return the whole-numbered value of a formula; DocumentError at its place where it has none."""
        return run_at_mark(formula.mark, lambda: formula.value.evaluate_whole(scope))

    def evaluate_values(self, formula: Marked[Expression], scope: Mapping[str, object], count: int) -> Values:
        """Return the values of a formula, one for each of ``count`` indices; DocumentError at its place."""
        full = self._add_weights(formula, scope)
        return np.broadcast_to(run_at_mark(formula.mark, lambda: formula.value.evaluate_values(full)), (count,))

    def _add_weights(self, formula: Marked[Expression], scope: Mapping[str, object]) -> Mapping[str, object]:
        used = formula.value.names & self.model.weights.keys()
        return {**scope, **{name: self._evaluate_weight(name, scope) for name in used}} if used else scope

    def _evaluate_weight(self, name: str, scope: Mapping[str, object]) -> object:
        weight = self.model.weights[name]
        if weight.constant is not None:
            return np.float64(weight.constant)
        if weight.expression is not None:
            formula = weight.expression
            return run_at_mark(formula.mark, lambda: formula.value.evaluate_values(scope))
        table = self.spread[name]
        index = np.asarray(scope.get("i", 0), dtype=np.int64)
        if index.size and int(index.max()) >= len(table):
            raise DocumentError(
                [weight.mark.make_problem(f"'{name}' has {len(table)} entries, index {index.max()} has none")]
            )
        return table[index]


def run_at_mark(mark: Mark, make: Callable[[], T]) -> T:
    """Return what ``make`` returns; its ValueError becomes a mistake at ``mark``."""
    try:
        return make()
    except (ValueError, KeyError) as error:
        raise DocumentError([mark.make_problem(str(error).strip("'"))]) from None


def build_world(model: Model, folder: Path, processors: int, profiles: Profiles | None = None, line: int = 64) -> World:
    """Return the world of ``model`` on ``processors`` processors; files are looked for in ``folder``.

    ``line`` (bytes) is what arrays are aligned to. Raises DocumentError for values that make no sense.
    """
    names: dict[str, object] = {"P": np.float64(processors)}
    names |= {name: np.float64(value) for name, value in model.parameters.items()}
    flat, ragged = read_tables(model, folder, names)
    names |= flat
    first = World(model, processors, names, ragged, {}, {}, {}, {}, 0)
    sizes = {name: _domain_size(first, domain) for name, domain in model.domains.items()}
    spread = {
        name: _weight_by_index(first, weight, sizes, profiles)
        for name, weight in model.weights.items()
        if weight.table is not None or weight.profile is not None
    }
    arrays, end = place_arrays(model, lambda formula: first.evaluate_whole(formula, names), line)
    world = World(model, processors, names, ragged, sizes, {}, arrays, spread, end)
    owner = {name: _domain_owner(world, domain, sizes[name]) for name, domain in model.domains.items()}
    return replace(world, owner=owner)


def _domain_size(world: World, domain: Domain) -> int:
    size = world.evaluate_whole(domain.size, world.names)
    if not 1 <= size <= LARGEST:
        raise DocumentError([domain.size.mark.make_problem(f"size: expected 1 to {LARGEST:,}, found {size:,}")])
    return size


def _weight_by_index(world: World, weight: Weight, sizes: Mapping[str, int], profiles: Profiles | None) -> FloatArray:
    """Return a weight by index: a table, or a profile's seconds shared equally by the indices of each block."""
    if weight.table is not None:
        table = np.asarray(world.names.get(weight.table.value, np.zeros(0)), dtype=np.float64)
        if table.ndim != 1 or not len(table):
            raise DocumentError([weight.table.mark.make_problem("expected a table with one row of numbers")])
        return table
    if profiles is None or weight.profile is None or weight.region is None or weight.domain is None:
        raise DocumentError([weight.mark.make_problem("profiles can't be read here")])
    seconds = profiles(weight.profile, weight.region)
    count = sizes[weight.domain.value]
    part = np.arange(count) * len(seconds) // count
    share: FloatArray = seconds[part] / np.bincount(part, minlength=len(seconds))[part]
    return share


def _domain_owner(world: World, domain: Domain, size: int) -> IntArray:
    parts = domain.decomposition
    if parts is None:
        return compute_owners("block", size, world.processors)
    scope = {**world.names, "i": np.arange(size, dtype=np.float64)}
    block = world.evaluate_whole(parts.block, world.names) if parts.block else 1
    weight = np.asarray(world.evaluate_values(parts.weight, scope, size)) if parts.weight else np.ones(size)
    graph = world.ragged.get(parts.graph.value) if parts.graph else None
    given = _given_owner(world, parts)
    return run_at_mark(
        parts.mark, lambda: compute_owners(parts.kind, size, world.processors, block, weight, graph, given)
    )


def _given_owner(world: World, parts: Decomposition) -> IntArray | None:
    if parts.owner is None:
        return None
    return np.asarray(world.names.get(parts.owner.value, np.zeros(0)), dtype=np.int64).ravel()
