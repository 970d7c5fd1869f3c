"""The static arrays of a program, from its symbols and DWARF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elftools.common.exceptions import ELFError
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE, AttributeValue

#: Debug information beyond this size is not searched for types of variables.
_LARGEST_B: Final = 64 << 20
_FORTRAN: Final = frozenset({0x07, 0x08, 0x0E, 0x22, 0x23})
_PEELED: Final = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_atomic_type")


@dataclass(frozen=True, slots=True)
class DataObject:
    """Memory with a name: its address in the run, its bytes, what is known of its shape.

    ``row_B`` are the bytes of a row and ``element_B`` those of an item, 0 where they are not known. It ``overlaps``
    where others had some of its memory before or after it.
    """

    name: str
    address: int
    size: int
    row_B: int = 0
    element_B: int = 0
    allocated: bool = False
    overlaps: bool = False

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.address + self.size


def read_static_objects(path: Path) -> list[DataObject]:
    """Return the static variables of a program that are no smaller than a word, addresses as linked."""
    try:
        content = path.read_bytes()
        elf = ELFFile(BytesIO(content))
        writable = {
            number
            for number, section in enumerate(elf.iter_sections())
            if section["sh_flags"] & 1 and section.name not in (".got", ".got.plt", ".dynamic")
        }
        found: dict[int, DataObject] = {}
        for section in elf.iter_sections():
            if isinstance(section, SymbolTableSection) and section["sh_type"] == "SHT_SYMTAB":
                for symbol in section.iter_symbols():
                    # a name with a version is a library's, of which the program holds a copy, such as std::cout
                    inside = symbol["st_shndx"] in writable and "@" not in symbol.name
                    if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_size"] >= 4 and inside:
                        name = _plain_name(symbol.name)
                        found[symbol["st_value"]] = DataObject(name, symbol["st_value"], symbol["st_size"])
        typed = list(_read_types(elf)) if elf.has_dwarf_info() else []
    except (ELFError, OSError, ValueError, KeyError, AssertionError):
        return []
    for one in typed:
        if one.address in found:
            known = found[one.address]
            found[one.address] = replace(one, size=known.size, name=one.name or known.name)
    return [one for one in found.values() if not one.name.startswith(("__", "_IO", "completed"))]


def _plain_name(name: str) -> str:
    """Return the name that the source has: of a Fortran module or of a static variable in a function."""
    if name.startswith("__") and "_MOD_" in name:
        name = name.partition("_MOD_")[2]
    return re.sub(r"\.\d+$", "", name)


def _read_types(elf: ELFFile) -> Iterator[DataObject]:
    """Yield the variables with a fixed address: name, address, and the shape that their types tell."""
    if (section := elf.get_section_by_name(".debug_info")) is None or section.data_size > _LARGEST_B:
        return
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        top = unit.get_top_DIE()
        language = top.attributes.get("DW_AT_language")
        fortran = language is not None and language.value in _FORTRAN
        parser = DWARFExprParser(unit.structs)
        for die in _iterate_variables(top):
            place = die.attributes.get("DW_AT_location")
            if place is None or place.form not in ("DW_FORM_exprloc", "DW_FORM_block1"):
                continue
            steps = parser.parse_expr(place.value)
            if len(steps) == 1 and steps[0].op_name == "DW_OP_addr":
                name = die.attributes.get("DW_AT_name") or _origin_name(die)
                text = name.value.decode("utf-8", "replace") if name is not None else ""
                row_B, element_B = _describe_shape(die, fortran)
                yield DataObject(_plain_name(text), steps[0].args[0], 0, row_B, element_B)


def _iterate_variables(top: DIE) -> Iterator[DIE]:
    waiting = [top]
    while waiting:
        for die in waiting.pop().iter_children():
            if die.tag == "DW_TAG_variable":
                yield die
            elif die.tag in ("DW_TAG_subprogram", "DW_TAG_lexical_block", "DW_TAG_module", "DW_TAG_namespace"):
                waiting.append(die)


def _origin_name(die: DIE) -> AttributeValue | None:
    for reference in ("DW_AT_specification", "DW_AT_abstract_origin"):
        if reference in die.attributes:
            return die.get_DIE_from_attribute(reference).attributes.get("DW_AT_name")
    return None


def _describe_shape(die: DIE, fortran: bool) -> tuple[int, int]:
    """Return the bytes of a row and of an item: of a structure's array a row is a structure, else the fastest index."""
    kind = _peel_type(die)
    sides: list[int] = []
    while kind is not None and kind.tag == "DW_TAG_array_type":
        sides += [_count_range(one) for one in kind.iter_children() if one.tag == "DW_TAG_subrange_type"]
        kind = _peel_type(kind)
    element = _size_of(kind)
    if not sides or not element or kind is None:
        return 0, element
    if kind.tag in ("DW_TAG_structure_type", "DW_TAG_class_type"):
        members = [_size_of(_peel_type(one)) for one in kind.iter_children() if one.tag == "DW_TAG_member"]
        smallest = min((size for size in members if size), default=element)
        return element, smallest if element % smallest == 0 else element
    fastest = sides[0] if fortran else sides[-1]
    return (element * fastest if len(sides) > 1 else 0), element


def _peel_type(die: DIE) -> DIE | None:
    """Return the type of an entry without its names and qualifiers."""
    while "DW_AT_type" in die.attributes:
        die = die.get_DIE_from_attribute("DW_AT_type")
        if die.tag not in _PEELED:
            return die
    return None


def _count_range(die: DIE) -> int:
    if "DW_AT_count" in die.attributes:
        return int(die.attributes["DW_AT_count"].value)
    upper, lower = die.attributes.get("DW_AT_upper_bound"), die.attributes.get("DW_AT_lower_bound")
    if upper is None or not isinstance(upper.value, int):
        return 0
    begin = lower.value if lower is not None and isinstance(lower.value, int) else 0
    unit = die.cu.get_top_DIE().attributes.get("DW_AT_language")
    if lower is None and unit is not None and unit.value in _FORTRAN:
        begin = 1
    return int(upper.value) - begin + 1


def _size_of(kind: DIE | None) -> int:
    size = kind.attributes.get("DW_AT_byte_size") if kind is not None else None
    return int(size.value) if size is not None and isinstance(size.value, int) else 0
