"""Addresses of an executable file -> functions, source lines and inlined frames.

found = resolve_addresses(Path("./solver"), [0x1234, 0x1250])
found.places[0].frames[0]       # Frame(function="relax", file="/home/me/solver.c", line=41)
found.missing                   # what the file does not tell, in words, such as "… has no debug information …"
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from advisor.collect.binaries.demangling import demangle
from advisor.collect.binaries.dwarf_units import DAMAGE, DWO_NAME, GNU_DWO_NAME
from advisor.collect.binaries.elf_files import find_debug_file, read_elf
from advisor.collect.binaries.inlined_frames import find_scopes, name_scope
from advisor.collect.binaries.line_tables import read_line_table
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from advisor.collect.binaries.dwarf_units import Unit
    from advisor.collect.binaries.elf_files import ElfImage


@dataclass(frozen=True, slots=True)
class Frame:
    """A function and the place in it, as far as the file tells; ``file`` is the path as the compiler saw it."""

    function: str | None
    file: str | None = None
    line: int | None = None
    column: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Place:
    """What one address is: its frames, the innermost inlined function first, the one that holds the code last."""

    address: int | None
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """The places of all addresses in the order in which they were asked for, and what the file does not tell."""

    places: tuple[Place, ...]
    missing: tuple[str, ...]


def resolve_addresses(
    binary: Path, offsets: Iterable[int], *, kind: Literal["address", "file offset"] = "address"
) -> Resolution:
    """Return where addresses of a program or library stand in its source.

    ``offsets`` are addresses as linked, as symbol tables show them: what was sampled less the address to which the
    file was loaded (``dlpi_addr`` of ``dl_iterate_phdr``, 0 for programs at fixed addresses). Of kind ``file offset``
    they are places in the file: what was sampled less the beginning of its line in /proc/PID/maps plus the offset
    there. Return addresses of calls have to be lowered by one before. Raises ``InputError`` for what is no ELF file.
    """
    image = read_elf(binary)
    asked = [int(offset) for offset in offsets]
    if kind == "file offset":
        addresses: list[int | None] = [image.to_address(offset) for offset in asked]
    else:
        addresses = list(asked)
    wanted = sorted({address for address in addresses if address is not None})
    found, missing = _resolve_sorted(image, wanted)
    nowhere = Place(None, (Frame(None),))
    return Resolution(tuple(nowhere if one is None else found[one] for one in addresses), tuple(missing))


def find_lines(image: ElfImage, addresses: Iterable[int]) -> dict[int, tuple[str | None, int | None]]:
    """Return file and line of addresses, without the functions; raises what damaged debug information raises."""
    found = {}
    for unit, inside in group_by_unit(image.units, sorted(set(addresses))):
        table = read_line_table(unit)
        found.update({address: table.find_line(address) for address in inside})
    return found


def find_frame_names(image: ElfImage, addresses: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """Return the names of the functions around addresses, inlined ones too; raises as ``find_lines``."""
    found: dict[int, tuple[str, ...]] = {}
    for unit, inside in group_by_unit(image.units, sorted(set(addresses))):
        for address, scopes in find_scopes(unit, inside).items():
            found[address] = tuple(name for scope in scopes if (name := name_scope(scope, image.units)) is not None)
    return found


def _resolve_sorted(image: ElfImage, wanted: Sequence[int]) -> tuple[dict[int, Place], list[str]]:
    missing: dict[str, None] = {}
    debug = _open_debug_info(image, missing)
    frames: dict[int, tuple[Frame, ...]] = {}
    if debug is not None:
        try:
            frames = _resolve_by_dwarf(debug, wanted, missing)
        except DAMAGE as error:
            missing[f"the debug information of {debug.path} is damaged ({error}); functions are from symbols"] = None
    found = {}
    for address in wanted:
        own = frames.get(address, ())
        place = own[-1] if own else Frame(None)
        if place.function is None or "(" not in place.function:
            name = _name_outermost(place.function, _name_by_symbol(image, debug, address))
            own = (*own[:-1], Frame(name, place.file, place.line, place.column))
        found[address] = Place(address, own)
    return found, list(missing)


def _name_outermost(told: str | None, symbol: str | None) -> str | None:
    """Return the name of the function that holds the code: C++ compilers leave out mangled names of local functions."""
    if told is None or symbol is None:
        return told or symbol
    return symbol if f"{told}(" in symbol else told


def _name_by_symbol(image: ElfImage, debug: ElfImage | None, address: int) -> str | None:
    for each in (image, debug):
        symbol = each.find_function(address) if each is not None else None
        if symbol is not None:
            return demangle(symbol.name)
    stub = image.stubs.get(address & ~15, image.stubs.get(address & ~7))
    return f"{demangle(stub)}@plt" if stub else None


def _open_debug_info(image: ElfImage, missing: dict[str, None]) -> ElfImage | None:
    """Return the file that holds the debug information, the program itself or one beside it; None without any."""
    if not image.little_endian:
        missing["debug information is only read of little-endian processors"] = None
        return None
    if image.has_debug_info:
        return image
    name, split = image.path.name, find_debug_file(image)
    if split is not None:
        try:
            debug = read_elf(split)
        except InputError as error:
            missing[f"its debug information can't be read: {error}"] = None
        else:
            if debug.has_debug_info and (image.build_id is None or debug.build_id in (image.build_id, None)):
                return debug
            missing[f"{split} is the debug information of another build of {name}"] = None
    elif image.debug_link:
        missing[f"its debug information was split off to {image.debug_link}, which is not at hand"] = None
    table = "its symbol table" if image.has_symbol_table else "the symbols that it exports: it is stripped"
    missing[f"{name} has no debug information (compile with -g): no lines, and functions only from {table}"] = None
    return None


def _resolve_by_dwarf(image: ElfImage, wanted: Sequence[int], missing: dict[str, None]) -> dict[int, tuple[Frame, ...]]:
    found: dict[int, tuple[Frame, ...]] = {}
    for unit, addresses in group_by_unit(image.units, wanted):
        split = unit.attribute_text(unit.root.values.get(DWO_NAME, unit.root.values.get(GNU_DWO_NAME)))
        if split:
            missing[f"inlined functions are in {split}, which is not read (compiled with -gsplit-dwarf)"] = None
        table = read_line_table(unit)
        scopes = find_scopes(unit, addresses)
        names: dict[int, str | None] = {}
        for address in addresses:
            chain = scopes.get(address, [])
            frames = []
            file, line = table.find_line(address)
            column = table.find_column(address)
            for scope in reversed(chain):
                key = id(scope.values)
                if key not in names:
                    names[key] = name_scope(scope, image.units)
                frames.append(Frame(names[key], file, line, column))
                file, line = table.file_name(scope.call_file), scope.call_line or None
                column = scope.call_column or None
            found[address] = tuple(frames) or (Frame(None, file, line, column),)
    return found


def group_by_unit(units: Sequence[Unit], wanted: Sequence[int]) -> Iterator[tuple[Unit, list[int]]]:
    """Yield the units that hold some of the sorted addresses, with these."""
    left = set(wanted)
    for unit in units:
        if not left:
            return
        ranges = unit.code_ranges(unit.root.values)
        inside = [
            address
            for begin, end in ranges
            for address in wanted[bisect_left(wanted, begin) : bisect_left(wanted, end)]
            if address in left
        ]
        if inside:
            left.difference_update(inside)
            yield unit, sorted(set(inside))
