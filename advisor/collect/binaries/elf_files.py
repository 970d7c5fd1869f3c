"""ELF files: sections, functions by address, stubs of the dynamic linker, and where the debug information is.

Symbol tables are decoded as arrays: a program of 50 MB has some 10^5 symbols.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Final

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection

from advisor.collect.binaries.dwarf_units import Unit, read_units
from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

_LARGEST_B: Final = 2 << 30
_DEBUG_ROOT: Final = Path("/usr/lib/debug")
_EXECUTABLE: Final = 0x4
_STT_FUNC, _STT_IFUNC = 2, 10
#: ``jmp [rip + offset]``, on some processors behind ``endbr64`` and with a ``bnd`` prefix.
_STUB_JUMP: Final = re.compile(rb"\xff\x25(....)", re.DOTALL)
_STUB_SECTIONS: Final = (".plt", ".plt.sec", ".plt.got")
_PLAIN, _LARGE = ("<u4", "u1", "u1", "<u2", "<u8", "<u8"), ("<u4", "<u4", "<u4", "u1", "u1", "<u2")
_NAMES: Final = ("name", "info", "other", "section", "value", "size")
_SYMBOL64: Final = np.dtype(list(zip(_NAMES, _PLAIN, strict=True)))
_SYMBOL32: Final = np.dtype(list(zip(("name", "value", "size", "info", "other", "section"), _LARGE, strict=True)))


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function of the symbol table: its readable name, and where its code begins and ends."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class ElfImage:
    """What is needed of an ELF file; ``sections`` holds the contents by name, ``.zdebug`` and compressed ones unpacked.

    ``segments`` are the loaded parts: offset in the file, address, size in the file. ``machine`` is the architecture
    in pyelftools' words (``EM_X86_64``); ``debug_link`` names the file that debug information was split off to.
    """

    path: Path
    machine: str
    bits: int
    little_endian: bool
    segments: tuple[tuple[int, int, int], ...]
    code: tuple[tuple[int, bytes], ...]
    sections: Mapping[str, bytes]
    functions: tuple[Symbol, ...]
    stubs: Mapping[int, str]
    has_symbol_table: bool
    build_id: str | None
    debug_link: str | None

    @property
    def has_debug_info(self) -> bool:
        """Whether the file itself holds DWARF."""
        return bool(self.sections.get(".debug_info"))

    @cached_property
    def is_linked_fast(self) -> bool:
        """Whether it was linked with -ffast-math or -Ofast: gcc adds code that sets the mode of the processor."""
        return any(one.name == "set_fast_math" for one in self.functions)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The compilation units of its debug information, none where it has none that can be read.

        Raises what damaged debug information raises (``dwarf_units.DAMAGE``).
        """
        return tuple(read_units(self.sections)) if self.has_debug_info and self.little_endian else ()

    def find_function(self, address: int) -> Symbol | None:
        """Return the function that holds an address, None where the symbol table names none."""
        place = bisect_right(self.functions, address, key=lambda one: one.begin) - 1
        if place < 0 or address >= self.functions[place].end:
            return None
        return self.functions[place]

    def name_functions(self, addresses: Iterable[int | None]) -> Iterator[str]:
        """Yield the names of functions at addresses, in the program or in libraries; nothing where none is known."""
        for address in addresses:
            if address is None:
                continue
            if address in self.stubs:
                yield self.stubs[address]
            elif (symbol := self.find_function(address)) is not None:
                yield symbol.name

    def read_code(self, begin: int, end: int) -> bytes:
        """Return the bytes of a piece of code, empty where the file does not hold them."""
        for address, data in self.code:
            if address <= begin and end <= address + len(data):
                return data[begin - address : end - address]
        return b""

    def to_address(self, file_offset: int) -> int | None:
        """Return the address, as linked, of a place in the file; None for one that is not loaded."""
        for offset, address, size in self.segments:
            if offset <= file_offset < offset + size:
                return file_offset - offset + address
        return None


def read_elf(path: Path) -> ElfImage:
    """Return what the program or library at ``path`` holds; raises ``InputError`` for what is no ELF file."""
    content = read_limited(path, _LARGEST_B)
    try:
        if content[:4] != b"\x7fELF":
            raise InputError(path, "is not an executable file (ELF)")
        return _read_image(path, ELFFile(BytesIO(content)))
    except (ELFError, AssertionError, ValueError, KeyError, IndexError, zlib.error) as error:
        raise InputError(path, f"is damaged: {str(error) or type(error).__name__}") from error


def _read_image(path: Path, elf: ELFFile) -> ElfImage:
    sections = {section.name: section for section in elf.iter_sections()}
    tables = [section for section in sections.values() if section["sh_type"] in ("SHT_SYMTAB", "SHT_DYNSYM")]
    relocations = _relocated_symbols(elf, sections)
    code = tuple((one["sh_addr"], one.data()) for one in sections.values() if _is_code(one))
    return ElfImage(
        path=path,
        machine=str(elf["e_machine"]),
        bits=elf.elfclass,
        little_endian=elf.little_endian,
        segments=tuple(
            (one["p_offset"], one["p_vaddr"], one["p_filesz"])
            for one in elf.iter_segments()
            if one["p_type"] == "PT_LOAD"
        ),
        code=code,
        sections=dict(_useful_contents(sections)),
        functions=_merge_symbols([one for table in tables for one in read_symbols(elf, table)], code),
        stubs=_find_stubs(sections, relocations) if elf["e_machine"] == "EM_X86_64" else {},
        has_symbol_table=any(table["sh_type"] == "SHT_SYMTAB" for table in tables),
        build_id=_read_build_id(sections),
        debug_link=_read_debug_link(sections),
    )


def _is_code(section: Section) -> bool:
    return bool(section["sh_flags"] & _EXECUTABLE) and section["sh_type"] == "SHT_PROGBITS"


def _useful_contents(sections: Mapping[str, Section]) -> Iterator[tuple[str, bytes]]:
    """Yield the sections of debug information and what compilers leave about themselves, unpacked."""
    for name, section in sections.items():
        if section["sh_type"] == "SHT_NOBITS":
            continue
        if name.startswith(".zdebug_"):
            data = section.data()
            yield "." + name[2:], zlib.decompress(data[12:]) if data[:4] == b"ZLIB" else data
        elif name.startswith(".debug_") or name in (".comment", ".GCC.command.line"):
            yield name, section.data()


def read_symbols(elf: ELFFile, table: Section) -> Iterator[tuple[int, int, str]]:
    """Yield begin, size and mangled name of the functions that a symbol table defines."""
    data, names = table.data(), elf.get_section(table["sh_link"]).data()
    kind = _SYMBOL64 if elf.elfclass == 64 else _SYMBOL32
    order = kind if elf.little_endian else kind.newbyteorder(">")
    rows = np.frombuffer(data[: len(data) - len(data) % order.itemsize], order)
    types = rows["info"] & 15
    rows = rows[((types == _STT_FUNC) | (types == _STT_IFUNC)) & (rows["section"] != 0)]
    for name, begin, size in zip(rows["name"].tolist(), rows["value"].tolist(), rows["size"].tolist(), strict=True):
        text = names[name : names.find(b"\0", name)].decode("utf-8", "replace")
        yield begin, size, text.partition("@")[0]


def _merge_symbols(found: Sequence[tuple[int, int, str]], code: Sequence[tuple[int, bytes]]) -> tuple[Symbol, ...]:
    """Return the functions by address, of several names of one address the first.

    Those without a size, written in assembler, reach to the next one or to the end of their section.
    """
    by_begin: dict[int, tuple[int, str]] = {}
    for begin, size, name in found:
        if begin not in by_begin or (size and not by_begin[begin][0]):
            by_begin[begin] = (size, name)
    begins = sorted(by_begin)
    merged = []
    for begin, following in zip_longest(begins, begins[1:]):
        size, name = by_begin[begin]
        section = next((at + len(data) for at, data in code if at <= begin < at + len(data)), begin)
        limit = section if following is None else min(section, following)
        merged.append(Symbol(name, begin, begin + size if size else limit))
    return tuple(merged)


def _relocated_symbols(elf: ELFFile, sections: Mapping[str, Section]) -> dict[int, str]:
    """Return the symbols that the dynamic linker puts into the table of addresses, by the place in it."""
    found = {}
    for name in (".rela.plt", ".rela.dyn"):
        section = sections.get(name)
        if section is None or elf.elfclass != 64 or section["sh_type"] != "SHT_RELA":
            continue
        symbols = elf.get_section(section["sh_link"])
        if not isinstance(symbols, SymbolTableSection):
            continue
        count = symbols.num_symbols()
        rows = np.frombuffer(section.data(), np.dtype([("place", "<u8"), ("info", "<u8"), ("add", "<i8")]))
        for place, number in zip(rows["place"].tolist(), (rows["info"] >> 32).tolist(), strict=True):
            if 0 < number < count:
                found[place] = symbols.get_symbol(number).name
    return found


def _find_stubs(sections: Mapping[str, Section], relocated: Mapping[int, str]) -> dict[int, str]:
    """Return the functions of other libraries by the addresses of the stubs through which they are called (x86-64)."""
    stubs: dict[int, str] = {}
    for name in _STUB_SECTIONS:
        section = sections.get(name)
        if section is None:
            continue
        begin, data, size = section["sh_addr"], section.data(), 8 if name == ".plt.got" else 16
        for found in _STUB_JUMP.finditer(data):
            slot = begin + found.end() + int.from_bytes(found[1], "little", signed=True)
            if slot in relocated:
                entry = found.start() // size * size
                stubs[begin + entry] = relocated[slot]
    return stubs


def _read_build_id(sections: Mapping[str, Section]) -> str | None:
    section = sections.get(".note.gnu.build-id")
    data = section.data() if section is not None else b""
    return data[16:].hex() or None


def _read_debug_link(sections: Mapping[str, Section]) -> str | None:
    section = sections.get(".gnu_debuglink")
    if section is None:
        return None
    return section.data().partition(b"\0")[0].decode("utf-8", "replace") or None


def find_debug_file(image: ElfImage) -> Path | None:
    """Return the file that the debug information of a stripped program was split off to, where it is at hand.

    By build id below /usr/lib/debug, else by the name that the program gives, where GDB looks for it.
    """
    places = []
    if image.build_id:
        places.append(_DEBUG_ROOT / ".build-id" / image.build_id[:2] / f"{image.build_id[2:]}.debug")
    if image.debug_link:
        folder = image.path.resolve().parent
        relative = folder.relative_to(folder.anchor)
        name = image.debug_link
        places += [folder / name, folder / ".debug" / name, _DEBUG_ROOT / relative / name]
    return next((place for place in places if place.is_file() and place != image.path), None)
