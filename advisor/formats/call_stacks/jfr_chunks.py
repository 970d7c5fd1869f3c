"""Recordings of Java Flight Recorder: chunks, each with its events, their types and the constants that they refer to.

A chunk names the types of its events itself: this module decodes values by these types and knows nothing of what they
mean. Source: the writer in OpenJDK (``src/hotspot/share/jfr/recorder``), format 2, of Java 9 and later.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from advisor.model.errors import InputError

_MAGIC: Final = b"FLR\0"
_HEADER: Final = struct.Struct(">4sHHQQQQQQQI")
_STRING: Final = "java.lang.String"
#: Types whose values are numbers of variable length.
_NUMBERS: Final = frozenset({"long", "int", "short", "char"})
_MOST_ITEMS: Final = 1 << 20
#: Structures hold structures, but never as deep as this.
_DEEPEST: Final = 64

Value = Any  # a number, a text, a structure, a list of these: what the types of a recording say


class _CutError(Exception):
    """A value reaches beyond its chunk or is impossible."""


#: What decoding ends in where a chunk is damaged; and where its types give values of other kinds than Java does.
DAMAGE: Final = (_CutError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, struct.error)


@dataclass(frozen=True, slots=True)
class _Field:
    """A member of a type: its name and type, and whether it is a reference to a constant or a list."""

    name: str
    kind: int
    constant: bool
    repeated: bool


@dataclass(slots=True)
class _Type:
    """A type of values or events: its name and fields."""

    name: str
    fields: list[_Field] = field(default_factory=list)


class Chunk:
    """One chunk: ``start_ns`` since 1970 and ``duration_ns``; events are decoded on demand."""

    def __init__(self, content: bytes, path: Path, base: int) -> None:
        self.path, self.base = path, base
        self.content = content
        head = _HEADER.unpack_from(content)
        self._constants_at, self._metadata_at = head[4], head[5]
        self.start_ns, self.duration_ns, self.ticks_per_s = head[6], head[7], head[9]
        self.types: dict[int, _Type] = {}
        self._constants: dict[int, dict[int, Value]] = {}
        try:
            self._read_types()
            self._read_constants()
        except DAMAGE as error:
            raise InputError(path, f"damaged: {str(error) or 'types or constants'}", f"byte {base}") from None

    def list_events(self, names: Container[str]) -> Iterator[tuple[str, dict[str, Value]]]:
        """Yield the events of the types of these names, each with its fields."""
        wanted = {number: each for number, each in self.types.items() if each.name in names}
        place = _HEADER.size
        while place < len(self.content):
            try:
                size, after = self._read_number(place)
                number, after = self._read_number(after)
                if not 0 < size <= len(self.content) - place:
                    raise _CutError(f"an event of {size} bytes")
                if number in wanted:
                    event, after = self._read_structure(wanted[number], after)
                    if after > place + size:
                        raise _CutError(f"an event of {size} bytes holds {after - place}")
                    yield wanted[number].name, event
            except DAMAGE as error:
                raise InputError(self.path, f"damaged event: {error}", f"byte {self.base + place}") from None
            place += size

    def find_constant(self, structure: dict[str, Value], name: str) -> Value:
        """Return what the field ``name`` of a structure refers to; None without."""
        found = structure.get(name)
        return self._constants.get(found[0], {}).get(found[1]) if isinstance(found, tuple) else found

    def _read_types(self) -> None:
        """Read the types: a tree of elements whose names and attributes are numbers of texts."""
        place = self._metadata_at
        for _ in range(5):  # size, type of event, start, duration, number of the metadata
            _, place = self._read_number(place)
        count, place = self._read_count(place)
        texts = []
        for _ in range(count):
            text, place = self._read_text(place)
            texts.append(text)
        self._read_element(place, texts, None)

    def _read_element(self, place: int, texts: list[Value], owner: _Type | None, depth: int = 0) -> int:
        """Read an element with those below it; return the place behind it."""
        name, place = self._read_number(place)
        count, place = self._read_count(place)
        facts = {}
        for _ in range(count):
            key, place = self._read_number(place)
            value, place = self._read_number(place)
            facts[texts[key]] = texts[value]
        if texts[name] == "class":
            owner = self.types[int(facts["id"])] = _Type(facts["name"])
        elif texts[name] == "field" and owner is not None:
            constant, repeated = facts.get("constantPool") == "true", facts.get("dimension") == "1"
            owner.fields.append(_Field(facts["name"], int(facts["class"]), constant, repeated))
        if depth > _DEEPEST:
            raise _CutError("types within types")
        count, place = self._read_count(place)
        for _ in range(count):
            place = self._read_element(place, texts, owner, depth + 1)
        return place

    def _read_constants(self) -> None:
        """Read the tables of constants: the last event that holds some tells how far back the one before it is."""
        place, end, back = self._constants_at, len(self.content), -1
        while back:
            after = place
            for _ in range(4):  # size, type of event, start, duration
                _, after = self._read_number(after)
            back, after = self._read_number(after)
            _, after = self._read_number(after)  # what kind of tables follow
            tables, after = self._read_count(after)
            for _ in range(tables):
                after = self._read_table(after)
            if after > end or not -place < back <= 0:
                raise _CutError("tables of constants in one another")
            place, end = place + back, place

    def _read_table(self, place: int) -> int:
        kind, place = self._read_number(place)
        count, place = self._read_count(place)
        table = self._constants.setdefault(kind, {})
        for _ in range(count):
            key, place = self._read_number(place)
            value, place = self._read_value(kind, place, 0)
            table.setdefault(key, value)
        return place

    def _read_structure(self, found: _Type, place: int, depth: int = 0) -> tuple[dict[str, Value], int]:
        if depth > _DEEPEST:
            raise _CutError("structures within structures")
        if not found.fields:
            raise _CutError("values without bytes")  # lists of them could be of any length
        values: dict[str, Value] = {}
        for each in found.fields:
            count = 1
            if each.repeated:
                count, place = self._read_count(place)
            items = []
            for _ in range(count):
                if each.constant:
                    key, place = self._read_number(place)
                    items.append((each.kind, key))
                else:
                    value, place = self._read_value(each.kind, place, depth + 1)
                    items.append(value)
            values[each.name] = items if each.repeated else items[0]
        return values, place

    def _read_value(self, kind: int, place: int, depth: int) -> tuple[Value, int]:
        found = self.types[kind]
        if found.name in _NUMBERS:
            return self._read_number(place)
        if found.name in ("boolean", "byte"):
            return self.content[place], place + 1
        if found.name in ("float", "double"):
            form = ">f" if found.name == "float" else ">d"
            return struct.unpack_from(form, self.content, place)[0], place + struct.calcsize(form)
        if found.name == _STRING:
            text, place = self._read_text(place)
            return (self._constants.get(kind, {}).get(text) if isinstance(text, int) else text), place
        return self._read_structure(found, place, depth)

    def _read_text(self, place: int) -> tuple[Value, int]:
        """Return a text, None for none, or the number of a constant."""
        coding, place = self.content[place], place + 1
        if coding in (0, 1):
            return (None, "")[coding], place
        if coding == 2:
            return self._read_number(place)
        count, place = self._read_count(place)
        if coding == 4:
            codes = []
            for _ in range(count):
                code, place = self._read_number(place)
                codes.append(code & 0xFFFF)
            return struct.pack(f"<{count}H", *codes).decode("utf-16-le", "replace"), place
        if coding not in (3, 5) or place + count > len(self.content):
            raise _CutError(f"a text in coding {coding}")
        return self.content[place : place + count].decode("utf-8" if coding == 3 else "latin-1"), place + count

    def _read_count(self, place: int) -> tuple[int, int]:
        count, place = self._read_number(place)
        if not 0 <= count <= _MOST_ITEMS:
            raise _CutError(f"{count} items")
        return count, place

    def _read_number(self, place: int) -> tuple[int, int]:
        """Return a number of up to nine bytes, seven bits in each but eight in the last, and the place behind it."""
        value = 0
        for shift in range(0, 56, 7):
            byte = self.content[place]
            place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, place
        value |= self.content[place] << 56
        return value - (1 << 64) if value >> 63 else value, place + 1


def read_chunks(content: bytes, path: Path) -> Iterator[Chunk]:
    """Yield the chunks of a recording in their order; raises ``InputError`` where one is damaged or cut off."""
    place = 0
    while place < len(content):
        if len(content) - place < _HEADER.size or content[place : place + 4] != _MAGIC:
            raise InputError(path, "damaged: no chunk begins here", f"byte {place}")
        head = _HEADER.unpack_from(content, place)
        if head[1] != 2 or not head[10] & 1:
            raise InputError(
                path, f"is a recording in format {head[1]}.{head[2]}; formats of Java 9 and later are read"
            )
        size = head[3]
        if not _HEADER.size < size <= len(content) - place or not max(head[4], head[5]) < size:
            raise InputError(path, "ends within a chunk: the recording was not finished", f"byte {place}")
        yield Chunk(content[place : place + size], path, place)
        place += size
