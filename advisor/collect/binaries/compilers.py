"""How a program was compiled: compiler, language and options of each of its sources.

From DW_AT_producer (gcc writes its options there; others where they are told to), ``-frecord-gcc-switches``
(``.GCC.command.line``), and ``.comment``, which names compilers only.
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.dwarf_units import COMP_DIR, LANGUAGE, NAME, PRODUCER

if TYPE_CHECKING:
    from advisor.collect.binaries.elf_files import ElfImage

#: Codes of DW_AT_language.
_LANGUAGES: Final[Mapping[int, str]] = {
    **dict.fromkeys((0x01, 0x02, 0x0C, 0x1D, 0x2C), "c"),
    **dict.fromkeys((0x04, 0x1A, 0x21, 0x2B), "cxx"),
    **dict.fromkeys((0x07, 0x08, 0x0E, 0x22, 0x23, 0x2D), "fortran"),
    0x1C: "rust",
    0x16: "go",
}
_FAST_MATH: Final = ("-ffast-math", "-Ofast", "-fassociative-math", "-funsafe-math-optimizations", "-fp-model=fast")
#: Compilers that write their options into DW_AT_producer, so that the absence of -O means something.
_RECORDS_OPTIONS: Final = re.compile(r"GNU (?!AS)")
#: Compilers take any number, and more than 3 for 3 (gcc's and clang's manuals), as in the makefiles of CoMD.
_LEVEL: Final = re.compile(r"-O(?:\d+|[gsz]|fast)?")
#: A source below one of these is not the user's own.


@dataclass(frozen=True, slots=True)
class SourceUnit:
    """One compiled source. ``level`` is its -O option, ``-O0`` where gcc was given none, None where not recorded."""

    file: str
    compiler: str
    language: str | None
    options: tuple[str, ...]
    level: str | None
    ranges: tuple[tuple[int, int], ...]

    @property
    def unoptimized(self) -> bool | None:
        """Whether it was compiled without optimization, None where that was not recorded."""
        return None if self.level is None else self.level in ("-O0", "-Og")

    @property
    def fast_math(self) -> bool | None:
        """Whether the compiler may reorder floating-point operations, None where its options were not recorded."""
        if any(option in _FAST_MATH or option.startswith("-fp-model=fast") for option in self.options):
            return True
        return False if self.level is not None else None

    @property
    def target(self) -> str | None:
        """The instruction set that was asked for, None for the compiler's default."""
        return next((option[7:] for option in reversed(self.options) if option.startswith("-march=")), None)


@dataclass(frozen=True, slots=True)
class Compilation:
    """The sources that a program was compiled from; ``compilers`` also names those without debug information.

    ``spans`` are begin and end of their code by address, with the place of each source in ``units``.
    """

    units: tuple[SourceUnit, ...]
    compilers: tuple[str, ...]
    spans: tuple[tuple[int, int, int], ...]

    def find_unit(self, address: int) -> SourceUnit | None:
        """Return the source that an address was compiled from, None where there is no debug information on it."""
        place = bisect_right(self.spans, address, key=lambda span: span[0]) - 1
        if place < 0 or address >= self.spans[place][1]:
            return None
        return self.units[self.spans[place][2]]


def read_compilation(image: ElfImage) -> Compilation:
    """Return how a program was compiled, as far as its file tells; raises what damaged debug information raises."""
    units = []
    recorded = _read_command_lines(image.sections.get(".GCC.command.line", b""))
    for unit in image.units:
        values = unit.root.values
        producer = unit.attribute_text(values.get(PRODUCER)) or ""
        name, folder = (unit.attribute_text(values.get(which)) or "" for which in (NAME, COMP_DIR))
        code = values.get(LANGUAGE)
        compiler, options = _split_producer(producer)
        shared = not options and bool(recorded)
        options = options or recorded
        levels = [option for option in options if _LEVEL.fullmatch(option)]
        told = bool(_RECORDS_OPTIONS.match(producer)) or bool(options)
        if shared and len(set(levels)) > 1:  # of several sources: whose is whose is not known
            levels, told = [], False
        units.append(
            SourceUnit(
                file=name if name.startswith("/") or not folder else f"{folder}/{name}",
                compiler=compiler,
                language=_LANGUAGES.get(code.raw) if code is not None and isinstance(code.raw, int) else None,
                options=options,
                level=_normalize_level(levels[-1]) if levels else "-O0" if told else None,
                ranges=tuple(unit.code_ranges(values)),
            )
        )
    comment = image.sections.get(".comment", b"").split(b"\0")
    named = [text.decode("utf-8", "replace").strip() for text in comment if text.strip()]
    spans = sorted((begin, end, number) for number, unit in enumerate(units) for begin, end in unit.ranges)
    return Compilation(tuple(units), tuple(dict.fromkeys(named)), tuple(spans))


def _normalize_level(option: str) -> str:
    if option == "-O":
        return "-O1"
    return f"-O{min(int(option[2:]), 3)}" if option[2:].isdigit() else option


def _split_producer(producer: str) -> tuple[str, tuple[str, ...]]:
    """Return compiler with version, and the options that it was given."""
    at = producer.find(" -")
    compiler, text = (producer, "") if at < 0 else (producer[:at], producer[at + 1 :])
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return compiler.strip(), tuple(word for word in words if word.startswith("-"))


def _read_command_lines(section: bytes) -> tuple[str, ...]:
    """Return the options that -frecord-gcc-switches (gcc) and -frecord-command-line (clang) keep, of all sources."""
    text = section.replace(b"\0", b" ").decode("utf-8", "replace")
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return tuple(dict.fromkeys(word for word in words if word.startswith("-") and len(word) > 1))
