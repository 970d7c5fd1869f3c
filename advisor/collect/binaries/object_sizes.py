"""How large the objects of a program are, by its debug information: a loop in such steps goes from object to object."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.addresses import group_by_unit
from advisor.collect.binaries.dwarf_units import BYTE_SIZE, CLASS, DAMAGE, NAME, NAMESPACE, STRUCTURE

if TYPE_CHECKING:
    from collections.abc import Collection

    from advisor.collect.binaries.dwarf_units import Unit
    from advisor.collect.binaries.elf_files import ElfImage
    from advisor.collect.binaries.hot_functions import FunctionCode
    from advisor.collect.binaries.loop_records import InnerLoop

#: So many entries of debug information are looked at in all: half a second.
_MOST_ENTRIES: Final = 300_000
_OBJECTS: Final = frozenset({STRUCTURE, CLASS})
_PASSED: Final = frozenset({STRUCTURE, CLASS, NAMESPACE})
_LIBRARY: Final = frozenset({"std", "__gnu_cxx"})


def read_object_sizes(image: ElfImage, addresses: Collection[int]) -> frozenset[int]:
    """Return the bytes of the structures and classes that sources define which compiled some addresses.

    Those of the standard library of C++ are left out.
    """
    left, found = _MOST_ENTRIES, set[int]()
    try:
        for unit, _ in group_by_unit(image.units, sorted(set(addresses))):
            left -= _note_sizes(unit, left, found)
    except DAMAGE:
        return frozenset()
    return frozenset(found)


def _note_sizes(unit: Unit, most: int, found: set[int]) -> int:
    """Add the sizes of a unit's objects; return how many entries were looked at."""
    position, parents, looked = unit.root.end, [False] * int(unit.root.has_children), 0
    while parents and position < unit.end and looked < most:
        looked += 1
        leaf = unit.skip_leaf(position, _PASSED)
        if leaf is not None:
            position = leaf
            continue
        entry = unit.read_entry(position)
        if entry is None:
            parents.pop()
            position += 1
            continue
        size = entry.values.get(BYTE_SIZE)
        if entry.tag in _OBJECTS and not parents[-1] and size is not None and isinstance(size.raw, int):
            found.add(size.raw)
        foreign = parents[-1] or (entry.tag == NAMESPACE and unit.attribute_text(entry.values.get(NAME)) in _LIBRARY)
        position = entry.end
        if entry.has_children:
            parents.append(foreign)
    return looked


def name_objects(code: FunctionCode, sizes: Collection[int]) -> FunctionCode:
    """Return a function whose loops in steps of an object's size take some numbers of each object."""
    return replace(code, loops=tuple(_name_in_loop(loop, sizes) for loop in code.loops))


def _name_in_loop(loop: InnerLoop, sizes: Collection[int]) -> InnerLoop:
    moved = sum(count for step, count in loop.leaps if step in sizes)
    if not moved:
        return loop
    return replace(loop, strided=loop.strided - moved, interleaved=loop.interleaved + moved)
