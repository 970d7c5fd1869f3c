"""In which function, of which file, the executed instructions lie."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor_similarity.elf import FunctionSymbols, read_functions
from advisor_similarity.steps import COARSE_OF, GATHER, UNKNOWN, Template

if TYPE_CHECKING:
    from advisor_similarity.images import Image, MemoryMapping

#: Code that no file holds: compiled while the program ran.
GENERATED: Final = "generated code"
#: Code of a library that was gone when the program ended.
UNLOADED: Final = "unloaded code"


@dataclass(slots=True)
class ExecutedFunction:
    """A function: its executed instructions and their operations by component (6,), unknown ones last."""

    name: str
    file: str
    instructions: int = 0
    operations: list[int] = field(default_factory=lambda: [0] * (UNKNOWN + 1))


def collect_functions(image: Image, templates: Sequence[Template]) -> list[ExecutedFunction]:
    """Return the functions that ran, the one with most instructions first."""
    known: dict[str, FunctionSymbols] = {}
    found: dict[tuple[str, str], ExecutedFunction] = {}
    mixes = [_component_mix(template) for template in templates]
    for index, count in _sum_block_counts(image).items():
        block = image.blocks[index]
        name, file = _find_function(block.address, image.mappings, known)
        place = found.setdefault((name, file), ExecutedFunction(name, file))
        place.instructions += count * len(block.templates)
        for number in block.templates:
            for component, operations in mixes[number]:
                place.operations[component] += count * operations
    return sorted(found.values(), key=lambda place: -place.instructions)


def is_stripped(path: Path) -> bool:
    """Return whether the file has lost its table of symbols."""
    return read_functions(path).stripped


def count_fine_classes(image: Image, templates: Sequence[Template], classes: int) -> list[int]:
    """Return how many operations of each fine class ran."""
    ran = [0] * len(templates)
    for index, count in _sum_block_counts(image).items():
        for number in image.blocks[index].templates:
            ran[number] += count
    totals = [0] * classes
    for template, count in zip(templates, ran, strict=True):
        for step in template.steps:
            totals[step.fine] += count
    return totals


def count_unknown(image: Image, templates: Sequence[Template]) -> dict[str, int]:
    """Return how often instructions ran that the disassembler or the table of classes does not know."""
    ran: dict[str, int] = defaultdict(int)
    for index, count in _sum_block_counts(image).items():
        for number in image.blocks[index].templates:
            if not templates[number].is_known:
                ran[templates[number].mnemonic] += count
    return dict(ran)


def count_rewritten(image: Image) -> int:
    """Return at how many addresses other instructions were executed later on: code that modifies itself, or a JIT."""
    first: dict[int, tuple[int, ...]] = {}
    changed: set[int] = set()
    for block in image.blocks.values():
        before = first.setdefault(block.address, block.templates)
        if any(old != new for old, new in zip(before, block.templates, strict=False)):
            changed.add(block.address)
    return len(changed)


def _sum_block_counts(image: Image) -> dict[int, int]:
    totals: dict[int, int] = defaultdict(int)
    for stream in image.streams:
        for index, count in stream.counts.items():
            totals[index] += count
    return totals


def _component_mix(template: Template) -> list[tuple[int, int]]:
    components: dict[int, int] = defaultdict(int)
    for step in template.steps:
        if step.kind < GATHER:
            components[COARSE_OF[step.fine]] += 1
    return list(components.items())


def _find_function(
    address: int, mappings: Sequence[MemoryMapping], known: dict[str, FunctionSymbols]
) -> tuple[str, str]:
    mapped = next((part for part in mappings if part.start <= address < part.end), None)
    if mapped is None:
        return UNLOADED, ""
    if not mapped.path.startswith("/"):
        return (mapped.path, "") if mapped.path == "[vdso]" else (GENERATED, "")
    if mapped.path not in known:
        known[mapped.path] = read_functions(Path(mapped.path))
    name = known[mapped.path].find_name(address - mapped.start + mapped.offset)
    file = Path(mapped.path).name
    return (name or f"in {file}"), file
