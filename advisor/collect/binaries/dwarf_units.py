"""DWARF 2 to 5: compilation units, and their entries with the few attributes that are asked for.

Decoded here and not by pyelftools, which makes an object of every attribute: of a large C++ program more than a million
entries have to be passed, and nearly all of them are types. What an abbreviation says is compiled once into steps that
skip as much as possible. After DWARF 5, sections 7.5 (entries) and 7.25 to 7.28 (strings, addresses, ranges).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

SIBLING, NAME, STMT_LIST, LOW_PC, HIGH_PC, LANGUAGE = 0x01, 0x03, 0x10, 0x11, 0x12, 0x13
COMP_DIR, PRODUCER, ABSTRACT_ORIGIN, SPECIFICATION, RANGES = 0x1B, 0x25, 0x31, 0x47, 0x55
CALL_COLUMN, CALL_FILE, CALL_LINE, LINKAGE_NAME, OLD_LINKAGE_NAME = 0x57, 0x58, 0x59, 0x6E, 0x2007
STR_OFFSETS_BASE, ADDR_BASE, RNGLISTS_BASE = 0x72, 0x73, 0x74
DWO_NAME, GNU_DWO_NAME, GNU_ADDR_BASE = 0x76, 0x2130, 0x2133
COMPILE_UNIT, SUBPROGRAM, INLINED, NAMESPACE, MODULE, LEXICAL_BLOCK = 0x11, 0x2E, 0x1D, 0x39, 0x1E, 0x0B
SKELETON_UNIT: Final = 0x4A

#: What damaged debug information makes of decoding it.
DAMAGE: Final = (ValueError, IndexError, KeyError, OverflowError, TypeError)

#: The attributes that are decoded, by the entries that have them; of all others only the place of the next sibling.
_WANTED: Final[Mapping[int, frozenset[int]]] = {
    **dict.fromkeys(
        (COMPILE_UNIT, SKELETON_UNIT),
        frozenset({NAME, STMT_LIST, LOW_PC, HIGH_PC, LANGUAGE, COMP_DIR, PRODUCER, RANGES, STR_OFFSETS_BASE, ADDR_BASE,
                   RNGLISTS_BASE, DWO_NAME, GNU_DWO_NAME, GNU_ADDR_BASE}),
    ),
    SUBPROGRAM: frozenset({SIBLING, NAME, LINKAGE_NAME, OLD_LINKAGE_NAME, LOW_PC, HIGH_PC, RANGES, ABSTRACT_ORIGIN,
                           SPECIFICATION}),
    INLINED: frozenset({SIBLING, LOW_PC, HIGH_PC, RANGES, ABSTRACT_ORIGIN, CALL_COLUMN, CALL_FILE, CALL_LINE}),
}  # fmt: skip
_ONLY_SIBLING: Final = frozenset({SIBLING})

_ADDR, _STRING, _INDIRECT, _IMPLICIT, _PRESENT = 0x01, 0x08, 0x16, 0x21, 0x19
_LEB: Final = frozenset({0x0D, 0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02})
_BLOCKS: Final = {0x03: 2, 0x04: 4, 0x0A: 1, 0x09: 0, 0x18: 0}  # bytes of the length; 0: a LEB128 number
_FIXED: Final = {
    0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x19: 0, 0x1C: 4, 0x1E: 16,
    0x20: 8, 0x21: 0, 0x24: 8, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4,
}  # fmt: skip
#: As long as an offset into a section; DW_FORM_ref_addr is as long as an address in DWARF 2.
_OFFSETS: Final = frozenset({0x0E, 0x10, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21})
_LOCAL_REFERENCES: Final = frozenset({0x11, 0x12, 0x13, 0x14, 0x15})
_STRING_INDICES: Final = frozenset({0x1A, 0x25, 0x26, 0x27, 0x28, 0x1F02})
ADDRESS_INDICES: Final = frozenset({0x1B, 0x29, 0x2A, 0x2B, 0x2C, 0x1F01})
_ELSEWHERE: Final = frozenset({0x1C, 0x1D, 0x20, 0x24, 0x1F20, 0x1F21})
_RNGLISTX: Final = 0x23


class Value(NamedTuple):
    """An attribute as it stands in the file: its form, and a number, or text where the form holds it."""

    form: int
    raw: int | bytes


class Abbreviation(NamedTuple):
    """What entries of one kind hold: ``steps`` are (attribute or -1, form, size or -1, implicit constant).

    ``size`` is how many bytes the attributes take, -1 where that depends on their values.
    """

    tag: int
    has_children: bool
    steps: tuple[tuple[int, int, int, int], ...]
    size: int


class Abbreviations(dict[int, Abbreviation]):
    """What the codes of a unit's entries mean, decoded up to the last that was asked for.

    Of most units of a large program that is the first: nothing but their own entry is looked at.
    """

    __slots__ = ("_data", "_place", "_sizes")

    def __init__(self, data: bytes, place: int, sizes: tuple[int, int, int]) -> None:
        """``sizes`` are version, and bytes of an offset and an address, as of ``form_size``."""
        self._data, self._place, self._sizes = data, place, sizes

    def __missing__(self, code: int) -> Abbreviation:
        """Decode as far as this code; raises ``KeyError`` where the table ends before."""
        while self._place < len(self._data):
            found, place = read_uleb(self._data, self._place)
            if found == 0:
                break
            self[found], self._place = _read_abbreviation(self._data, place, self._sizes)
            if found == code:
                return self[found]
        raise KeyError(f"an entry has the unknown abbreviation {code}")


class Entry(NamedTuple):
    """One debugging information entry; what follows its attributes begins at ``end``."""

    offset: int
    tag: int
    has_children: bool
    values: dict[int, Value]
    end: int


@dataclass(slots=True, eq=False)
class Unit:
    """One compilation unit; ``root`` is its own entry."""

    sections: Mapping[str, bytes]
    offset: int
    end: int
    version: int
    offset_size: int
    address_size: int
    abbreviations: Mapping[int, Abbreviation]
    root: Entry = field(init=False)

    def read_entry(self, position: int) -> Entry | None:
        """Return the entry at a position of ``.debug_info``, None for the mark that ends a list of children."""
        data = self.sections[".debug_info"]
        code, place = read_uleb(data, position)
        if code == 0:
            return None
        tag, has_children, steps, _ = self.abbreviations[code]
        values: dict[int, Value] = {}
        for attribute, form, size, constant in steps:
            if attribute < 0 and size >= 0:
                place += size
            elif size >= 0:
                raw = int.from_bytes(data[place : place + size], "little") if size else constant
                values[attribute] = Value(form, raw)
                place += size
            else:
                found, place = self._read_form(form, place)
                if attribute >= 0:
                    values[attribute] = found
        return Entry(position, tag, has_children, values, place)

    def skip_leaf(self, position: int, passed: frozenset[int]) -> int | None:
        """Return where the entry ends at a position, if it has no children and a fixed size, and its tag is none of
        ``passed``; else None. Most entries are such leaves, and nothing has to be made of them.
        """
        code, place = read_uleb(self.sections[".debug_info"], position)
        if code == 0:
            return None
        tag, has_children, _, size = self.abbreviations[code]
        return None if has_children or size < 0 or tag in passed else place + size

    def _read_form(self, form: int, place: int) -> tuple[Value, int]:
        """Return a value of a form whose length is not fixed, and where the next one begins."""
        data = self.sections[".debug_info"]
        if form in _LEB:
            number, place = read_uleb(data, place)
            return Value(form, number), place
        if form == _STRING:
            end = data.index(b"\0", place)
            return Value(form, data[place:end]), end + 1
        if form in _BLOCKS:
            width = _BLOCKS[form]
            if width:
                length, place = int.from_bytes(data[place : place + width], "little"), place + width
            else:
                length, place = read_uleb(data, place)
            return Value(form, 0), place + length
        if form == _INDIRECT:
            form, place = read_uleb(data, place)
            size = form_size(form, self.version, self.offset_size, self.address_size)
            if size < 0:
                return self._read_form(form, place)
            return Value(form, int.from_bytes(data[place : place + size], "little")), place + size
        raise ValueError(f"an attribute has the unknown form {form:#x}")

    def attribute_text(self, value: Value | None) -> str | None:
        """Return the text of an attribute, None where it is in another file."""
        if value is None or value.form in _ELSEWHERE:
            return None
        if isinstance(value.raw, bytes):
            return value.raw.decode("utf-8", "replace")
        section, offset = ".debug_line_str" if value.form == 0x1F else ".debug_str", value.raw
        if value.form in _STRING_INDICES:
            table = self.sections.get(".debug_str_offsets", b"")
            place = self._base(STR_OFFSETS_BASE, 0) + value.raw * self.offset_size
            offset = int.from_bytes(table[place : place + self.offset_size], "little")
        strings = self.sections.get(section, b"")
        return strings[offset : strings.find(b"\0", offset)].decode("utf-8", "replace")

    def attribute_reference(self, value: Value | None) -> int | None:
        """Return where the entry stands that an attribute refers to, None where it is in another file."""
        if value is None or value.form in _ELSEWHERE or isinstance(value.raw, bytes):
            return None
        return self.offset + value.raw if value.form in _LOCAL_REFERENCES else value.raw

    def attribute_address(self, value: Value) -> int:
        """Return the address that an attribute holds or points to."""
        raw = value.raw if isinstance(value.raw, int) else 0
        return self.indexed_address(raw) if value.form in ADDRESS_INDICES else raw

    def indexed_address(self, index: int) -> int:
        """Return an address of the unit's table of addresses."""
        table = self.sections.get(".debug_addr", b"")
        place = self._base(ADDR_BASE, self._base(GNU_ADDR_BASE, 0)) + index * self.address_size
        return int.from_bytes(table[place : place + self.address_size], "little")

    def _base(self, attribute: int, otherwise: int) -> int:
        value = self.root.values.get(attribute)
        return value.raw if value is not None and isinstance(value.raw, int) else otherwise

    def code_ranges(self, values: Mapping[int, Value]) -> list[tuple[int, int]]:
        """Return begin and end of the code of an entry, in one or several pieces; none for what has no code."""
        if RANGES in values:
            return list(self._range_list(values[RANGES]))
        low, high = values.get(LOW_PC), values.get(HIGH_PC)
        if low is None or high is None or isinstance(high.raw, bytes):
            return []
        begin = self.attribute_address(low)
        is_address = high.form == _ADDR or high.form in ADDRESS_INDICES
        end = self.attribute_address(high) if is_address else begin + high.raw
        return [(begin, end)] if begin < end else []

    def _range_list(self, value: Value) -> Iterator[tuple[int, int]]:
        raw = value.raw if isinstance(value.raw, int) else 0
        low = self.root.values.get(LOW_PC)
        base = self.attribute_address(low) if low is not None else 0
        if self.version >= 5:
            data = self.sections.get(".debug_rnglists", b"")
            if value.form == _RNGLISTX:
                table = self._base(RNGLISTS_BASE, 0)
                place = table + raw * self.offset_size
                raw = table + int.from_bytes(data[place : place + self.offset_size], "little")
            yield from self._new_ranges(data, raw, base)
        else:
            yield from self._old_ranges(self.sections.get(".debug_ranges", b""), raw, base)

    def _old_ranges(self, data: bytes, place: int, base: int) -> Iterator[tuple[int, int]]:
        size = self.address_size
        selects_base = (1 << 8 * size) - 1
        while place + 2 * size <= len(data):
            begin = int.from_bytes(data[place : place + size], "little")
            end = int.from_bytes(data[place + size : place + 2 * size], "little")
            place += 2 * size
            if begin == end == 0:
                return
            if begin == selects_base:
                base = end
            elif begin < end:
                yield base + begin, base + end

    def _new_ranges(self, data: bytes, place: int, base: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of a list of DWARF 5 (section 7.25)."""
        size = self.address_size

        def read_address(at: int) -> tuple[int, int]:
            return int.from_bytes(data[at : at + size], "little"), at + size

        while place < len(data):
            kind = data[place]
            if kind == 0 or kind > 7:
                return
            reads_address = kind >= 5
            first, place = read_address(place + 1) if reads_address else read_uleb(data, place + 1)
            if kind in (1, 2, 3):
                first = self.indexed_address(first)
            if kind in (1, 5):
                base = first
                continue
            second, place = read_address(place) if kind == 6 else read_uleb(data, place)
            if kind == 2:
                second = self.indexed_address(second)
            elif kind in (3, 7):
                second += first
            else:
                first, second = (first + base, second + base) if kind == 4 else (first, second)
            if first < second:
                yield first, second


def read_uleb(data: bytes, place: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and where it ends; raises ``IndexError`` where the data end before."""
    byte = data[place]
    place += 1
    if byte < 128:
        return byte, place
    number, shift = byte & 127, 7
    while byte >= 128:
        byte = data[place]
        place += 1
        number |= (byte & 127) << shift
        shift += 7
    return number, place


def form_size(form: int, version: int, offset_size: int, address_size: int) -> int:
    """Return how many bytes a value of a form takes, -1 where that depends on the value."""
    if form == _ADDR or (form == 0x10 and version == 2):
        return address_size
    return offset_size if form in _OFFSETS else _FIXED.get(form, -1)


def read_units(sections: Mapping[str, bytes]) -> Iterator[Unit]:
    """Yield the compilation units of ``.debug_info``; raises ``ValueError`` or ``IndexError`` where it is damaged."""
    data = sections[".debug_info"]
    known: dict[tuple[int, int, int, int], Abbreviations] = {}
    offset = 0
    while offset + 11 < len(data):
        length, place, size = int.from_bytes(data[offset : offset + 4], "little"), offset + 4, 4
        if length == 0xFFFFFFFF:
            length, place, size = int.from_bytes(data[place : place + 8], "little"), place + 8, 8
        end = place + length
        if length == 0 or end > len(data):
            raise ValueError("a compilation unit is longer than its section")
        version = int.from_bytes(data[place : place + 2], "little")
        place += 2
        kind = 1
        if version >= 5:
            kind, address_size, place = data[place], data[place + 1], place + 2
            table, place = int.from_bytes(data[place : place + size], "little"), place + size
            place += {4: 8, 5: 8, 2: 8 + size, 6: 8 + size}.get(kind, 0)
        else:
            table, place = int.from_bytes(data[place : place + size], "little"), place + size
            address_size, place = data[place], place + 1
        if 2 <= version <= 5 and kind in (1, 3, 4):
            key = (table, version, size, address_size)
            if key not in known:
                known[key] = Abbreviations(sections[".debug_abbrev"], table, key[1:])
            unit = Unit(sections, offset, end, version, size, address_size, known[key])
            root = unit.read_entry(place)
            if root is not None:
                unit.root = root
                yield unit
        offset = end


def _read_abbreviation(data: bytes, place: int, sizes: tuple[int, int, int]) -> tuple[Abbreviation, int]:
    """Return what stands behind a code, and where the next one begins."""
    tag, place = read_uleb(data, place)
    has_children, place = bool(data[place]), place + 1
    specified, place = _read_specifications(data, place)
    wanted = _WANTED.get(tag, _ONLY_SIBLING)
    steps: list[tuple[int, int, int, int]] = []
    for attribute, form, constant in specified:
        size = form_size(form, *sizes)
        if form == _PRESENT:
            constant = 1
        if attribute in wanted:
            steps.append((attribute, form, size, constant))
        elif size < 0 or not steps or steps[-1][0] >= 0 or steps[-1][2] < 0:
            steps.append((-1, form, size, 0))
        else:
            steps[-1] = (-1, 0, steps[-1][2] + size, 0)
    lengths = [step[2] for step in steps]
    length = sum(lengths) if min(lengths, default=0) >= 0 else -1
    return Abbreviation(tag, has_children, tuple(steps), length), place


def _read_specifications(data: bytes, place: int) -> tuple[list[tuple[int, int, int]], int]:
    """Return attribute, form and implicit constant of all that an abbreviation lists, and where the next one begins."""
    found: list[tuple[int, int, int]] = []
    while True:
        attribute, place = read_uleb(data, place)
        form, place = read_uleb(data, place)
        constant = 0
        if form == _IMPLICIT:
            constant, place = read_uleb(data, place)
        if attribute == form == 0:
            return found, place
        found.append((attribute, form, constant))
