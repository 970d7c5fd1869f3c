"""Function symbols of ELF files, from their symbol tables; enough to name where instructions lie."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from advisor.collect.binaries.elf_files import read_symbols

_LARGEST: Final = 1 << 30
#: What files raise that can't be read, are damaged or no ELF files.
_DAMAGE: Final = (OSError, ELFError, AssertionError, ValueError, KeyError, IndexError)


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


def find_loader(path: Path) -> str | None:
    """Return the program that loads a dynamically linked one, by its path; None for any other file."""
    try:
        with path.open("rb") as file:
            for segment in ELFFile(file).iter_segments():
                if isinstance(segment, InterpSegment):
                    return str(segment.get_interp_name())
    except _DAMAGE:
        pass
    return None


def read_functions(path: Path) -> FunctionSymbols:
    """Return the functions of a file; none where it can't be read or is no such file."""
    found: dict[int, tuple[int, str]] = {}
    stripped = True
    try:
        for offset, size, name, in_full in _iterate_symbols(path):
            stripped = stripped and not in_full
            if offset not in found or in_full:
                found[offset] = (offset + max(size, 1), name)
    except _DAMAGE:
        return FunctionSymbols((), (), (), True)
    starts = sorted(found)
    return FunctionSymbols(
        tuple(starts), tuple(found[at][0] for at in starts), tuple(found[at][1] for at in starts), stripped
    )


def find_functions(path: Path, is_wanted: Callable[[str], bool]) -> tuple[int, ...]:
    """Return where in the file the functions begin that have a wanted name, aliases of others among them."""
    try:
        return tuple(sorted({offset for offset, _, name, _ in _iterate_symbols(path) if is_wanted(name)}))
    except _DAMAGE:
        return ()


def _iterate_symbols(path: Path) -> Iterator[tuple[int, int, str, bool]]:
    """Yield place in the file, size and name of every function, and whether the full table of symbols has it."""
    if path.stat().st_size > _LARGEST:
        return
    with path.open("rb") as file:
        elf = ELFFile(file)
        loaded = [(one["p_vaddr"], one["p_filesz"], one["p_offset"]) for one in elf.iter_segments("PT_LOAD")]
        for table in elf.iter_sections():
            if table["sh_type"] in ("SHT_SYMTAB", "SHT_DYNSYM"):
                for address, size, name in read_symbols(elf, table):
                    offset = next(
                        (address - low + base for low, long, base in loaded if 0 <= address - low < long), None
                    )
                    if offset is not None:
                        yield offset, size, name, table["sh_type"] == "SHT_SYMTAB"
