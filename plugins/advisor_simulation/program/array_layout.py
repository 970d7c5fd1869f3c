"""The layout of a program's arrays as its references show it: items, rows, and places in the address space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.program.fitting import LinearForm
from advisor_simulation.program.folded_phases import FoldedItem, FoldedLoop, FoldedReference

if TYPE_CHECKING:
    from advisor_simulation.program.data_objects import DataObject

#: Objects no further apart keep their distance; between others there are only whole pages.
_NEAR_B: Final = 1 << 16
_PAGE_B: Final = 4096
#: Structures, of whose strides only some places are used, are no larger.
_LARGEST_STRUCTURE_B: Final = 256
#: An inner loop that goes over this share of a stride says that the stride is a row.
_FILLED: Final = 0.4
_LARGEST_ITEM_B: Final = 16


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """An array: bytes of an item, items of a row, rows, and its address in the model.

    ``flat`` ones are one row; one ``overlaps`` where another had some of its memory before or after it.
    """

    name: str
    element: int
    items: int
    rows: int
    at: int
    overlaps: bool = False
    flat: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceInLoops:
    """A reference with the most times that the loops around it run, the outermost (over the domain) first."""

    reference: FoldedReference
    most: tuple[int, ...]


def iterate_in_loops(body: Iterable[FoldedItem], most: tuple[int, ...]) -> Iterator[ReferenceInLoops]:
    """Yield the references of a body with the loops around them."""
    for item in body:
        if isinstance(item, FoldedLoop):
            yield from iterate_in_loops(item.body, (*most, item.most))
        else:
            yield ReferenceInLoops(item, most)


def lay_out_arrays(
    objects: Sequence[DataObject], uses: Sequence[Sequence[ReferenceInLoops]], processors: int
) -> list[ArrayLayout]:
    """Return the layout of each object, from the references to it by this many processors."""
    places = _place_objects(objects)
    found = []
    for one, mine, at in zip(objects, uses, places, strict=True):
        element = _find_element(one, mine)
        known = one.row_B and one.row_B % element == 0 and _stay_in_rows(mine, one.row_B, element, processors)
        row_B = one.row_B if known else _find_row(one, mine, element, processors)
        items = max(row_B // element, 1)
        if items == 1 and any(use.reference.size > element for use in mine):
            found.append(ArrayLayout(one.name, element, -(-one.size // element), 1, at, one.overlaps, flat=True))
            continue
        found.append(ArrayLayout(one.name, element, items, max(-(-one.size // (items * element)), 1), at, one.overlaps))
    return found


def _place_objects(objects: Sequence[DataObject]) -> list[int]:
    """Return addresses in which what was near stays near, and all keep their places in pages."""
    order = sorted(range(len(objects)), key=lambda k: objects[k].address)
    found = [0] * len(objects)
    moved, end = _PAGE_B - objects[order[0]].address // _PAGE_B * _PAGE_B if order else 0, 0
    for k in order:
        one = objects[k]
        if end and one.address - end > _NEAR_B:
            moved = -(-(end + moved) // _PAGE_B) * _PAGE_B + one.address % _PAGE_B - one.address
        found[k] = one.address + moved
        end = max(end, one.end)
    return found


def _find_element(one: DataObject, uses: Sequence[ReferenceInLoops]) -> int:
    """Return the largest item that all references are to whole ones of."""
    found = one.element_B if 0 < one.element_B <= _LARGEST_ITEM_B else 0
    for use in uses:
        reference = use.reference
        found = gcd(found, reference.size)
        if isinstance(reference.offset, LinearForm):
            found = gcd(found, reference.offset.constant, *reference.offset.factors)
        elif len(reference.offset.values):
            found = gcd(found, int(np.gcd.reduce(reference.offset.values)))
    return max(min(found, _LARGEST_ITEM_B), 1)


def _stay_in_rows(uses: Sequence[ReferenceInLoops], row_B: int, element: int, processors: int) -> bool:
    """Return whether no access to several items begins in one row and ends in another."""
    items = row_B // element
    for use in uses:
        width, offset = use.reference.size // element, use.reference.offset
        if width <= 1:
            continue
        if isinstance(offset, LinearForm):
            begins = np.array([offset.constant // element % items])
            for factor, count in zip(offset.factors, (*use.most, processors), strict=True):
                if factor % row_B:
                    steps = factor // element * np.arange(min(count, items))
                    begins = np.unique((begins[:, None] + steps) % items)
        else:
            begins = np.unique(offset.values // element % items)
        if (begins + width > items).any():
            return False
    return True


def _find_row(one: DataObject, uses: Sequence[ReferenceInLoops], element: int, processors: int) -> int:
    """Return the smallest stride that references fill with smaller steps or with several places, else one item."""
    forms = [(use, use.reference.offset) for use in uses if isinstance(use.reference.offset, LinearForm)]
    strides = {abs(factor) for use, form in forms for factor in form.factors if abs(factor) >= 2 * use.reference.size}
    for stride in sorted(strides):
        if stride % element or stride > one.size or not _stay_in_rows(uses, stride, element, processors):
            continue
        starts = {form.constant % stride for _, form in forms if any(abs(factor) == stride for factor in form.factors)}
        steps = any(
            0 < abs(factor) < stride and abs(factor) * count >= _FILLED * stride
            for use, form in forms
            for factor, count in zip(form.factors, use.most, strict=False)
        )
        if steps or (len(starts) > 1 and stride <= _LARGEST_STRUCTURE_B):
            return stride
    return element


def split_place(form: LinearForm, array: ArrayLayout, most: Sequence[int]) -> tuple[LinearForm, LinearForm] | None:
    """Return row and item of a place in an array, None where the items would leave the row.

    ``most`` is how many values each variable takes at most, from 0 on.
    """
    row_B = array.items * array.element
    rows = [round(factor / row_B) if abs(factor) >= row_B else 0 for factor in form.factors]
    rest = [factor - row * row_B for factor, row in zip(form.factors, rows, strict=True)]
    lowest = sum(min(0, part * (count - 1)) for part, count in zip(rest, most, strict=True))
    highest = sum(max(0, part * (count - 1)) for part, count in zip(rest, most, strict=True))
    row = (form.constant + lowest) // row_B
    item = form.constant - row * row_B
    if item + highest >= row_B:
        return None
    return (
        LinearForm(tuple(rows), row),
        LinearForm(tuple(part // array.element for part in rest), item // array.element),
    )
