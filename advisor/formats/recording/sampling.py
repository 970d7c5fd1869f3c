"""Computation by function: the samples of a thread divide what it computed in each phase.

The seconds themselves are measured, by the clocks of calls and threads; samples only say to which functions they
belong. A function's share of n samples has the error of a binomial share, sqrt(p (1 - p) / n).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats.recording.columns import begin_ns
from advisor.formats.recording.comparisons import find_comparisons
from advisor.formats.recording.naming import RegionTable, short_path
from advisor.formats.recording.object_copies import ObjectCopy, find_copy, flatten_frames, place_copies
from advisor.formats.recording.python_frames import count_python, name_python_function, share_python
from advisor.formats.recording.recorded_threads import map_processors, teams_of
from advisor.formats.recording.sampled_places import (
    collect_progress,
    collect_registers,
    count_by_processor,
    count_places,
    find_program_samples,
    pair_registers,
)
from advisor.formats.recording.tasks import nest_tasks, open_at
from advisor.model.records import Note, Region
from advisor.model.units import format_share
from advisor.support.copied_objects import SYNCING
from advisor.support.outlined_functions import is_outlined, name_parallel_body
from advisor.support.system_sources import is_system_source
from advisor.support.template_names import mask_template_arguments, shorten_name
from advisor.trace.counts import COMPARISON_SECONDS
from advisor.trace.library_functions import classify_library_function
from advisor.trace.recordings.addresses import locate_addresses, sorted_objects
from advisor.trace.recordings.layout import PYTHON_BIT, SUBNORMAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from advisor.formats.recording.contents import Recording
    from advisor.formats.recording.recorded_threads import RecordedThread
    from advisor.model.records import FloatArray, IntArray, Phase, Profile
    from advisor.trace.recordings.places import CodePlace, Places
    from advisor.trace.recordings.processes import Process

#: Below so many samples of a program little can be said about its functions.
FEW: Final = 100
#: Functions with less of all samples stay part of the program.
LEAST_SHARE: Final = 0.002


#: What stands before the parameters of a C++ function.
_PARAMETERS: Final = re.compile(r"(?:operator\s*\(\)|[^(])*")
#: Names inside of system libraries: ``__exp_fma``, ``__memmove_avx_unaligned_erms``, ``__GI___log``, ``__libc_malloc``.
_VARIANT: Final = re.compile(
    r"_+(?:GI_+)?(?:ieee754_|libc_|IO_)?([a-z]\w*?)(?:_(?:fma4?|avx\w*|sse\w*|evex\w*|unaligned\w*|erms|finite|c))*"
)

#: What the program called by a name that jumped on, as MATMUL does; what a library's named functions call for their
#: purposes has the library's name.
_NAMELESS: Final = "a function of"
#: The recorder itself, in the user's cache: its wrappers are no work of the program.
_RECORDER: Final = re.compile(r"[0-9a-f]{20}\.so")

Function = tuple[str, str | None]
#: Subnormal numbers are worth looking for where a product of one takes so many times as long as one of others: 1 or 2
#: where the processor has circuits for them, 20 to 50 where it calls microcode.
SLOW_RATIO: Final = 4.0
#: The body of a parallel region, for which there is a region with a place already.
_OUTLINED: Final[Function] = ("", None)
#: Which samples of a thread to count.
Choice = Callable[["RecordedThread", "Places"], "npt.NDArray[np.bool_]"]


def _find_subnormal(thread: RecordedThread, _: Places) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (thread.samples["state"] & SUBNORMAL) > 0
    if 0 < thread.process.subnormal_ratio < SLOW_RATIO:
        return np.zeros_like(found)  # this processor takes no longer for them
    return found


#: Computation that samples tell by more than their place: with numbers below the smallest normal one, and what the
#: program does for a library that sorts.
_MARKED: Final[Mapping[str, Choice]] = {"code.subnormal_s": _find_subnormal, COMPARISON_SECONDS: find_comparisons}
Votes = dict[tuple[int, int, int], Counter[Function]]


def divide_computation(profile: Profile, recording: Recording) -> Profile:
    """Return the profile with a region for each sampled function; what was computed is divided among them."""
    lines: dict[Function, Counter[int]] = defaultdict(Counter)
    votes = _votes(profile, recording, lines)
    total: Counter[Function] = Counter()
    for counted in votes.values():
        total.update(counted)
    everything = total.total()
    if not everything:
        return profile
    kept = [
        function
        for function, count in total.most_common()
        if count >= LEAST_SHARE * everything and function != _OUTLINED
    ]
    rows: dict[tuple[Function, bool], int] = {}
    regions = list(profile.regions)
    for function in kept:
        for threaded in sorted({profile.regions[row].threaded for (_, _, row), c in votes.items() if c[function]}):
            rows[function, threaded] = len(regions)
            line = lines[function].most_common(1)[0][0] if lines[function] else None
            regions.append(Region(function[0], function[1], line, threaded))
    phases = tuple(_divide_phase(profile, phase, number, votes, rows) for number, phase in enumerate(profile.phases))
    samples = _count_samples(votes, profile, rows, len(regions))
    more = ((0, len(regions) - len(profile.regions)), (0, 0))
    counts = {name: np.pad(values, more) for name, values in profile.counts.items()} | {"samples": samples}
    shares = share_python(recording)
    mine = {row: shares[function] for (function, _), row in rows.items() if function in shares}
    counts |= count_python(samples, mine, recording)
    inside = find_program_samples(recording)
    divided = replace(profile, regions=tuple(regions), phases=phases)
    for name, chosen in _MARKED.items():
        marked = _count_samples(_votes(profile, recording, lines, chosen), profile, rows, len(regions))
        if marked.any():
            counts[name] = divided.sum_by_region("cpu_s") * marked / np.maximum(samples, 1)
    return replace(
        divided,
        counts=counts,
        sampled_code=count_places(inside),
        sampled_processors=count_by_processor(inside, map_processors(profile)),
        sampled_registers=collect_registers(inside),
        sampled_pairs=pair_registers(inside),
        sampled_progress=collect_progress(inside),
        notes=(*profile.notes, _note(everything, recording)),
    )


def _count_samples(votes: Votes, profile: Profile, rows: dict[tuple[Function, bool], int], regions: int) -> FloatArray:
    """Return the samples (R, Q) of each region; those of functions without one stay where they were."""
    samples = np.zeros((regions, len(profile.processors)))
    for (_, q, row), counted in votes.items():
        for function, count in counted.items():
            samples[rows.get((function, profile.regions[row].threaded), row), q] += count
    return samples


def _note(samples: int, recording: Recording) -> Note:
    rate = max(process.samples_per_s for process in recording.processes)
    error = 1.96 * math.sqrt(0.1 * 0.9 / samples)
    text = (
        f"computation is divided among functions by {samples} samples ({rate} per second of CPU time): a share of 10 % "
        f"is known to within {format_share(error)} of the computation"
    )
    if samples >= FEW:
        return Note("functions sampled", text)
    return Note("functions sampled", text, 0.05, "run a larger problem: samples are few")


def _votes(
    profile: Profile, recording: Recording, lines: dict[Function, Counter[int]], chosen: Choice | None = None
) -> Votes:
    """Return how often each function was seen, by phase, processor and the row whose seconds it is part of.

    Where some samples are ``chosen``, of these alone.
    """
    columns = map_processors(profile)
    numbers = {region: row for row, region in reversed(list(enumerate(profile.regions)))}
    table = RegionTable(recording.places)
    base = begin_ns(recording)
    computed = profile.sum_by_region("cpu_s")
    votes: Votes = defaultdict(Counter)
    for thread in recording.threads:
        q = columns.get((thread.rank, thread.processor))
        if q is None or not len(thread.samples):
            continue
        counted = np.ones(len(thread.samples), np.bool_) if chosen is None else chosen(thread, recording.places)
        if not counted.any():
            continue
        time_ns = thread.samples["time_ns"].astype(np.int64) + thread.offset_ns
        phase = _phases_at(profile, (time_ns - base) / 1e9)
        row = _rows_at(profile, thread, table, numbers, computed[:, q])
        functions = _functions(thread.process, thread.samples, recording.places)
        weight = (counted * (1 + thread.samples["missed"])).tolist()
        for p, r, (function, line), count in zip(phase.tolist(), row.tolist(), functions, weight, strict=True):
            if p >= 0 and r >= 0 and count:
                votes[p, q, r][function] += count
                if line is not None:
                    lines[function][line] += count
    return votes


def _phases_at(profile: Profile, time_s: FloatArray) -> IntArray:
    """Return the phase at each moment, -1 outside of all."""
    if not profile.has_phases:
        return np.zeros(len(time_s), dtype=np.int64)
    known = [(n, phase) for n, phase in enumerate(profile.phases) if phase.start_s is not None]
    starts = np.concatenate([phase.start_s for _, phase in known if phase.start_s is not None])
    ends = starts + np.concatenate([phase.duration_s for _, phase in known if phase.duration_s is not None])
    number = np.concatenate([np.full(len(phase.start_s), n) for n, phase in known if phase.start_s is not None])
    order = np.argsort(starts, kind="stable")
    at = np.searchsorted(starts[order], time_s, side="right") - 1
    place = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (time_s <= ends[place]), number[place], -1)


def _rows_at(
    profile: Profile, thread: RecordedThread, table: RegionTable, numbers: dict[Region, int], computed: FloatArray
) -> npt.NDArray[np.int64]:
    """Return the row of the profile whose seconds each sample is part of, -1 for none.

    ``computed`` are the seconds of each row on the thread's processor: a thread may take the place of the first one.
    """
    time = thread.samples["time_ns"]
    name = profile.program if thread.span.number == 0 or not _is_own(profile) else "thread"
    rows_of_name = [numbers[key] for flag in (True, False) if (key := Region(name, threaded=flag)) in numbers]
    own = max(rows_of_name, key=lambda row: computed[row], default=-1)
    rows = np.full(len(time), own, dtype=np.int64)
    teams = teams_of(thread)
    if not len(teams):
        return rows
    parts = thread.records[teams]
    region = table.of_calls(thread.process, parts)
    nameless = numbers.get(Region(profile.program, threaded=True), own)  # of parallel regions without a line
    row_of = [numbers.get(Region(r.name, r.file, r.line, threaded=True), nameless) for r in table.regions]
    row = np.array(row_of, dtype=np.int64)[region]
    at = np.searchsorted(parts["start_ns"], time, side="right") - 1
    end = np.where(parts["end_ns"] > 0, parts["end_ns"], np.iinfo(np.uint64).max)
    inside = (at >= 0) & (time < end[np.maximum(at, 0)])
    rows = np.where(inside, row[np.maximum(at, 0)], rows)
    tasks = nest_tasks(thread)
    if tasks is None:
        return rows
    task = open_at(tasks, time.astype(np.int64))
    return np.where(task >= 0, tasks.find_rows(thread, table, numbers, profile.program)[np.maximum(task, 0)], rows)


def _is_own(profile: Profile) -> bool:
    return any(region.name == "thread" for region in profile.regions)


def _functions(process: Process, samples: npt.NDArray[Any], places: Places) -> list[tuple[Function, int | None]]:
    """Return the function that each sample lies in, and the line there; of a library, the line of the call of it."""
    in_python = (samples["callers"][:, 3] & PYTHON_BIT) > 0
    callers = np.where(in_python[:, None], np.uint64(0), samples["callers"])
    addresses = np.c_[samples["address"], np.maximum(callers, np.uint64(1)) - np.uint64(1)]
    located = locate_addresses(process, addresses.ravel()).reshape(*addresses.shape, 2)
    paths = [one.path for one in sorted_objects(process)]
    known: dict[bytes, tuple[Function, int | None]] = {}
    copies: dict[bytes, ObjectCopy] = {}
    result: list[tuple[Function, int | None] | bytes] = []
    for frames, python, inner, own in zip(
        located, in_python.tolist(), samples["callers"][:, 2].tolist(), samples["callers"][:, 3].tolist(), strict=True
    ):
        if python:
            result.append(name_python_function(process, inner, own))
            continue
        key = frames.tobytes()
        if key not in known:
            found = [places.get((paths[number] if number >= 0 else "", at), ()) for number, at in frames.tolist()]
            known[key] = _function(process, frames.tolist(), found, paths)
            own_code = [number >= 0 and paths[number] == process.program for number, _ in frames.tolist()]
            copy = find_copy(flatten_frames(zip(own_code, found, strict=True)))
            copies |= {key: copy} if copy else {}
        result.append(key)
    for key, (name, file, line) in place_copies(copies).items():
        known[key] = (name, short_path(file)), line
    known |= _gather_synced(known)
    return [known[each] if isinstance(each, bytes) else each for each in result]


def _gather_synced(known: Mapping[bytes, tuple[Function, int | None]]) -> dict[bytes, tuple[Function, int | None]]:
    """Return all that streams do at the lines where samples show them in step with those of C."""
    places = {(file, line) for (name, file), line in known.values() if name == SYNCING and file}
    return {
        key: ((SYNCING, file), line)
        for key, ((name, file), line) in known.items()
        if (file, line) in places and classify_library_function(name) == "text"
    }


def _function(
    process: Process, frames: list[list[int]], found: list[tuple[CodePlace, ...]], paths: list[str]
) -> tuple[Function, int | None]:
    where = [paths[number] if number >= 0 else "" for number, _ in frames]
    if _RECORDER.fullmatch(PurePath(where[0]).name):
        return ("recording", None), None
    inner = found[0][0] if found[0] else None
    if where[0] == process.program or not where[0]:
        if inner is None:
            return ("unknown code" if where[0] else "code made at run time", None), None
        if is_outlined(inner.function):  # without lines, its function is all that tells one region from another
            return (_OUTLINED if inner.line else (name_parallel_body(inner.function), None)), None
        inner = _find_line(found[0]) or inner
        place = inner if not is_system_source(inner.file or "") else _find_own_caller(found[1:]) or inner
        template = found[0][-1] if place is not inner else inner
        return (_name_function(template.function), short_path(place.file)), place.line
    own = [at for at, path in enumerate(where) if at and path == process.program]
    called = own[0] if own else 0
    entry = found[called - 1] if called else found[0]  # what the program called, of what that calls in turn
    library = PurePath(where[0]).name
    name = _plain_name(entry[-1].function) if entry else library if called > 1 else f"{_NAMELESS} {library}"
    caller = _find_own_caller([found[at] for at in own])
    return (name, short_path(caller.file) if caller else None), caller.line if caller else None


def _find_own_caller(frames: Sequence[tuple[CodePlace, ...]]) -> CodePlace | None:
    """Return the innermost caller with a line that is no template of a library, else the innermost one with a line."""
    callers = [line for each in frames if (line := _find_line(each))]
    return next((line for line in callers if not is_system_source(line.file or "")), next(iter(callers), None))


def _find_line(frames: tuple[CodePlace, ...]) -> CodePlace | None:
    """Return the innermost frame with a line."""
    return next((frame for frame in frames if frame.line), None)


def _without_parameters(function: str) -> str:
    """Return the name of a C++ function without its parameters; ``operator()`` and unnamed namespaces stay."""
    found = _PARAMETERS.match(mask_template_arguments(function))
    return shorten_name(function[: found.end()].rstrip() if found and found[0].strip() else function)


def _name_function(function: str) -> str:
    """Return how people call a function of the program, or a template of the C++ library in it."""
    name = _without_parameters(function.partition("@")[0])
    return "std::sort" if classify_library_function(name) == "sort" else name


def _plain_name(function: str) -> str:
    """Return the name by which programs know a function of a system library, without its variant for a processor."""
    variant = _VARIANT.fullmatch(function.partition("@")[0])
    plain = variant[1] if variant and function.startswith("_") else function.partition("@")[0]
    return "qsort" if classify_library_function(plain) == "sort" else plain  # nobody knows its own ways by their names


def _divide_phase(
    profile: Profile, phase: Phase, number: int, votes: Votes, rows: dict[tuple[Function, bool], int]
) -> Phase:
    """Return a phase in which the sampled functions have rows, and their shares of what was computed."""
    mine = {(q, row): counted for (p, q, row), counted in votes.items() if p == number}
    place = {int(row): at for at, row in enumerate(phase.regions)}
    wanted = sorted({
        rows[function, profile.regions[row].threaded]
        for (_, row), counted in mine.items() if row in place
        for function in counted if (function, profile.regions[row].threaded) in rows
    })  # fmt: skip
    at = {row: len(place) + index for index, row in enumerate(wanted)}
    arrays = {
        name: np.concatenate([values, np.zeros((len(wanted), *values.shape[1:]))])
        for name, values in phase.arrays.items()
    }
    for (q, row), counted in mine.items():
        source = place.get(row)
        if source is None:
            continue
        computed = phase.arrays["cpu_s"][source, q]
        for function, count in counted.items():
            target = rows.get((function, profile.regions[row].threaded))
            if target is None:
                continue
            part = computed * (count / counted.total())
            for name in ("wall_s", "cpu_s"):
                arrays[name][source, q] -= part
                arrays[name][at[target], q] += part
    return replace(phase, regions=np.r_[phase.regions, np.array(wanted, dtype=np.int64)], arrays=arrays)
