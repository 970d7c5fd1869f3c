"""The global definitions of an OTF2 archive as plain lists, every one of them, in recorded order.

Definitions may repeat an id and may refer to what comes later (EZTrace writes both), so nothing is resolved here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.formats.otf2.anchor import read_anchor
from advisor.formats.otf2.chunks import read_definition_records
from advisor.formats.otf2.codes import COMM_GROUP, COMM_LOCATIONS, COMM_SELF, MPI, OLD_REGION_TYPES, PARADIGMS, ROLES
from advisor.model.errors import InputError
from advisor.support.contract import TEXT_LIMIT

if TYPE_CHECKING:
    from advisor.formats.otf2.cursor import Cursor


#: Type of a group by its type before OTF2 1.2, where only MPI had communicators.
_GROUP_TYPES = {4: COMM_GROUP, 5: COMM_SELF, 6: COMM_LOCATIONS}

#: Fields by name of the definition: what they are is said in OTF2's documentation, in the order of its callbacks.
Definitions = dict[str, list[list[Any]]]
#: The fields of definitions that name what a profile is made of.
_NAMES = {
    "SystemTreeNode": (1, 2), "Location": (1,), "Region": (1, 2, 7), "IoRegularFile": (1,), "IoDirectory": (1,),
    "IoHandle": (1,),
}  # fmt: skip


def read_archive_definitions(anchor: Path) -> Definitions:
    """Return the global definitions of an archive; raises ``InputError`` where they or the anchor file are damaged."""
    known = read_anchor(anchor)
    return read_definitions(anchor.with_suffix(".def"), known.definition_chunk, known.definitions)


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
    _check_names(file, definitions)
    return definitions


def _check_names(file: Path, definitions: Definitions) -> None:
    """Refuse a name that is longer than a profile may hold; other strings may have any length."""
    used = {row[field] for name, fields in _NAMES.items() for row in definitions[name] for field in fields}
    for identity, text, begin in definitions["String"]:
        if len(text) > TEXT_LIMIT and identity in used:
            reason = f"a name of {len(text):,} characters; at most {TEXT_LIMIT:,} are allowed"
            raise InputError(file, reason, f"byte {begin}")


def _make_field_reader(widths: str) -> Callable[[Cursor], list[int]]:
    """Return a reader of fields: ``B`` a byte, ``I`` and ``Q`` packed integers of 32 and 64 bits.

    Fields that an older writer did not know are missing at the end of the record: they are undefined.
    """
    sizes = tuple({"B": 1, "I": 4, "Q": 8}[width] for width in widths)

    def read_fields(record: Cursor) -> list[int]:
        return [
            (1 << 8 * size) - 1
            if not record.bytes_left
            else record.read_raw(1)
            if size == 1
            else record.read_packed(size)
            for size in sizes
        ]

    return read_fields


def _read_string(record: Cursor) -> list[Any]:
    """Return id, text and the byte at which the text begins."""
    identity, begin = record.read_packed(4), record.position
    return [identity, record.read_text(), begin]


def _read_region(record: Cursor) -> list[int]:
    """Return id, name, canonical name, description, role, paradigm, flags, file, first line, last line."""
    identity, name, description = record.read_packed(4), record.read_packed(4), record.read_packed(4)
    old_type = record.read_raw(1)
    file, begin, end = record.read_packed(4), record.read_packed(4), record.read_packed(4)
    if record.bytes_left:
        canonical, role, paradigm, flags = (
            record.read_packed(4),
            record.read_raw(1),
            record.read_raw(1),
            record.read_packed(4),
        )
    else:
        (role, paradigm), canonical, flags = convert_region_type(old_type), name, 0
    return [identity, name, canonical, description, role, paradigm, flags, file, begin, end]


def _read_group(record: Cursor) -> list[Any]:
    """Return id, name, type, paradigm, flags and the list of members."""
    identity, name, old_type, count = (
        record.read_packed(4),
        record.read_packed(4),
        record.read_raw(1),
        record.read_packed(4),
    )
    if count > record.bytes_left:
        raise record.make_error(f"damaged: a group of {count} members in {record.bytes_left} bytes is impossible")
    members = [record.read_packed(8) for _ in range(count)]
    if record.bytes_left:
        kind, paradigm, flags = record.read_raw(1), record.read_raw(1), record.read_packed(4)
    else:
        (kind, paradigm), flags = convert_group_type(old_type), 0
    return [identity, name, kind, paradigm, flags, members]


#: Record type -> name of the definition and what reads it; others are of no use here.
_READERS: dict[int, tuple[str, Callable[[Cursor], list[Any]]]] = {
    5: ("ClockProperties", _make_field_reader("QQQQ")),
    10: ("String", _read_string),
    12: ("SystemTreeNode", _make_field_reader("IIII")),
    13: ("LocationGroup", _make_field_reader("IIBII")),
    14: ("Location", _make_field_reader("QIBQI")),
    15: ("Region", _read_region),
    18: ("Group", _read_group),
    22: ("Comm", _make_field_reader("IIIII")),
    27: ("SystemTreeNodeDomain", _make_field_reader("IB")),
    38: ("IoRegularFile", _make_field_reader("III")),
    39: ("IoDirectory", _make_field_reader("III")),
    40: ("IoHandle", _make_field_reader("IIIBIII")),
    43: ("InterComm", _make_field_reader("IIIIII")),
}


def convert_region_type(old: int) -> tuple[int, int]:
    """Return role and paradigm of a region of the type ``old``."""
    role, paradigm = OLD_REGION_TYPES[old if old < len(OLD_REGION_TYPES) else 0].split("/")
    return ROLES.index(role), PARADIGMS.index(paradigm)


def convert_group_type(old: int) -> tuple[int, int]:
    """Return type and paradigm of a group of the type ``old``."""
    return (_GROUP_TYPES[old], MPI) if old in _GROUP_TYPES else (old, PARADIGMS.index("UNKNOWN"))
