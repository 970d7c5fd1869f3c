"""Function symbols of 64-bit ELF files, from their symbol tables; enough to name where instructions lie."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HEAD: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SYMTAB, _DYNSYM, _LOADED, _INTERPRETER, _FUNCTION, _IFUNC = 2, 11, 1, 3, 2, 10
_LARGEST_HEAD: Final = 1 << 16
_LARGEST: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class FunctionSymbols:
    """Functions by the place of their code in the file: starts in order, ends, names."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    names: tuple[str, ...]
    stripped: bool

    def find_name(self, offset: int) -> str | None:
        """Return the function whose code lies at ``offset`` of the file, None outside of all."""
        found = bisect_right(self.starts, offset) - 1
        return self.names[found] if found >= 0 and offset < self.ends[found] else None


NONE: Final = FunctionSymbols((), (), (), True)


def find_loader(path: Path) -> str | None:
    """Return the program that loads a dynamically linked one, by its path; None for any other file."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_HEAD)
        head = _HEAD.unpack_from(data)
        for kind, _, offset, _, _, size, _, _ in _read_table(data, _SEGMENT, head[4], head[8], head[9]):
            if kind == _INTERPRETER and data[:6] == b"\x7fELF\x02\x01":
                return data[offset : offset + size].rstrip(b"\0").decode(errors="surrogateescape")
    except (OSError, struct.error):
        pass
    return None


def read_functions(path: Path) -> FunctionSymbols:
    """Return the functions of a file; none where it can't be read or is no such file."""
    try:
        if path.stat().st_size > _LARGEST:
            return NONE
        data = path.read_bytes()
        return _parse_functions(data) if data[:6] == b"\x7fELF\x02\x01" else NONE
    except (OSError, struct.error, ValueError):
        return NONE


def find_functions(path: Path, is_wanted: Callable[[str], bool]) -> tuple[int, ...]:
    """Return where in the file the functions begin that have a wanted name, aliases of others among them."""
    try:
        data = path.read_bytes() if path.stat().st_size <= _LARGEST else b""
        symbols = _iterate_symbols(data) if data[:6] == b"\x7fELF\x02\x01" else iter(())
        return tuple(sorted({offset for offset, _, name, _ in symbols if is_wanted(name)}))
    except (OSError, struct.error, ValueError):
        return ()


def _parse_functions(data: bytes) -> FunctionSymbols:
    found: dict[int, tuple[int, str]] = {}
    stripped = True
    for offset, size, name, table in _iterate_symbols(data):
        stripped = stripped and table != _SYMTAB
        if offset not in found or table == _SYMTAB:
            found[offset] = (offset + max(size, 1), name)
    starts = sorted(found)
    return FunctionSymbols(
        tuple(starts), tuple(found[at][0] for at in starts), tuple(found[at][1] for at in starts), stripped
    )


def _iterate_symbols(data: bytes) -> Iterator[tuple[int, int, str, int]]:
    """Yield place in the file, size, name and kind of table of every function."""
    head = _HEAD.unpack_from(data)
    segments = _read_table(data, _SEGMENT, head[4], head[8], head[9])
    sections = _read_table(data, _SECTION, head[5], head[10], head[11])
    loaded = [
        (address, address + in_file, offset)
        for kind, _, offset, address, _, in_file, _, _ in segments
        if kind == _LOADED
    ]
    for section in sections:
        if section[1] in (_SYMTAB, _DYNSYM):
            for address, size, name in _read_symbols(data, section, sections):
                offset = next((address - low + base for low, high, base in loaded if low <= address < high), None)
                if offset is not None:
                    yield offset, size, name, section[1]


def _read_table(data: bytes, record: struct.Struct, offset: int, size: int, count: int) -> list[tuple[int, ...]]:
    if size != record.size:
        return []
    return [record.unpack_from(data, offset + number * size) for number in range(count)]


def _read_symbols(data: bytes, section: tuple[int, ...], sections: list[tuple[int, ...]]) -> list[tuple[int, int, str]]:
    offset, size, names = section[4], section[5], sections[section[6]][4]
    found = []
    for at in range(offset, offset + size - _SYMBOL.size + 1, _SYMBOL.size):
        name, info, _, where, address, length = _SYMBOL.unpack_from(data, at)
        if info & 15 in (_FUNCTION, _IFUNC) and where:
            end = data.index(b"\0", names + name)
            found.append((address, length, data[names + name : end].decode(errors="surrogateescape")))
    return found
