"""The functions that an address lies in: the one that holds the code, and those inlined there with their calls."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from advisor.collect.binaries.demangling import demangle
from advisor.collect.binaries.dwarf_units import (
    ABSTRACT_ORIGIN,
    CALL_COLUMN,
    CALL_FILE,
    CALL_LINE,
    INLINED,
    LEXICAL_BLOCK,
    LINKAGE_NAME,
    MODULE,
    NAME,
    NAMESPACE,
    OLD_LINKAGE_NAME,
    SIBLING,
    SPECIFICATION,
    SUBPROGRAM,
    Entry,
    Unit,
    Value,
)

#: Entries whose children may hold code; all others (types, variables) are passed over where they say where they end.
_MAY_HOLD_CODE: Final = frozenset({SUBPROGRAM, INLINED, NAMESPACE, MODULE, LEXICAL_BLOCK})
#: An entry names another that says more, which names another: no compiler makes longer chains.
_LONGEST_CHAIN: Final = 8


class Scope(NamedTuple):
    """A function that an address lies in; where it was inlined, the file (by number), line and column of the call."""

    unit: Unit
    values: Mapping[int, Value]
    call_file: int
    call_line: int
    call_column: int


def find_scopes(unit: Unit, addresses: Sequence[int]) -> dict[int, list[Scope]]:
    """Return the functions around each of some sorted addresses of a unit, the outermost first.

    Functions that hold none of the addresses are passed over; where that leaves an address without a function, as
    that of a procedure inside another, everything is looked at.
    """
    found = _walk(unit, addresses, thorough=False)
    rest = [address for address in addresses if address not in found]
    return found | _walk(unit, rest, thorough=True) if rest else found


def _walk(unit: Unit, addresses: Sequence[int], *, thorough: bool) -> dict[int, list[Scope]]:
    found: dict[int, list[Scope]] = {}
    position, depth = unit.root.end, int(unit.root.has_children)
    while depth and position < unit.end:
        leaf = unit.skip_leaf(position, _MAY_HOLD_CODE)
        if leaf is not None:
            position = leaf
            continue
        entry = unit.read_entry(position)
        if entry is None:
            depth, position = depth - 1, position + 1
            continue
        inside = _note_scope(unit, entry, addresses, found) if entry.tag in (SUBPROGRAM, INLINED) else True
        after = unit.attribute_reference(entry.values.get(SIBLING))
        passes = not inside or entry.tag not in _MAY_HOLD_CODE
        if passes and not thorough and after is not None and after > position:
            position = after
        else:
            position, depth = entry.end, depth + entry.has_children
    return found


def _note_scope(unit: Unit, entry: Entry, addresses: Sequence[int], found: dict[int, list[Scope]]) -> bool:
    """Add a function to the scopes of the addresses that lie in it; return whether there are any."""
    numbers = [entry.values.get(attribute) for attribute in (CALL_FILE, CALL_LINE, CALL_COLUMN)]
    file, line, column = (value.raw if value is not None and isinstance(value.raw, int) else 0 for value in numbers)
    scope = Scope(unit, entry.values, file, line, column)
    inside = False
    for begin, end in unit.code_ranges(entry.values):
        for address in addresses[bisect_left(addresses, begin) : bisect_left(addresses, end)]:
            inside = True
            if entry.tag == SUBPROGRAM:
                found[address] = [scope]
            else:
                found.setdefault(address, []).append(scope)
    return inside


def name_scope(scope: Scope, units: Sequence[Unit]) -> str | None:
    """Return the readable name of a function, None where it is in another file; ``units`` are those of the whole file.

    The mangled name tells more than the plain one of C++: namespace, class and arguments.
    """
    unit, values = scope.unit, scope.values
    plain = None
    for _ in range(_LONGEST_CHAIN):
        mangled = unit.attribute_text(values.get(LINKAGE_NAME, values.get(OLD_LINKAGE_NAME)))
        if mangled:
            return demangle(mangled)
        plain = plain or unit.attribute_text(values.get(NAME))
        target = unit.attribute_reference(values.get(ABSTRACT_ORIGIN, values.get(SPECIFICATION)))
        if target is None:
            break
        if not unit.offset <= target < unit.end:
            unit = units[bisect_right(units, target, key=lambda one: one.offset) - 1]
        entry = unit.read_entry(target)
        if entry is None:
            break
        values = entry.values
    return plain
