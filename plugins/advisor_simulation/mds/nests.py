"""The references of loops within an index, in program order: bodies of steps laid out over all indices at once.

First each item of a body is counted for each execution, then each knows where in the stream its references go. A list
(ragged table) named without an index stands for its next entry in the row of the domain's index, at each execution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import DocumentError
from advisor.support.expressions import evaluate_tree, find_names
from advisor_simulation.mds.references import ReferenceStream
from advisor_simulation.model import records
from advisor_simulation.model.world import World, run_at_mark

if TYPE_CHECKING:
    import ast

    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.support.documents import Mark
    from advisor_simulation.model.records import BodyItem, Read, Write
    from advisor_simulation.model.tables import RaggedTable

    Columns = tuple[IntArray, IntArray, npt.NDArray[np.bool_], npt.NDArray[np.int32]]

#: References of one loop at a time, at most.
MOST_REFERENCES = 200_000_000


@dataclass(frozen=True, slots=True)
class _Level:
    """The executions of a body: the place of each in the chosen indices, and the values of the names."""

    element: IntArray
    scope: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Part:
    """An item of a body: ``counts`` references by execution; of a loop ``times`` and its own parts by iteration."""

    item: BodyItem
    counts: IntArray
    word: IntArray
    words: IntArray
    times: IntArray
    inner: tuple[_Part, ...] = ()
    inner_counts: IntArray | None = None


def iterate_references(body: Iterable[BodyItem]) -> Iterator[Read | Write]:
    """Yield the references of a body, those of inner loops too, in program order."""
    for item in body:
        if isinstance(item, records.Nest):
            yield from iterate_references(item.body)
        else:
            yield item


def find_body_names(body: Iterable[BodyItem]) -> frozenset[str]:
    """Return the names that formulas of a body use."""
    names: set[str] = set()
    for item in body:
        if isinstance(item, records.Nest):
            names |= item.times.value.names | find_body_names(item.body)
        else:
            names |= (item.read if isinstance(item, records.Read) else item.write).value.names
            names |= item.where.value.names if item.where is not None else frozenset()
    return frozenset(names)


def build_nest_stream(
    world: World,
    body: Sequence[BodyItem],
    scope: Mapping[str, object],
    index: str,
    chosen: IntArray,
    sub: IntArray,
    granule: int,
) -> ReferenceStream:
    """Return the references of a body for the indices ``chosen``, which belong to the sub-domains ``sub``.

    Each sub-domain makes its own in program order; all proceed at the same pace, a reference each in turn.
    """
    order = np.argsort(sub, kind="stable")
    level = _Level(order, {**scope, index: chosen[order].astype(np.float64), "p": sub[order].astype(np.float64)})
    layout = _BodyLayout(world, granule, chosen, list(world.arrays))
    total, parts = layout.count_references(body, level)
    size = int(total.sum())
    if size > MOST_REFERENCES:
        raise DocumentError([world.model.mark.make_problem(f"a loop makes {size:,} references; make it smaller")])
    columns = (np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size, np.int32))
    layout.place_references(parts, np.cumsum(total) - total, columns)
    word, words, write, array = columns
    owner = np.repeat(sub[order], total)
    if len(owner) and owner[0] != owner[-1]:
        begins = np.searchsorted(owner, owner)
        turn = np.argsort(np.arange(size) - begins, kind="stable")
        word, words, write, array, owner = word[turn], words[turn], write[turn], array[turn], owner[turn]
    return ReferenceStream(word, words, write, owner, size, granule, array)


@dataclass(frozen=True, slots=True)
class _BodyLayout:
    """Counts the references of a body, and then puts each to its place."""

    world: World
    granule: int
    chosen: IntArray
    names: list[str]

    def count_references(self, body: Iterable[BodyItem], level: _Level) -> tuple[IntArray, tuple[_Part, ...]]:
        """Return the references of each execution, and the parts that they come from."""
        total = np.zeros(len(level.element), dtype=np.int64)
        parts = []
        for item in body:
            part = self._count_nest(item, level) if isinstance(item, records.Nest) else self._count_access(item, level)
            total += part.counts
            parts.append(part)
        return total, tuple(parts)

    def _count_nest(self, item: records.Nest, level: _Level) -> _Part:
        count = len(level.element)
        times = self._evaluate(item.times.value.tree, item.times.mark, item.times.value.text, level, count)
        times = np.maximum(times, 0)
        size = int(times.sum())
        if size > MOST_REFERENCES:
            raise DocumentError([item.mark.make_problem(f"this loop makes {size:,} iterations; make it smaller")])
        scope = {
            name: np.repeat(value, times) if isinstance(value, np.ndarray) and value.shape == (count,) else value
            for name, value in level.scope.items()
            if name not in self.world.names
        }
        scope = {name: level.scope[name] for name in level.scope if name in self.world.names} | scope
        turn = np.arange(size) - np.repeat(np.cumsum(times) - times, times)
        inner = _Level(np.repeat(level.element, times), {**scope, item.for_: turn.astype(np.float64)})
        counts, parts = self.count_references(item.body, inner)
        edges = np.r_[0, np.cumsum(times)]
        sums = np.r_[0, np.cumsum(counts)]
        empty = np.zeros(0, dtype=np.int64)
        return _Part(item, sums[edges[1:]] - sums[edges[:-1]], empty, empty, times, parts, counts)

    def _count_access(self, item: Read | Write, level: _Level) -> _Part:
        count = len(level.element)
        taken = np.ones(count, dtype=np.int64)
        if item.where is not None:
            where = item.where
            taken = (self._evaluate(where.value.tree, where.mark, where.value.text, level, count) != 0).astype(np.int64)
        made = np.flatnonzero(taken)
        if len(made) < count:
            level = _Level(level.element[made], self._select(level.scope, made, count))
        access = item.read if isinstance(item, records.Read) else item.write
        array = self.world.arrays[access.value.array]
        rows = self._evaluate(access.value.rows, access.mark, access.value.text, level, len(made))
        first, last = np.zeros(len(made), dtype=np.int64), np.full(len(made), array.items, dtype=np.int64)
        if access.value.first is not None and access.value.last is not None:
            first = self._evaluate(access.value.first, access.mark, access.value.text, level, len(made))
            last = self._evaluate(access.value.last, access.mark, access.value.text, level, len(made))
        run_at_mark(access.mark, lambda: _check_place(array.name, rows, array.rows, first, last, array.items))
        base = rows * array.row_step + first * array.item_step + array.base
        if array.private:
            base = base + self.world.end * (1 + np.asarray(level.scope["p"], dtype=np.int64))
        # items that do not follow each other are few in a reference: their span is what is touched
        span = np.maximum(last - first - 1, 0) * array.item_step + array.element
        return _Part(item, taken, base // self.granule, -(-span // self.granule), made)

    def _select(self, scope: Mapping[str, object], made: IntArray, count: int) -> dict[str, object]:
        return {
            name: value[made]
            if isinstance(value, np.ndarray) and value.shape == (count,) and name not in self.world.names
            else value
            for name, value in scope.items()
        }

    def _evaluate(self, tree: ast.expr, mark: Mark, text: str, level: _Level, count: int) -> IntArray:
        """Return whole values; lists named without an index are read on by one entry at each execution."""
        scope = dict(level.scope)
        used = find_names(tree)
        for name, table in self.world.ragged.items():
            if name in used:
                scope[name] = run_at_mark(mark, partial(self._next_entries, name, table, level))
        values = run_at_mark(mark, lambda: evaluate_tree(tree, scope, text))
        found: IntArray = np.broadcast_to(np.rint(values), (count,)).astype(np.int64)
        return found

    def _next_entries(self, name: str, table: RaggedTable, level: _Level) -> FloatArray:
        first, values = table.first, table.values
        element = level.element
        # Where the run of equal values begins that each belongs to; equal ones stand together
        change = np.r_[True, element[1:] != element[:-1]]
        begins = np.flatnonzero(change)[np.cumsum(change) - 1] if len(element) else element
        row = self.chosen[element]
        place = first[row] + np.arange(len(element)) - begins
        if len(place) and (place >= first[row + 1]).any():
            raise ValueError(f"the list '{name}' has fewer entries than its index is executed")
        found: FloatArray = values[place].astype(np.float64)
        return found

    def place_references(self, parts: Iterable[_Part], start: IntArray, columns: Columns) -> None:
        """Put the references of executions that begin at ``start`` to their places."""
        position = start
        for part in parts:
            if isinstance(part.item, records.Nest):
                assert part.inner_counts is not None
                counts = part.inner_counts
                edges = np.cumsum(part.times) - part.times
                sums = np.cumsum(counts) - counts
                before = np.zeros(len(part.times), dtype=np.int64)
                some = part.times > 0
                before[some] = sums[edges[some]]
                self.place_references(part.inner, np.repeat(position - before, part.times) + sums, columns)
            else:
                word, words, write, array = columns
                at = position[part.times]
                word[at], words[at] = part.word, part.words
                write[at] = isinstance(part.item, records.Write)
                access = part.item.read if isinstance(part.item, records.Read) else part.item.write
                array[at] = self.names.index(access.value.array)
            position = position + part.counts


def _check_place(name: str, rows: IntArray, row_count: int, first: IntArray, last: IntArray, item_count: int) -> None:
    if len(rows) and not (rows.min() >= 0 and rows.max() < row_count):
        raise ValueError(f"{name}: row {rows.min()} to {rows.max()} outside 0 to {row_count - 1}")
    if len(first) and not (first.min() >= 0 and last.max() <= item_count and (last >= first).all()):
        raise ValueError(f"{name}: items {first.min()} to {last.max() - 1} outside 0 to {item_count - 1}")
