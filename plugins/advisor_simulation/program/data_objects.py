"""The arrays of a program: static ones from its symbols and DWARF, allocated ones from where they were allocated.

An allocated array is called what the line of the source that allocates it assigns to, or else by function and line.
"""

from __future__ import annotations

import itertools
import keyword
import re
from collections import Counter
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elftools.common.exceptions import ELFError
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from advisor.collect.binaries.addresses import resolve_addresses
from advisor.support.system_sources import is_system_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from elftools.dwarf.die import DIE, AttributeValue

    from advisor.collect.binaries.addresses import Frame
    from advisor.collect.binaries.elf_files import ElfImage
    from advisor_simulation.program.address_trace import TracedProcess

ALLOCATE, CALLERS = 1, 7
#: Debug information beyond this size is not searched for types of variables.
_LARGEST_B: Final = 64 << 20
_FORTRAN: Final = frozenset({0x07, 0x08, 0x0E, 0x22, 0x23})
_PEELED: Final = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_atomic_type")
_ASSIGNED: Final = re.compile(r"(\w+)\s*\)?\s*(?:\[[^\]]*\]\s*)*=(?!=)")
_ALIGNED: Final = re.compile(r"posix_memalign\s*\(\s*(?:\([\w\s*]+\)\s*)?&?\s*(\w+)")
_CONSTRUCTED: Final = re.compile(r"(?:>|\bauto)\s*&?\s*(\w+)\s*[({]|,\s*(\w+)\s*[({]")
_ALLOCATED: Final = re.compile(r"\ballocate\s*\((.*)\)", re.IGNORECASE)
_FORTRAN_NAME: Final = re.compile(r"(?:^|,)\s*([\w%]+)\s*\(")


@dataclass(frozen=True, slots=True)
class DataObject:
    """Memory with a name: its address in the run, its bytes, what is known of its shape.

    ``row_B`` are the bytes of a row and ``element_B`` those of an item, 0 where they are not known.
    """

    name: str
    address: int
    size: int
    row_B: int = 0
    element_B: int = 0
    allocated: bool = False

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.address + self.size


def find_objects(image: ElfImage, process: TracedProcess, source: Path | None = None) -> tuple[DataObject, ...]:
    """Return the arrays of a process by address; of several allocations of one place the last counts."""
    found = [replace(one, address=one.address + process.base) for one in read_static_objects(image.path)]
    found += name_allocations(image, process, source)
    unique: dict[str, int] = {}
    named = []
    for one in sorted(found, key=lambda one: (-one.size, one.address)):  # the plain name goes to the largest
        if keyword.iskeyword(one.name):  # the expressions of models have their words from Python
            one = replace(one, name=f"{one.name}_")
        count = unique.get(one.name, 0)
        unique[one.name] = count + 1
        named.append(replace(one, name=f"{one.name}_{count + 1}") if count else one)
    return tuple(sorted(named, key=lambda one: one.address))


def name_allocations(image: ElfImage, process: TracedProcess, source: Path | None) -> list[DataObject]:
    """Return what a process allocated, as it lay at the end: later allocations replace those that they overlap."""
    live: list[tuple[int, int, list[int]]] = []
    for thread in process.threads:
        for _, _, kind, address, size, caller in thread.told.tolist():
            if kind == ALLOCATE:
                live = [one for one in live if one[0] + one[1] <= address or address + size <= one[0]]
                live.append((address, size, [caller]))
            elif kind == CALLERS and live:
                live[-1][2].extend((address, size, caller))
    callers = {at - process.base - 1 for _, _, frames in live for at in frames if at > process.base}
    wanted = sorted(callers)
    places = dict(zip(wanted, resolve_addresses(image.path, wanted).places, strict=True))
    known: Counter[tuple[str | None, int | None, str]] = Counter()
    found = []
    for address, size, frames in live:
        named = [places[at - process.base - 1] for at in frames if at - process.base - 1 in places]
        inside = [at for at in frames if image.find_function(at - process.base - 1) is not None]
        if not inside:
            continue  # an allocation of a library is none of the program's arrays
        place = _choose_frame([frame for one in named for frame in one.frames], source)
        known[place] += 1
        file, line, function = place
        name = _allocated_name(_find_source(file, source), line, known[place] - 1, function)
        found.append(DataObject(name, address, size, allocated=True))
    return found


def _choose_frame(frames: Sequence[Frame], source: Path | None) -> tuple[str | None, int | None, str]:
    """Return file, line and function of the innermost caller that is the program's own and allocates for itself."""
    own = [frame for frame in frames if frame.file is not None and not is_system_source(frame.file)]
    while len(own) > 1 and _hands_on(own[0], source):
        own = own[1:]
    chosen = own[0] if own else next(iter(frames), None)
    return (chosen.file, chosen.line, chosen.function or "") if chosen is not None else (None, None, "")


def _hands_on(frame: Frame, source: Path | None) -> bool:
    """Return whether what a line allocates is returned, there or below: its function only wraps ``malloc``."""
    file = _find_source(frame.file, source)
    if file is None or not frame.line:
        return False
    text = _read_line(file, frame.line)
    if re.search(r"\breturn\b", text):
        return True
    names = _ALIGNED.findall(text) or [name for name in _ASSIGNED.findall(text) if "[" not in text.partition("=")[0]]
    below = itertools.takewhile(lambda line: not line.startswith("}"), _read_lines(file)[frame.line :])
    returned = [re.search(r"\breturn\s*\(?\s*(?:\([\w\s*]+\)\s*)?(\w+)\s*\)?\s*;", line) for line in below]
    return any(one is not None and one[1] in names for one in returned)


def _find_source(file: str | None, folder: Path | None) -> Path | None:
    """Return a file of the source, from the folder of sources where it is not at its own place."""
    if file is None or Path(file).is_file() or folder is None:
        return Path(file) if file else None
    return next((path for path in sorted(folder.rglob(Path(file).name)) if path.is_file()), None)


def _allocated_name(file: Path | None, line: int | None, turn: int, function: str) -> str:
    """Return what the line of the source assigns an allocation to, the ``turn``-th of that line."""
    text = _read_line(file, line) if file and line else ""
    allocated = _ALLOCATED.search(text)
    if allocated is not None:
        names = [name.rpartition("%")[2] for name in _FORTRAN_NAME.findall(allocated[1])]
    else:
        names = [one[0] or one[1] for one in _CONSTRUCTED.findall(text) if one[0] or one[1]] if "<" in text else []
        names = _ALIGNED.findall(text) or _ASSIGNED.findall(text) or names
    if names:
        return str(names[turn % len(names)])
    plain = re.sub(r"\W+", "_", function).strip("_")
    return f"{plain}_{line}" if line else plain


def _read_lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _read_line(file: Path, line: int) -> str:
    lines = _read_lines(file)
    text = lines[line - 1] if line <= len(lines) else ""
    while text.rstrip().endswith("&") and line < len(lines):  # a statement of Fortran goes on
        text, line = text.rstrip()[:-1] + lines[line].lstrip(" &"), line + 1
    return text


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
