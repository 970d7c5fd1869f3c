"""Which samples of a run lie in the code of each of its regions, by their addresses in the program's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.collect.binaries.addresses import find_frame_names
from advisor.collect.binaries.demangling import demangle, strip_parameters
from advisor.collect.binaries.dwarf_units import DAMAGE

if TYPE_CHECKING:
    from advisor.collect.binaries.elf_files import ElfImage, Symbol
    from advisor.model.records import Profile


@dataclass(frozen=True, slots=True)
class SampledFunction:
    """The function that holds the samples of a region, these by address, and whether it is another one's copy of it."""

    symbol: Symbol
    samples: Mapping[int, int]
    inlined: bool


def count_by_address(profile: Profile, image: ElfImage) -> dict[int, int]:
    """Return the number of samples by address in the program."""
    places = ((image.to_address(place), count) for place, count in profile.sampled_code)
    return {address: count for address, count in places if address is not None}


def locate_samples(
    profile: Profile, image: ElfImage, debug: ElfImage, found: Mapping[int, Symbol]
) -> dict[int, SampledFunction]:
    """Return where the samples of each region lie, of regions whose function is ``found``.

    ``debug`` is the file with the debug information. Code of a function that was inlined into another one belongs to
    the region that is called like it, where there is one. The other function then holds it, if most samples lie there.
    """
    sampled = count_by_address(profile, image)
    try:
        frames = find_frame_names(debug, sampled) if debug.has_debug_info else {}
    except DAMAGE:
        frames = {}
    names = [strip_parameters(demangle(region.name)) for region in profile.regions]
    known = set(names)
    innermost = {
        address: name
        for address, calls in frames.items()
        if calls and (name := strip_parameters(demangle(calls[-1]))) in known
    }
    result = {}
    for number, symbol in found.items():
        name = names[number]
        mine = {at: count for at, count in sampled.items() if innermost.get(at) == name}
        nameless = {at: count for at, count in sampled.items() if at not in innermost}
        holder = _find_holder(image, mine) or symbol
        inside = {at: count for at, count in (mine | nameless).items() if holder.begin <= at < holder.end}
        inlined = holder.begin != symbol.begin
        own = {at: count for at, count in inside.items() if at in mine} if inlined else inside
        result[number] = SampledFunction(holder, own, inlined)
    return result


def _find_holder(image: ElfImage, samples: Mapping[int, int]) -> Symbol | None:
    """Return the function that holds most of some samples, None where there are none."""
    held: dict[int, int] = {}
    symbols: dict[int, Symbol] = {}
    for address, count in samples.items():
        symbol = image.find_function(address)
        if symbol is not None:
            symbols[symbol.begin] = symbol
            held[symbol.begin] = held.get(symbol.begin, 0) + count
    return symbols[max(held, key=lambda begin: held[begin])] if held else None
