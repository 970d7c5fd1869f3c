"""Which samples of a run lie in the code of each of its regions, by their addresses in the program's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.collect.binaries.addresses import find_frame_names
from advisor.collect.binaries.demangling import demangle, strip_parameters
from advisor.collect.binaries.dwarf_units import DAMAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.collect.binaries.elf_files import ElfImage, Symbol
    from advisor.model.records import Profile


def locate_samples(
    profile: Profile, image: ElfImage, debug: ElfImage, found: Mapping[int, Symbol]
) -> dict[int, dict[int, int]]:
    """Return the samples of each region by address, of regions whose function is known.

    ``debug`` is the file with the debug information. Code of a function that was inlined into another one belongs to
    the region that is called like it, where there is one.
    """
    places = ((image.to_address(place), count) for place, count in profile.sampled_code)
    sampled = {address: count for address, count in places if address is not None}
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
    return {
        number: {
            address: count
            for address, count in sampled.items()
            if symbol.begin <= address < symbol.end and innermost.get(address, names[number]) == names[number]
        }
        for number, symbol in found.items()
    }
