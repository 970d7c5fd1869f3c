"""Data dependence x layout -> the references of one loop, in the order in which the processors make them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from advisor.support.expressions import evaluate_tree
from advisor_simulation.model.world import World, run_at_mark

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor.support.documents import Marked
    from advisor_simulation.model.accesses import Access
    from advisor_simulation.model.layout import PlacedArray

_NEIGHBOUR = "_neighbour"


@dataclass(frozen=True, slots=True)
class ReferenceStream:
    """References in the order in which they reach memory: the k-th index of every sub-domain before the next one.

    All columns have one entry for each run of neighbouring words: ``word`` the first word (``granule`` bytes each),
    ``words`` their number, ``write`` whether they are written, ``sub`` the sub-domain, ``array`` its number in the
    world. ``items`` counts single references.
    """

    word: IntArray
    words: IntArray
    write: npt.NDArray[np.bool_]
    sub: IntArray
    items: int
    granule: int
    array: npt.NDArray[np.int32]


def find_granule(world: World) -> int:
    """Return the largest size in bytes that all elements and steps of the arrays are multiples of."""
    found = 0
    for array in world.arrays.values():
        found = gcd(found, gcd(gcd(array.base, array.element), gcd(array.row_step, array.item_step)))
    return found or 8


def build_stream(
    world: World,
    reads: Sequence[Marked[Access]],
    writes: Sequence[Marked[Access]],
    scope: Mapping[str, object],
    index: str,
    chosen: IntArray,
    sub: IntArray,
    granule: int,
) -> ReferenceStream:
    """Return the references of the indices ``chosen`` (sorted), which belong to the sub-domains ``sub``."""
    parts = [
        _build_references(world, access, scope, index, chosen, sub, granule, write)
        for write, accesses in ((False, reads), (True, writes))
        for access in accesses
    ]
    place = _turn_numbers(sub)
    element = np.concatenate([part[0] for part in parts])
    order = np.lexsort((sub[element], place[element]))
    word, words = (np.concatenate([part[k] for part in parts])[order] for k in (1, 2))
    write = np.concatenate([np.full(len(part[0]), part[3]) for part in parts])[order]
    names = list(world.arrays)
    numbers = [names.index(access.value.array) for access in (*reads, *writes)]
    array = np.repeat(np.array(numbers, dtype=np.int32), [len(part[0]) for part in parts])[order]
    return ReferenceStream(word, words, write, sub[element][order], sum(part[4] for part in parts), granule, array)


def _turn_numbers(sub: IntArray) -> IntArray:
    """Return for each index how many of its sub-domain come before it."""
    order = np.argsort(sub, kind="stable")
    ranked = sub[order]
    begins = np.searchsorted(ranked, ranked)
    turn = np.empty(len(sub), dtype=np.int64)
    turn[order] = np.arange(len(sub)) - begins
    return turn


def _build_references(
    world: World,
    access: Marked[Access],
    scope: Mapping[str, object],
    index: str,
    chosen: IntArray,
    sub: IntArray,
    granule: int,
    write: bool,
) -> tuple[IntArray, IntArray, IntArray, bool, int]:
    """Return element (place in ``chosen``), first word and number of words of each reference, and single items."""
    array = world.arrays[access.value.array]
    element, rows, inner = _resolve_rows(world, access, scope, index, chosen)
    first = np.zeros(len(rows), dtype=np.int64)
    last = np.full(len(rows), array.items, dtype=np.int64)
    if access.value.first is not None and access.value.last is not None:
        first = _evaluate_whole(access, access.value.first, inner, len(rows))
        last = _evaluate_whole(access, access.value.last, inner, len(rows))
    run_at_mark(access.mark, lambda: _check_bounds(array, rows, first, last))
    base = rows * array.row_step + array.base
    if array.private:
        base = base + world.end * (1 + sub[element])
    width = last - first
    items = int(width.sum())
    if array.item_step == array.element:
        return element, (base + first * array.item_step) // granule, width * array.element // granule, write, items
    repeat = np.repeat(np.arange(len(rows)), width)
    column = np.arange(items) - np.repeat(np.cumsum(width) - width, width) + first[repeat]
    word = (base[repeat] + column * array.item_step) // granule
    return element[repeat], word, np.full(items, array.element // granule), write, items


def _resolve_rows(
    world: World, access: Marked[Access], scope: Mapping[str, object], index: str, chosen: IntArray
) -> tuple[IntArray, IntArray, dict[str, object]]:
    """Return the elements and the rows they refer to, a list of neighbours laid out, and the names that go with
    that."""
    inner: dict[str, object] = {**scope, index: chosen.astype(np.float64)}
    element = np.arange(len(chosen))
    tree = access.value.rows
    lists = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript) and _array_name(node) in world.ragged]
    if len(lists) > 1:
        run_at_mark(access.mark, lambda: _raise_invalid("expected one list of neighbours at most"))
    if lists:
        table = world.ragged[_array_name(lists[0])]
        if isinstance(lists[0].slice, ast.Tuple):
            run_at_mark(access.mark, lambda: _raise_invalid("a list of neighbours takes one index"))
        row = _evaluate_whole(access, lists[0].slice, inner, len(chosen))
        run_at_mark(access.mark, lambda: _check_rows(row, table.rows, access.value.text))
        count = table.first[row + 1] - table.first[row]
        element = np.repeat(element, count)
        place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + table.first[row][element]
        inner = {**scope, index: chosen[element].astype(np.float64), _NEIGHBOUR: table.values[place].astype(np.float64)}
        tree = copy.deepcopy(tree, {id(lists[0]): ast.Name(_NEIGHBOUR, ast.Load())})
    return element, _evaluate_whole(access, tree, inner, len(element)), inner


def _array_name(node: ast.Subscript) -> str:
    return node.value.id if isinstance(node.value, ast.Name) else ""


def _evaluate_whole(access: Marked[Access], tree: ast.expr, scope: Mapping[str, object], count: int) -> IntArray:
    values = run_at_mark(access.mark, lambda: evaluate_tree(tree, scope, access.value.text))
    found: IntArray = np.broadcast_to(np.rint(values), (count,)).astype(np.int64)
    return found


def _check_bounds(array: PlacedArray, rows: IntArray, first: IntArray, last: IntArray) -> None:
    _check_rows(rows, array.rows, array.name)
    if len(rows) and (first.min() < 0 or last.max() > array.items or (last < first).any()):
        raise ValueError(f"{array.name}: items {first.min()} to {last.max() - 1} outside 0 to {array.items - 1}")


def _check_rows(rows: IntArray, count: int, name: str) -> None:
    if len(rows) and (rows.min() < 0 or rows.max() >= count):
        raise ValueError(f"{name}: row {rows.min()} to {rows.max()} outside 0 to {count - 1}")


def _raise_invalid(reason: str) -> None:
    raise ValueError(reason)


def compute_working_sets(parts: ReferenceStream, processor: IntArray, processors: int) -> IntArray:
    """Return how many bytes each processor touches (P,)."""
    found = np.zeros(processors, dtype=np.int64)
    for one in range(processors):
        mine = processor[parts.sub] == one
        starts, lengths = parts.word[mine], parts.words[mine]
        found[one] = _count_covered(starts, starts + lengths) * parts.granule
    return found


def _count_covered(start: IntArray, end: IntArray) -> int:
    """Return the number of words in the union of ranges."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    before = np.r_[start[0], end[:-1]]
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


def iterate_addresses(parts: ReferenceStream) -> Iterable[tuple[int, str, int, int]]:
    """Yield sub-domain, R or W, address and size in bytes of each reference."""
    for sub, write, word, words in zip(parts.sub, parts.write, parts.word, parts.words, strict=True):
        yield int(sub), "W" if write else "R", int(word) * parts.granule, int(words) * parts.granule
