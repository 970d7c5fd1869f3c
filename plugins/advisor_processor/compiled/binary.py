"""A program for x86-64: its code and functions, and the source line of each instruction."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Final

from advisor.collect.binaries.dwarf_units import DAMAGE
from advisor.collect.binaries.elf_files import ElfImage, read_elf
from advisor.collect.binaries.line_tables import LineTable, read_line_table
from advisor.model.errors import InputError, UsageError
from advisor.support.extras import install_line

MACHINES: Final = {"EM_X86_64": "x86-64"}


@dataclass(frozen=True, slots=True)
class Binary:
    """A program or library, and file and line of the instructions with which source lines begin, by address."""

    image: ElfImage
    line_starts: tuple[int, ...]
    lines: tuple[tuple[str, int], ...]

    def find_declaration(self, begin: int) -> tuple[str | None, int | None]:
        """Return file and line where a function begins, None for both without debug information."""
        first, end = (find(self.line_starts, begin) for find in (bisect_left, bisect_right))
        return next((row for row in self.lines[first:end] if row[1] > 0), (None, None))

    def find_line(self, address: int) -> tuple[str, int] | None:
        """Return file and line of an instruction, None without debug information."""
        place = bisect_right(self.line_starts, address) - 1
        return self.lines[place] if place >= 0 and self.lines[place][1] > 0 else None


def read_binary(path: Path) -> Binary:
    """Return the program or library at ``path``; raises ``InputError`` for what is none, or is not for x86-64."""
    if find_spec("capstone") is None:  # needed next; say so before anything is read
        raise UsageError(f"capstone is not installed: {install_line('processor')}")
    image = read_elf(path)
    if image.machine not in MACHINES:
        raise InputError(path, f"holds code for {image.machine}; only x86-64 is analysed")
    try:
        rows = sorted(row for unit in image.units for row in _iterate_lines(read_line_table(unit)))
    except DAMAGE:
        rows = []
    return Binary(image, tuple(row[0] for row in rows), tuple(row[1] for row in rows))


def _iterate_lines(table: LineTable) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yield where each source line begins in the code, and the name of its file; line 0 where a sequence ends."""
    names = [PurePath(file).name for file in table.files]
    for address, file, line in zip(table.address.tolist(), table.file.tolist(), table.line.tolist(), strict=True):
        yield address, (names[file] if 0 <= file < len(names) else "", max(line, 0))
