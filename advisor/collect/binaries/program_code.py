"""The code of a run's program by region: which seconds were spent in code of which kind (docs/facts.md, ``code``).

The kinds become counts of the profile, ``code.KIND_s`` in seconds (regions, processors): the computation of a region
times the share of its function that is of the kind. ``code.all_s`` is all computation, ``code.known_s`` that in
functions whose code was looked at and in known functions of libraries.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.loads.computation import compute_region_seconds
from advisor.collect.binaries.addresses import find_frame_names, find_lines
from advisor.collect.binaries.compilers import read_compilation
from advisor.collect.binaries.demangling import demangle, strip_parameters
from advisor.collect.binaries.disassembly import X86_64, can_disassemble
from advisor.collect.binaries.dwarf_units import DAMAGE
from advisor.collect.binaries.elf_files import find_debug_file, read_elf
from advisor.collect.binaries.hot_functions import analyze_function
from advisor.collect.binaries.inlined_regions import find_enclosing_function, find_line_spans, restrict_loops
from advisor.collect.binaries.located_samples import count_by_address, locate_samples
from advisor.collect.binaries.object_sizes import name_objects, read_object_sizes
from advisor.collect.binaries.spinning import reclassify_spinning
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.support.extras import install_line
from advisor.support.outlined_functions import is_outlined, name_parallel_body
from advisor.support.system_sources import is_system_source
from advisor.trace.counts import COMPARISON_SECONDS, SPIN_SECONDS
from advisor.trace.library_functions import COUNTED_KINDS, classify_library_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from advisor.collect.binaries.compilers import Compilation, SourceUnit
    from advisor.collect.binaries.elf_files import ElfImage, Symbol
    from advisor.collect.binaries.hot_functions import FunctionCode
    from advisor.collect.binaries.inlined_regions import Span
    from advisor.collect.binaries.located_samples import SampledFunction
    from advisor.collect.binaries.sampled_addresses import Registers
    from advisor.model.records import FloatArray, Profile, Region

NOTE: Final = "program file"
#: Traits of functions by the name of the count, as ``FunctionCode.loop_shares`` calls them.
LOOP_KINDS: Final[Mapping[str, str]] = {
    "overlap": "overlap", "order": "order", "recurrence": "recurrence", "branch": "branch", "call": "call",
    "pointer": "pointer", "chain": "chain", "scatter": "scatter", "guess": "guess",
    "quotient": "quotient", "shape": "shape",
    "strided": "strided", "transposed": "transposed",
    "far": "far", "slow": "division", "fixed": "update", "scalar": "scalar",
    "baseline": "baseline", "search": "search", "filter": "filter", "select": "selection", "objects": "objects",
    "streamed": "streamed", "recomputed": "recomputed",
}  # fmt: skip
#: Kinds of functions whose callers' loops count, too.
_CALLED_KINDS: Final = frozenset(("math", "inlinable"))
#: From this share of the other code on, brief functions were compiled as it was.
_MOSTLY: Final = 0.5
#: What regions that stand for the whole body of a parallel region are called.
_BODY: Final = ("!$omp parallel", "omp parallel")
#: Readers whose regions include the functions of libraries; in others they are part of who calls them, or left out.
_SEES_LIBRARIES: Final = frozenset({"recording", "perf", "callgrind", "cachegrind", "hpctoolkit"})
#: So many functions, those with the most seconds, are looked into.
_MOST_FUNCTIONS: Final = 300
#: Parts of functions under names of their own: what is seldom run, and bodies of parallel regions.
_SEPARATED: Final = re.compile(r"\.cold(?:\.\d+)?$|\._omp_fn\.|omp_outlined")


def describe_code(profile: Profile, program: Path) -> Profile:
    """Return the profile with what the file of its program tells; raises ``InputError`` for what is no program."""
    image = read_elf(program)
    debug = image
    split = None if image.has_debug_info else find_debug_file(image)
    if split is not None:
        debug = read_elf(split)
    try:
        compilation = read_compilation(debug)
    except DAMAGE as error:
        raise InputError(program, f"its debug information is damaged ({error})") from error
    functions = image.functions if image.has_symbol_table else (*image.functions, *debug.functions)
    seconds = compute_region_seconds(profile)
    notes = [_note_compilation(image, compilation), *_note_limits(image)]
    if seconds is None or not seconds.any():
        return replace(profile, notes=(*profile.notes, *notes))
    found, overloaded = _find_functions(profile, functions, seconds)
    inlined = _find_inlined(profile, image, debug, seconds, found)
    found |= {number: symbol for number, (symbol, _) in inlined.items()}
    found = {**overloaded, **found}
    sampled = locate_samples(profile, image, debug, found)
    found |= {number: one.symbol for number, one in sampled.items()}
    held = (profile.sampled_registers, profile.sampled_pairs, profile.sampled_progress)
    codes = _read_functions(image, debug, compilation, sampled, [_by_address(image, places) for places in held])
    codes |= {number: restrict_loops(codes[number], spans) for number, (_, spans) in inlined.items() if number in codes}
    codes |= {
        number: restrict_loops(codes[number], ((at, at + 1) for at in one.samples))
        for number, one in sampled.items()
        if one.inlined and number in codes
    }
    profile = reclassify_spinning(profile, image, sampled, codes)
    seconds = np.maximum(seconds - profile.counts.get(SPIN_SECONDS, 0.0), 0.0)
    counts = _describe_regions(profile, image, compilation, found, codes, seconds)
    if not found and not counts["code.known_s"].any():
        counts = _describe_whole(image, compilation, seconds)
    profile = replace(profile, regions=_place_regions(profile, debug, found, codes))
    language = profile.language or _spoken_language(compilation)
    return replace(profile, counts={**profile.counts, **counts}, notes=(*profile.notes, *notes), language=language)


def _by_address(image: ElfImage, places: Mapping[int, Registers]) -> dict[int, Registers]:
    """Return what is known of places in a program's file by their addresses."""
    addresses = ((image.to_address(place), values) for place, values in places.items())
    return {address: values for address, values in addresses if address is not None}


def _find_functions(
    profile: Profile, functions: Sequence[Symbol], seconds: FloatArray
) -> tuple[dict[int, Symbol], dict[int, Symbol]]:
    """Return the functions of the program by the regions that are called like them, those with the most seconds.

    Of regions whose name fits several functions, the second part holds the longest: who only hands on arguments is
    short. Where lines are known, they tell better.
    """
    exact: dict[str, Symbol] = {}
    loose: dict[str, list[Symbol]] = {}
    for symbol in functions:
        readable = demangle(symbol.name)
        for name in (symbol.name, readable, name_parallel_body(readable)):
            exact.setdefault(name, symbol)
        if _SEPARATED.search(symbol.name) is None:
            loose.setdefault(strip_parameters(readable), []).append(symbol)
    found: dict[int, Symbol] = {}
    overloaded: dict[int, Symbol] = {}
    order = np.argsort(-seconds.sum(axis=1), kind="stable")
    for number in order[: 4 * _MOST_FUNCTIONS].tolist():
        if len(found) + len(overloaded) >= _MOST_FUNCTIONS:
            break
        name = profile.regions[number].name
        symbol_of = exact.get(name) or exact.get(demangle(name))
        alike = [symbol_of] if symbol_of is not None else loose.get(strip_parameters(demangle(name)), [])
        if alike:
            chosen = found if len(alike) == 1 else overloaded
            chosen[number] = max(alike, key=lambda symbol: symbol.end - symbol.begin)
    return found, overloaded


def _find_inlined(
    profile: Profile, image: ElfImage, debug: ElfImage, seconds: FloatArray, found: Mapping[int, Symbol]
) -> dict[int, tuple[Symbol, list[Span]]]:
    """Return the functions that hold regions without a symbol of their own, and where in them these are."""
    unknown = {
        number: region
        for number, region in enumerate(profile.regions)
        if number not in found and seconds[number].any() and not classify_library_function(region.name)
    }
    sampled = count_by_address(profile, image)
    try:
        spans = _keep_inlined(debug, unknown, find_line_spans(debug, unknown, sampled))
    except DAMAGE:
        return {}
    counts = [*sampled.items()]
    holders = {number: find_enclosing_function(pieces, image, counts) for number, pieces in spans.items()}
    return {
        number: (symbol, [] if is_outlined(symbol.name) and unknown[number].name.startswith(_BODY) else spans[number])
        for number, symbol in holders.items()
        if symbol is not None
    }


def _keep_inlined(
    debug: ElfImage, regions: Mapping[int, Region], spans: Mapping[int, list[Span]]
) -> dict[int, list[Span]]:
    """Return the code of those regions that are there: a function of a library has only the line of its caller."""
    names = find_frame_names(debug, (begin for pieces in spans.values() for begin, _ in pieces))
    kept: dict[int, list[Span]] = {}
    for number, pieces in spans.items():
        wanted = strip_parameters(demangle(regions[number].name))
        body = regions[number].name.startswith(_BODY)
        mine = [(begin, end) for begin, end in pieces if body or wanted in map(strip_parameters, names.get(begin, ()))]
        if mine:
            kept[number] = mine
    return kept


def _read_functions(
    image: ElfImage,
    debug: ElfImage,
    compilation: Compilation,
    sampled: Mapping[int, SampledFunction],
    registers: Sequence[Mapping[int, Registers]],
) -> dict[int, FunctionCode]:
    """Return the code of the functions by region; nothing where it can't be disassembled.

    ``registers`` are those at samples of one thread, of two, and at two samples one after the other.
    """
    if image.machine != X86_64 or not can_disassemble():
        return {}
    whole: dict[Symbol, Counter[int]] = defaultdict(Counter)
    for one in sampled.values():
        whole[one.symbol].update(one.samples)
    alone, pairs, progress = registers
    codes: dict[int, FunctionCode] = {}
    for number, one in sampled.items():
        unit, seen = compilation.find_unit(one.symbol.begin), whole[one.symbol]
        codes[number] = analyze_function(image, one.symbol, unit, seen, alone, pairs, progress, one.samples)
    if any(loop.leaps for code in codes.values() for loop in code.loops):
        sizes = read_object_sizes(debug, [code.symbol.begin for code in codes.values()])
        codes = {number: name_objects(code, sizes) for number, code in codes.items()}
    arithmetic = (loop.arithmetic for code in codes.values() for loop in code.loops)
    lines = find_lines(debug, chain.from_iterable(arithmetic))
    return {number: code.without_remainders(lines) for number, code in codes.items()}


def _place_regions(
    profile: Profile, debug: ElfImage, found: Mapping[int, Symbol], codes: Mapping[int, FunctionCode]
) -> tuple[Region, ...]:
    """Return the regions, those without a place in the source with that of their main loop, else of their beginning."""
    addresses = {}
    for number, symbol in found.items():
        loop = codes[number].main_loop if number in codes else None
        addresses[number] = symbol.begin if loop is None else (*loop.arithmetic, loop.begin)[0]
    lines = find_lines(debug, addresses.values())
    placed = list(profile.regions)
    for number, address in addresses.items():
        file, line = lines.get(address, (None, None))
        if placed[number].file is None and file is not None:
            placed[number] = replace(placed[number], file=file, line=line)
    return tuple(placed)


def _describe_regions(
    profile: Profile,
    image: ElfImage,
    compilation: Compilation,
    found: Mapping[int, Symbol],
    codes: Mapping[int, FunctionCode],
    seconds: FloatArray,
) -> dict[str, FloatArray]:
    """Return the counts of the regions that are functions of the program or known functions of libraries."""
    disassembles = image.machine == X86_64 and can_disassemble()
    kinds = {number: classify_library_function(region.name) for number, region in enumerate(profile.regions)}
    sees = not _SEES_LIBRARIES.isdisjoint(profile.reader.split("+")) or any(
        kind for number, kind in kinds.items() if number not in found
    )
    names = [*(LOOP_KINDS.values() if disassembles else ()), *(COUNTED_KINDS.values() if sees else ())]
    counts = {name: np.zeros_like(seconds) for name in ("all", "known", "unoptimized", "checked", *names)}
    counts["all"] += seconds
    undecided = False
    for number, row in enumerate(seconds):
        kind, symbol = kinds[number], found.get(number)
        source = compilation.find_unit(symbol.begin) if symbol is not None else None
        if kind is not None and kind in COUNTED_KINDS and (source is None or is_system_source(source.file)):
            counts["known"][number] = row
            if sees:
                counts[COUNTED_KINDS[kind]][number] = row
        elif symbol is not None:
            undecided |= _add_function(counts, number, row, codes.get(number), source)
    if sees:
        _limit_callers(counts, kinds)
        counts["sort"] = np.minimum(np.maximum(counts["sort"], profile.counts.get(COMPARISON_SECONDS, 0.0)), seconds)
    _judge_by_callers(counts, [number for number, code in codes.items() if not code.loops and not _is_told(code)])
    if undecided:
        del counts["unoptimized"]
    return {f"code.{name}_s": table for name, table in counts.items()}


def _is_told(code: FunctionCode) -> bool:
    return code.source is not None and code.source.unoptimized is not None


def _judge_by_callers(counts: dict[str, FloatArray], brief: Sequence[int]) -> None:
    """Count functions without loops, of which no level is recorded, as unoptimized where most other code is.

    One that passes its arguments on looks alike either way; optimized, it would not be called at all.
    """
    others = np.delete(np.arange(len(counts["known"])), brief)
    known, unoptimized = (float(counts[name][others].sum()) for name in ("known", "unoptimized"))
    if unoptimized > _MOSTLY * known:
        for number in brief:
            counts["unoptimized"][number] = counts["known"][number]


def _limit_callers(counts: dict[str, FloatArray], kinds: Mapping[int, str | None]) -> None:
    """Let loops that call mathematical functions count for no more than was seen in these functions.

    A loop may call them in one of a thousand iterations.
    """
    for kind in _CALLED_KINDS & counts.keys():
        library = np.array([kinds[number] == kind for number in range(len(counts[kind]))], dtype=bool)
        inside, calling = counts[kind][library].sum(axis=0), counts[kind][~library].sum(axis=0)
        counts[kind][~library] *= np.divide(inside, calling, out=np.ones_like(calling), where=calling > inside)


def _add_function(
    counts: dict[str, FloatArray], number: int, row: FloatArray, code: FunctionCode | None, source: SourceUnit | None
) -> bool:
    """Add the seconds of a function to the kinds that its code is of; return whether its optimization is not known."""
    unoptimized = code.unoptimized if code is not None else source.unoptimized if source is not None else None
    if unoptimized is None and code is None:
        return True
    counts["known"][number] = row
    counts["unoptimized"][number] = row if unoptimized else 0.0
    if code is None:
        return False
    shares = code.loop_shares()
    counts["checked"][number] = row * shares["checked"]
    for kind in _CALLED_KINDS & counts.keys():
        counts[kind][number] = 0.0 if unoptimized else row * shares[kind]
    for trait, name in LOOP_KINDS.items():
        # without optimization nothing is vectorized and every index is loaded anew: that is no other fault
        counts[name][number] = 0.0 if unoptimized else row * shares[trait]
    return False


def _describe_whole(image: ElfImage, compilation: Compilation, seconds: FloatArray) -> dict[str, FloatArray]:
    """Return what can be said of a run whose functions are not told apart: only what holds of all its functions."""
    own = [unit for unit in compilation.units if not is_system_source(unit.file)]
    levels = {unit.unoptimized for unit in own}
    if not own or levels == {None}:
        levels = _levels_by_code(image, compilation)
    if len(levels) != 1 or None in levels:
        return {}
    unoptimized = seconds if True in levels else np.zeros_like(seconds)
    return {"code.all_s": seconds, "code.known_s": seconds, "code.unoptimized_s": unoptimized}


def _levels_by_code(image: ElfImage, compilation: Compilation) -> set[bool | None]:
    """Return whether the functions with loops that compute are unoptimized, by their code alone."""
    if image.machine != X86_64 or not can_disassemble():
        return {None}
    analyze = partial(analyze_function, image)
    looked = (analyze(symbol, compilation.find_unit(symbol.begin)) for symbol in image.functions[:_MOST_FUNCTIONS])
    return {code.unoptimized for code in looked if code.loops and code.scalar + code.packed} or {None}


def _spoken_language(compilation: Compilation) -> str | None:
    own = {unit.language for unit in compilation.units if not is_system_source(unit.file)}
    return next(iter(own)) if len(own) == 1 else None


def _note_compilation(image: ElfImage, compilation: Compilation) -> Note:
    own = [unit for unit in compilation.units if not is_system_source(unit.file)]
    if not own:
        compilers = " and ".join(compilation.compilers) or "an unknown compiler"
        return Note(NOTE, f"{image.path.name} was made by {compilers}; it has no debug information (-g) on its sources")
    made: dict[str, int] = {}
    for unit in own:
        level = unit.level or "options that were not recorded"
        more = [option for option in unit.options if option.startswith(("-march=", "-fopenmp", "-ffast-math"))]
        shown = [option for option in more if option not in ("-march=x86-64", "-fopenmp-simd")]
        text = f"{unit.compiler} with {' '.join((level, *shown))}"
        made[text] = made.get(text, 0) + 1
    listed = "; ".join(_of_how_many(text, count, len(own)) for text, count in list(made.items())[:4])
    return Note(NOTE, f"{image.path.name} was compiled by {listed}")


def _of_how_many(text: str, count: int, total: int) -> str:
    return text if count == total else f"{text} ({count} of {total} sources)"


def _note_limits(image: ElfImage) -> Iterable[Note]:
    if image.machine != X86_64:
        yield Note(NOTE, f"{image.path.name} is for {image.machine}: its loops are looked into on x86-64 only")
    elif not can_disassemble():
        line = install_line("processor")
        yield Note(NOTE, "its loops are not looked into: neither capstone nor objdump is installed", collect=line)
    if not image.has_symbol_table and not image.has_debug_info:
        yield Note(NOTE, f"{image.path.name} is stripped, so its functions have no names")
