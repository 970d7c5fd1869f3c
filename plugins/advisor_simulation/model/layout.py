"""Data layout: the address of every item, from the order, padding, alignment and grouping of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.model.errors import DocumentError

if TYPE_CHECKING:
    from advisor.support.documents import Marked
    from advisor.support.expressions import Expression
    from advisor_simulation.model.records import Array, Model

#: The largest address, bytes.
LARGEST = 2**40
#: An array whose address was taken moves on by this many bytes, so that it stays where it was in sets of caches.
PAGE_B = 4096


@dataclass(frozen=True, slots=True)
class PlacedArray:
    """Where an array lies: item (r, c) has the address ``base + r * row_step + c * item_step``, bytes."""

    name: str
    base: int
    row_step: int
    item_step: int
    element: int
    rows: int
    items: int
    private: bool = False


def place_arrays(
    model: Model, whole: Callable[[Marked[Expression]], int], line: int
) -> tuple[dict[str, PlacedArray], int]:
    """Return where the arrays lie, one after the other in the order of the model, and the end.

    An array begins at a multiple of ``align`` (default: ``line``), or where a run had it. Grouped arrays share rows:
    row r of all of them lies together, which is what an array of structures is.
    """
    groups = [[name.value for name in group] for group in model.groups]
    group_of = {name: group for group in groups for name in group}
    found: dict[str, PlacedArray] = {}
    end = 0
    for name in model.arrays:
        if name in found:
            continue
        members = group_of.get(name, [name])
        alone = [_lay_out_array(member, model.arrays[member], whole) for member in members]
        start = _round_up(end, max(int(model.arrays[member].align or line) for member in members))
        at = model.arrays[members[0]].at
        if at is not None:
            beyond = 0 if model.arrays[members[0]].overlaps else max(end - int(at), 0)
            start = int(at) + _round_up(beyond, PAGE_B)
        grouped, last = _place_group(alone, start) if len(alone) > 1 else _place_single(alone[0], start)
        end = max(end, last)
        found |= {one.name: one for one in grouped}
    if end > LARGEST:
        raise DocumentError(
            [model.mark.make_problem(f"the arrays take {end:,} bytes; at most {LARGEST:,} can be modelled")]
        )
    return found, end


def _lay_out_array(name: str, array: Array, whole: Callable[[Marked[Expression]], int]) -> PlacedArray:
    sides = [whole(side) for side in array.shape]
    if min(sides) < 1:
        raise DocumentError([array.mark.make_problem(f"{name}: expected at least one row and one item")])
    rows, items = sides[0], sides[1] if len(sides) > 1 else 1
    element = int(array.element)
    if element < 1 or element != array.element:
        raise DocumentError([array.mark.make_problem(f"{name}: expected an element of whole bytes")])
    steps = (
        ((items + array.pad) * element, element) if array.order == "row" else (element, (rows + array.pad) * element)
    )
    return PlacedArray(name, 0, *steps, element, rows, items, array.private)


def _place_single(array: PlacedArray, start: int) -> tuple[list[PlacedArray], int]:
    last = (array.rows - 1) * array.row_step + (array.items - 1) * array.item_step + array.element
    size = max(last, array.rows * array.row_step if array.row_step > array.item_step else last)
    return [_move_array(array, start, array.row_step)], start + size


def _place_group(arrays: list[PlacedArray], start: int) -> tuple[list[PlacedArray], int]:
    step = sum(array.row_step for array in arrays)
    found, offset = [], start
    for one in arrays:
        found.append(_move_array(one, offset, step))
        offset += one.row_step
    return found, start + step * max(array.rows for array in arrays)


def _move_array(one: PlacedArray, base: int, step: int) -> PlacedArray:
    return PlacedArray(one.name, base, step, one.item_step, one.element, one.rows, one.items, one.private)


def _round_up(address: int, multiple: int) -> int:
    return -(-address // multiple) * multiple
