"""Regions that are functions without a symbol of their own, as they were inlined: found by their lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from advisor.collect.binaries.addresses import group_by_unit
from advisor.collect.binaries.line_tables import read_file_names, read_line_table
from advisor.support.outlined_functions import is_outlined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from advisor.collect.binaries.dwarf_units import Unit
    from advisor.collect.binaries.elf_files import ElfImage, Symbol
    from advisor.collect.binaries.hot_functions import FunctionCode
    from advisor.model.records import Region

#: The code of one line: from an address up to another.
Span = tuple[int, int]


def find_line_spans(
    image: ElfImage, regions: Mapping[int, Region], sampled: Iterable[int] = ()
) -> dict[int, list[Span]]:
    """Return the code of the line of each region, by number; raises what damaged debug information raises.

    Of a region that has code in sources with ``sampled`` addresses, only that code: a function of a header that all
    sources include is inlined in hundreds of them, and which of these ran is what the samples tell.
    """
    wanted: dict[tuple[str, int], list[int]] = {}
    for number, region in regions.items():
        if region.file and region.line:
            wanted.setdefault((PurePath(region.file).name, region.line), []).append(number)
    ran = [unit for unit, _ in group_by_unit(image.units, sorted(set(sampled)))] if wanted else []
    spans = _find_rows(ran, wanted)
    rest = {place: numbers for place, numbers in wanted.items() if not spans.keys() & set(numbers)}
    return spans | _find_rows((unit for unit in image.units if unit not in ran), rest) if rest else spans


def _find_rows(units: Iterable[Unit], wanted: Mapping[tuple[str, int], Sequence[int]]) -> dict[int, list[Span]]:
    """Return the code of the lines ``wanted`` (name of the file, line), for the regions there."""
    spans: dict[int, list[Span]] = {}
    files = {name for name, _ in wanted}
    for unit in units:
        names = [PurePath(path).name for path in read_file_names(unit)]
        if files.isdisjoint(names):
            continue
        table = read_line_table(unit)
        for (name, line), numbers in wanted.items():
            places = [place for place, each in enumerate(names) if each == name]
            for row in np.flatnonzero((table.line == line) & np.isin(table.file, places)).tolist():
                if row + 1 < len(table.address) and table.address[row] < table.address[row + 1]:
                    for number in numbers:
                        spans.setdefault(number, []).append((int(table.address[row]), int(table.address[row + 1])))
    return spans


def find_enclosing_function(
    spans: Iterable[Span], image: ElfImage, samples: Sequence[tuple[int, int]] = ()
) -> Symbol | None:
    """Return the function that holds most of the code of a region, None where no symbol does.

    The body of a parallel region comes before the function that starts it, whose call has the same line. Of several
    bodies, as a template has for each of its types, the one with most ``samples`` (address, number) is meant.
    """
    bytes_of: dict[int, int] = {}
    symbols: dict[int, Symbol] = {}
    for begin, end in spans:
        symbol = image.find_function(begin)
        if symbol is not None:
            symbols[symbol.begin] = symbol
            bytes_of[symbol.begin] = bytes_of.get(symbol.begin, 0) + end - begin
    if not bytes_of:
        return None

    def rank_function(begin: int) -> tuple[bool, int, int]:
        one = symbols[begin]
        seen = sum(count for address, count in samples if one.begin <= address < one.end)
        return is_outlined(one.name), seen, bytes_of[begin]

    return symbols[max(bytes_of, key=rank_function)]


def restrict_loops(code: FunctionCode, spans: Iterable[Span]) -> FunctionCode:
    """Return the code with the loops that hold code of a region alone, with all where none does."""
    pieces = list(spans)
    kept = tuple(loop for loop in code.loops if any(loop.begin < end and begin < loop.end for begin, end in pieces))
    return replace(code, loops=kept) if kept else code
