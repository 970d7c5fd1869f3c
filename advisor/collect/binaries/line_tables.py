"""The line table of a compilation unit, DWARF 2 to 5, as arrays (DWARF 5, section 6.2)."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor.collect.binaries.dwarf_units import COMP_DIR, NAME, STMT_LIST, Unit, Value, form_size, read_uleb

if TYPE_CHECKING:
    from advisor.model.records import IntArray

_PATH, _DIRECTORY = 1, 2
_LEAST_SEQUENCE: Final = 2


@dataclass(frozen=True, slots=True)
class LineTable:
    """Rows by address: each holds up to the next; ``line`` is -1 where a sequence ends, ``files`` are full paths."""

    address: IntArray
    file: IntArray
    line: IntArray
    column: IntArray
    files: tuple[str, ...]

    def find_line(self, address: int) -> tuple[str | None, int | None]:
        """Return file and line of an instruction, each None where it is not known or made up by the compiler."""
        place = int(np.searchsorted(self.address, address, "right")) - 1
        if place < 0 or self.line[place] < 0:
            return None, None
        return self.file_name(int(self.file[place])), int(self.line[place]) or None

    def find_column(self, address: int) -> int | None:
        """Return the column of an instruction in its line, None where it is not known."""
        place = int(np.searchsorted(self.address, address, "right")) - 1
        return None if place < 0 or self.line[place] < 0 else int(self.column[place]) or None

    def file_name(self, number: int) -> str | None:
        """Return the path of a file by its number, None for one that the table lacks."""
        return self.files[number] or None if 0 <= number < len(self.files) else None


_NOTHING: Final = np.zeros(0, np.int64)
EMPTY: Final = LineTable(_NOTHING, _NOTHING, _NOTHING, _NOTHING, ())


class _Header(NamedTuple):
    """What stands before the rows of a unit: its files, how the program is coded, and where that lies."""

    files: tuple[str, ...]
    begin: int
    end: int
    shortest: int
    base: int
    span: int
    first: int
    lengths: tuple[int, ...]


def read_file_names(unit: Unit) -> tuple[str, ...]:
    """Return the full paths of the files that a unit has code of, by their numbers; raises as ``read_line_table``."""
    header = _read_header(unit)
    return () if header is None else header.files


def read_line_table(unit: Unit) -> LineTable:
    """Return the rows of a unit, empty where it has none; raises ``ValueError`` or ``IndexError`` for damage."""
    header = _read_header(unit)
    if header is None:
        return EMPTY
    # The rows by address; where one sequence ends at which another begins, the beginning counts
    rows = _run_program(unit.sections[".debug_line"][header.begin : header.end], header)
    if len(rows) < _LEAST_SEQUENCE:
        return LineTable(EMPTY.address, EMPTY.file, EMPTY.line, EMPTY.column, header.files)
    table = np.array(rows, dtype=np.int64)
    order = np.lexsort((np.arange(len(table)), table[:, 2] >= 0, table[:, 0]))
    table = table[order]
    return LineTable(table[:, 0], table[:, 1], table[:, 2], table[:, 3], header.files)


def _read_header(unit: Unit) -> _Header | None:
    where = unit.root.values.get(STMT_LIST)
    data = unit.sections.get(".debug_line", b"")
    if where is None or not isinstance(where.raw, int) or where.raw >= len(data):
        return None
    offset, size = where.raw, 4
    length, place = int.from_bytes(data[offset : offset + 4], "little"), offset + 4
    if length == 0xFFFFFFFF:
        length, place, size = int.from_bytes(data[place : place + 8], "little"), place + 8, 8
    end = min(place + length, len(data))
    version, place = int.from_bytes(data[place : place + 2], "little"), place + 2
    place += 2 if version >= 5 else 0
    header, place = int.from_bytes(data[place : place + size], "little"), place + size
    begin = place + header
    shortest, place = data[place], place + 1 + (version >= 4)
    base, span, first = data[place + 1], data[place + 2], data[place + 3]
    lengths = tuple(data[place + 4 : place + 3 + first])
    place += 3 + first
    files = _new_files(unit, data, place, size) if version >= 5 else _old_files(unit, data, place)
    return _Header(files, begin, end, shortest, base - 256 if base > 127 else base, span, first, lengths)


def _run_program(code: bytes, header: _Header) -> list[tuple[int, int, int, int]]:
    """Return address, file, line and column of every row that a line number program makes (DWARF 5, section 6.2.5)."""
    rows: list[tuple[int, int, int, int]] = []
    sequence: list[tuple[int, int, int, int]] = []
    address, file, line, column, place = 0, 1, 1, 0, 0
    shortest, base, span, first = header.shortest, header.base, header.span, header.first
    advance = (255 - first) // span * shortest if span else 0
    while place < len(code):
        opcode = code[place]
        place += 1
        if opcode >= first:
            opcode -= first
            address += opcode // span * shortest
            line += base + opcode % span
            sequence.append((address, file, line, column))
        elif opcode == 0:
            length, place = read_uleb(code, place)
            kind, operand = code[place], code[place + 1 : place + length]
            place += length
            if kind == 1:
                sequence.append((address, file, -1, 0))
                if sequence[0][0]:  # what the linker threw away lies at address 0
                    rows += sequence
                sequence, address, file, line, column = [], 0, 1, 1, 0
            elif kind == 2:
                address = int.from_bytes(operand, "little")
        elif opcode == 1:
            sequence.append((address, file, line, column))
        elif opcode == 2:
            number, place = read_uleb(code, place)
            address += number * shortest
        elif opcode == 3:
            number, place = _read_sleb(code, place)
            line += number
        elif opcode == 4:
            file, place = read_uleb(code, place)
        elif opcode == 5:
            column, place = read_uleb(code, place)
        elif opcode == 8:
            address += advance
        elif opcode == 9:
            address += int.from_bytes(code[place : place + 2], "little")
            place += 2
        else:
            for _ in range(header.lengths[opcode - 1]):
                _, place = read_uleb(code, place)
    return rows


def _read_sleb(data: bytes, place: int) -> tuple[int, int]:
    number, end = read_uleb(data, place)
    bits = 7 * (end - place)
    return number - (1 << bits) if number >> (bits - 1) else number, end


def _old_files(unit: Unit, data: bytes, place: int) -> tuple[str, ...]:
    """Return the files of DWARF 2 to 4, whose numbers begin with 1."""
    folders = [unit.attribute_text(unit.root.values.get(COMP_DIR)) or ""]
    while data[place]:
        end = data.index(b"\0", place)
        folders.append(data[place:end].decode("utf-8", "replace"))
        place = end + 1
    files = [unit.attribute_text(unit.root.values.get(NAME)) or ""]
    place += 1
    while data[place]:
        end = data.index(b"\0", place)
        name = data[place:end].decode("utf-8", "replace")
        folder, place = read_uleb(data, end + 1)
        for _ in range(2):
            _, place = read_uleb(data, place)
        files.append(_join(folders, folder, name))
    return tuple(files)


def _new_files(unit: Unit, data: bytes, place: int, offset_size: int) -> tuple[str, ...]:
    """Return the files of DWARF 5, whose numbers begin with 0; the first directory is that of the compilation."""
    tables: list[list[dict[int, Value]]] = []
    for _ in range(2):
        count, place = data[place], place + 1
        formats = []
        for _ in range(count):
            kind, place = read_uleb(data, place)
            form, place = read_uleb(data, place)
            formats.append((kind, form))
        number, place = read_uleb(data, place)
        table = []
        for _ in range(number if formats else 0):
            row = {}
            for kind, form in formats:
                row[kind], place = _read_value(data, place, form, offset_size)
            table.append(row)
        tables.append(table)
    folders = [unit.attribute_text(row.get(_PATH)) or "" for row in tables[0]]
    home = unit.attribute_text(unit.root.values.get(COMP_DIR)) or ""
    folders = [posixpath.join(home, folder) for folder in folders]
    return tuple(
        _join(folders, _number(row.get(_DIRECTORY)), unit.attribute_text(row.get(_PATH)) or "") for row in tables[1]
    )


def _number(value: Value | None) -> int:
    return value.raw if value is not None and isinstance(value.raw, int) else 0


def _read_value(data: bytes, place: int, form: int, offset_size: int) -> tuple[Value, int]:
    size = form_size(form, 5, offset_size, 8)
    if size >= 0:
        return Value(form, int.from_bytes(data[place : place + size], "little")), place + size
    if form == 0x08:
        end = data.index(b"\0", place)
        return Value(form, data[place:end]), end + 1
    number, place = read_uleb(data, place)
    if form == 0x09:  # a block, such as an MD5 sum
        return Value(form, 0), place + number
    return Value(form, number), place


def _join(folders: Sequence[str], number: int, name: str) -> str:
    folder = folders[number] if number < len(folders) else ""
    if folders and not folder.startswith("/"):
        folder = posixpath.join(folders[0], folder)
    return posixpath.normpath(posixpath.join(folder, name)) if name else ""
