"""The content of an ELF file: the bytes of its code, its functions, and the source line of each instruction."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError, UsageError
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.lineprogram import LineProgram
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

MACHINES: Final = {"EM_X86_64": "x86-64"}
_LARGEST: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its name, where its code begins and ends, and the source of its first line."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Binary:
    """The code of a file by address, its functions in order, and the beginnings of its source lines."""

    path: Path
    code: tuple[tuple[int, bytes], ...]
    functions: tuple[Function, ...]
    line_starts: tuple[int, ...]
    lines: tuple[tuple[str, int], ...]

    def code_of(self, function: Function) -> bytes:
        """Return the bytes of a function, empty where the file does not hold them."""
        for address, data in self.code:
            if address <= function.begin and function.end <= address + len(data):
                return data[function.begin - address : function.end - address]
        return b""

    def find_declaration(self, function: Function) -> tuple[str | None, int | None]:
        """Return file and line where a function begins, None for both without debug information."""
        begin, end = (find(self.line_starts, function.begin) for find in (bisect_left, bisect_right))
        return next((row for row in self.lines[begin:end] if row[1] > 0), (None, None))

    def find_line(self, address: int) -> tuple[str, int] | None:
        """Return file and line of an instruction, None without debug information."""
        place = bisect_right(self.line_starts, address) - 1
        return self.lines[place] if place >= 0 and self.lines[place][1] > 0 else None


def read_binary(path: Path) -> Binary:
    """Return the program or library at ``path``; raises ``InputError`` for what is none, or is not for x86-64."""
    try:
        import capstone  # noqa: F401 (needed next; say so before anything is read)
        from elftools.common.exceptions import DWARFError, ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: {install_line('processor')}") from error
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(path, "is larger than 1 GiB")
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            machine = elf.header.e_machine
            if machine not in MACHINES:
                raise InputError(path, f"holds code for {machine}; only x86-64 is analysed")
            code = tuple(
                (section["sh_addr"], section.data()) for section in elf.iter_sections() if _is_executable(section)
            )
            functions = tuple(_iterate_functions(elf))
            try:
                rows = sorted(_iterate_lines(elf))
            except (DWARFError, KeyError, IndexError, AttributeError, ValueError):
                rows = []
    except (ELFError, OSError, AssertionError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or f"is not an executable that can be read ({error})"
        raise InputError(path, reason) from error
    return Binary(path, code, functions, tuple(row[0] for row in rows), tuple(row[1] for row in rows))


def _is_executable(section: Section) -> bool:
    return bool(section.header.sh_flags & 4) and section.header.sh_type == "SHT_PROGBITS"


def _iterate_functions(elf: ELFFile) -> Iterator[Function]:
    """Yield the functions with code of their own, by address; of several names of one the first."""
    from elftools.elf.sections import SymbolTableSection

    found: dict[int, Function] = {}
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for symbol in section.iter_symbols():
            entry = symbol.entry
            if entry.st_info.type in ("STT_FUNC", "STT_GNU_IFUNC") and entry.st_size and entry.st_shndx != "SHN_UNDEF":
                begin = entry.st_value
                found.setdefault(begin, Function(symbol.name, begin, begin + entry.st_size))
    yield from (found[begin] for begin in sorted(found))


def _iterate_lines(elf: ELFFile) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yield where each source line begins in the code; line 0 where a sequence ends."""
    if not elf.has_dwarf_info():
        return
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is not None:
            yield from _iterate_unit_lines(unit, program)


def _iterate_unit_lines(unit: CompileUnit, program: LineProgram) -> Iterator[tuple[int, tuple[str, int]]]:
    names = [_decode_name(entry.name) for entry in program["file_entry"]]
    first = 0 if unit["version"] >= 5 else 1
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        number = state.file - first
        name = names[number] if 0 <= number < len(names) else ""
        yield state.address, (name, 0 if state.end_sequence else state.line)


def _decode_name(name: bytes | str) -> str:
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
