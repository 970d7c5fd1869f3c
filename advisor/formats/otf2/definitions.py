"""The global definitions of an OTF2 archive as plain lists, every one of them, in recorded order.

Definitions may repeat an id and may refer to what comes later (EZTrace writes both), so nothing is resolved here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.formats.otf2.chunks import read_definition_records
from advisor.formats.otf2.old_types import convert_group_type, convert_region_type
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from advisor.formats.otf2.cursor import Cursor

#: Fields by name of the definition: what they are is said in OTF2's documentation, in the order of its callbacks.
Definitions = dict[str, list[list[Any]]]


def read_definitions(file: Path, chunk_bytes: int, declared: int) -> Definitions:
    """Return the global definitions by name, each a list of its fields.

    Raises ``InputError`` where the file is damaged, or holds another number of definitions than ``declared``.
    """
    definitions: Definitions = {name: [] for name, _ in _READERS.values()}
    count = 0
    for kind, record in read_definition_records(file, chunk_bytes):
        count += 1
        if kind in _READERS:
            name, read = _READERS[kind]
            definitions[name].append(read(record))
    if count != declared:
        raise InputError(file, f"holds {count} of {declared} definitions: the file is damaged")
    return definitions


def _sequence(widths: str) -> Callable[[Cursor], list[int]]:
    """Return a reader of fields: ``B`` a byte, ``I`` and ``Q`` packed integers of 32 and 64 bits.

    Fields that an older writer did not know are missing at the end of the record: they are undefined.
    """
    sizes = tuple({"B": 1, "I": 4, "Q": 8}[width] for width in widths)

    def read(record: Cursor) -> list[int]:
        return [
            (1 << 8 * size) - 1 if not record.left else record.raw(1) if size == 1 else record.packed(size)
            for size in sizes
        ]

    return read


def _read_string(record: Cursor) -> list[Any]:
    return [record.packed(4), record.text()]


def _read_region(record: Cursor) -> list[int]:
    """Return id, name, canonical name, description, role, paradigm, flags, file, first line, last line."""
    identity, name, description = record.packed(4), record.packed(4), record.packed(4)
    old_type = record.raw(1)
    file, begin, end = record.packed(4), record.packed(4), record.packed(4)
    if record.left:
        canonical, role, paradigm, flags = record.packed(4), record.raw(1), record.raw(1), record.packed(4)
    else:
        (role, paradigm), canonical, flags = convert_region_type(old_type), name, 0
    return [identity, name, canonical, description, role, paradigm, flags, file, begin, end]


def _read_group(record: Cursor) -> list[Any]:
    """Return id, name, type, paradigm, flags and the list of members."""
    identity, name, old_type, count = record.packed(4), record.packed(4), record.raw(1), record.packed(4)
    if count > record.left:
        raise record.error(f"damaged: a group of {count} members in {record.left} bytes is impossible")
    members = [record.packed(8) for _ in range(count)]
    if record.left:
        kind, paradigm, flags = record.raw(1), record.raw(1), record.packed(4)
    else:
        (kind, paradigm), flags = convert_group_type(old_type), 0
    return [identity, name, kind, paradigm, flags, members]


#: Record type -> name of the definition and what reads it; others are of no use here.
_READERS: dict[int, tuple[str, Callable[[Cursor], list[Any]]]] = {
    5: ("ClockProperties", _sequence("QQQQ")),
    10: ("String", _read_string),
    12: ("SystemTreeNode", _sequence("IIII")),
    13: ("LocationGroup", _sequence("IIBII")),
    14: ("Location", _sequence("QIBQI")),
    15: ("Region", _read_region),
    18: ("Group", _read_group),
    22: ("Comm", _sequence("IIIII")),
    27: ("SystemTreeNodeDomain", _sequence("IB")),
    38: ("IoRegularFile", _sequence("III")),
    39: ("IoDirectory", _sequence("III")),
    40: ("IoHandle", _sequence("IIIBIII")),
    43: ("InterComm", _sequence("IIIIII")),
}
