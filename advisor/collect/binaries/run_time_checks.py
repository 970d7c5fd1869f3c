"""Loops that test what assertions, bounds checks and debug modes ask for, and end in a report if it fails."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.disassembly import disassemble
from advisor.trace.library_functions import classify_library_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from advisor.collect.binaries.disassembly import Instruction
    from advisor.collect.binaries.elf_files import ElfImage
    from advisor.collect.binaries.loop_records import InnerLoop
    from advisor.trace.library_functions import LibraryKind

#: So many bytes of code put together what the report of a failed check says, and call for it.
_REPORT_B: Final = 64
#: With its comparison a check is two instructions: where fewer are checks, the others take the time.
_TESTING: Final = 0.05


def calls_kind(image: ElfImage, targets: Iterable[int | None], kind: LibraryKind) -> bool:
    """Return whether one of the functions that are called is of a kind."""
    return any(classify_library_function(name) == kind for name in image.name_functions(targets))


def tests_much(image: ElfImage, code: Sequence[Instruction], loop: InnerLoop) -> bool:
    """Return whether much of a loop tests what ends in the report of a failed check, which stands behind the function.

    Where it works with vectors all the same, the checks have prevented nothing; where it waits for divisions or for
    memory, they go on meanwhile.
    """
    if loop.is_vector or loop.divides or loop.streams:
        return False
    exits = Counter(one.target for one in code if loop.begin <= one.address < loop.end and one.jumps)
    tests = sum(
        count
        for target, count in exits.items()
        if target is not None and not loop.begin <= target < loop.end and _reports_check(image, target)
    )
    return tests >= _TESTING * loop.instructions


def _reports_check(image: ElfImage, begin: int) -> bool:
    """Return whether code does nothing but report a failed check."""
    ends = (one for one in disassemble(image, begin, begin + _REPORT_B) if one.mnemonic in ("call", "ret", "jmp"))
    first = next(ends, None)
    return first is not None and first.mnemonic == "call" and calls_kind(image, (first.target,), "check")
