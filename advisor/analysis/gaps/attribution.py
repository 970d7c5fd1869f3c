"""Where the seconds of a gap come from: regions, processors, iterations, and what lies outside all phases.

The three layouts of a gap each add up to it. Gaps between averages (up to IPCO) are differences of what the two bounds
are made of. L, M' and D follow docs/concepts.md: for each parallel phase r, B_r is what its slowest processor has more
than the mean and D_r what changing sides costs; L and M' take their share of all B_r. Beyond IPCOLMD it is the time of
the processor that decides each instance. A merged gap is the sum of its parts, as far as they are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.bounds import are_durations_known, compute_bound_seconds, instance_durations
from advisor.analysis.gaps import inner_waits
from advisor.analysis.loads import ProfileLoads, SecondsSpread, summarize_loads
from advisor.analysis.machine_bounds import COUNTS, seconds_by_place
from advisor.analysis.measures import find_system_measures
from advisor.model.records import BOUND_NAMES, LEVELS, OTHER_PROGRAMS, Bound, FloatArray, Profile
from advisor.support.grouping import sum_by_group

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine

_PLACE: Final = {name: place for place, name in enumerate(BOUND_NAMES)}
#: Seconds below this share of the run are rounding, whatever their sign.
ROUNDING: Final = 1e-9
#: Imbalance below this share of the work is rounding and cannot be laid out.
LEAST_IMBALANCE: Final = 1e-13


@dataclass(frozen=True, slots=True)
class AttributionSource:
    """The inputs of attribution; ``machine`` gives the functional unit that limits MA and MAC.

    ``values`` are the bounds from I on as far as they can be computed, also those that are not reported.
    """

    profile: Profile
    loads: ProfileLoads
    values: Mapping[str, float]
    machine: Machine | None = None


def build_source(profile: Profile, loads: ProfileLoads | None, machine: Machine | None) -> AttributionSource:
    """Return what attribution works on; ``loads`` spares the pass over the arrays."""
    loads = loads or summarize_loads(profile)
    values = compute_bound_seconds(loads) | {"actual": profile.actual_s}
    if are_durations_known(profile):
        values["IPCOLMDSW"] = float(instance_durations(profile).sum())
    return AttributionSource(profile, loads, values, machine)


@dataclass(frozen=True, slots=True)
class GapPart:
    """The part of a gap that belongs to ``gap_letters``; several if they cannot be distinguished."""

    letters: tuple[str, ...]
    spread: SecondsSpread


def attribute_between(source: AttributionSource, lower: Bound, upper: Bound) -> tuple[GapPart, ...]:
    """Return the seconds between two bounds that have a value, laid out; the pieces add up to the gap."""
    low, high = lower.seconds or 0.0, upper.seconds or 0.0
    if _PLACE[upper.name] <= _PLACE["IPCO"]:
        return _average_differences(source, lower, upper.name, _average_spread(source, upper.name, high))
    if lower.name == "IPC" and source.loads.quantities.all_but_io:
        # the I/O that was seen, a mean over the processors, and what is outside their times
        seen = GapPart(("O",), _mean_io(source))
        if gap_letters(source, "IPC", upper.name) == ("O",):
            return (seen,)
        return (seen, GapPart(("X",), _outside_spread(source, (high - low) - float(seen.spread.iterations.sum()))))
    if not source.loads.quantities.work.is_known:
        return (_attribute_without_work(source, lower, upper),)
    pieces: tuple[GapPart, ...] = ()
    reached = low
    if _PLACE[lower.name] < _PLACE["IPCO"]:
        work = source.loads.spreads["IPCO"]
        pieces, reached = _average_differences(source, lower, "IPCO", work), float(work.iterations.sum())
    if _PLACE[lower.name] < _PLACE["IPCOLMD"]:
        pieces, reached = pieces + _attribute_imbalance(source, lower.name, upper.name), source.values["IPCOLMD"]
    return pieces + _attribute_waiting_and_rest(source, lower.name, upper.name, high - reached)


def sum_parts(source: AttributionSource, pieces: tuple[GapPart, ...]) -> SecondsSpread:
    """Return the sum of the pieces."""
    spread = source.loads.empty_spread
    for piece in pieces:
        spread = spread.add_scaled(piece.spread)
    return spread


def letters_between(lower: str, upper: str) -> tuple[str, ...]:
    """Return the letters of the gaps from one bound up to another."""
    levels = LEVELS[_PLACE[lower] + 1 : _PLACE[upper] + 1]
    return tuple(level.gap for level in levels if level.gap)


def gap_letters(source: AttributionSource, lower: str, upper: str) -> tuple[str, ...]:
    """Return the letters of the gap between two bounds that have a value.

    Where nothing but I/O is told apart, everything else is in IPC, and all that lies above it is the I/O that was seen,
    with X where processors' times do not fill the run.
    """
    if lower != "IPC" or not source.loads.quantities.all_but_io:
        return letters_between(lower, upper)
    gap = source.values.get(upper, 0.0) - source.values["IPC"]
    left = gap - float(_mean_io(source).iterations.sum())
    return ("O",) if abs(left) <= ROUNDING * source.profile.actual_s else ("O", "X")


def _mean_io(source: AttributionSource) -> SecondsSpread:
    """Return the mean over the processors of their seconds of I/O and without a core."""
    loads, profile = source.loads, source.profile
    names = find_system_measures(profile)
    arrays = [sum((phase.arrays[name] for name in names), np.zeros(1)) for phase in profile.phases]
    share = 1.0 / loads.processors
    return SecondsSpread(
        np.concatenate([array.sum(axis=(1, 2)) for array in arrays]) * share,
        loads.empty_spread.rest,
        sum((array.sum(axis=(0, 2)) for array in arrays), np.zeros(loads.processors)) * share,
        np.concatenate([array.sum(axis=(0, 1)) for array in arrays]) * share,
    )


def _average_differences(
    source: AttributionSource, lower: Bound, upper: str, top: SecondsSpread
) -> tuple[GapPart, ...]:
    """Return the differences of neighbouring averages, those between the two bounds included where they are known."""
    names = [name for name in source.loads.spreads if _PLACE[lower.name] < _PLACE.get(name, 0) < _PLACE[upper]]
    steps = [(lower.name, _average_spread(source, lower.name, lower.seconds or 0.0))]
    steps += [(name, source.loads.spreads[name]) for name in sorted(names, key=_PLACE.__getitem__)]
    return tuple(
        GapPart(letters_between(low, high), above.add_scaled(below, -1.0))
        for (low, below), (high, above) in pairwise([*steps, (upper, top)])
    )


def _average_spread(source: AttributionSource, name: str, total: float) -> SecondsSpread:
    """Return the seconds behind a bound that is a mean."""
    return _machine_spread(source, name, total) if name in COUNTS else source.loads.spreads[name]


def _machine_spread(source: AttributionSource, name: str, total: float) -> SecondsSpread:
    """Return the seconds of a machine bound; counts have no phases, so they follow the lowest bound that has."""
    loads, profile = source.loads, source.profile
    place = seconds_by_place(name, profile, source.machine, total)
    guide = next(
        (loads.spreads[each] for each in ("I", "IP", "IPC", "IPCO") if each in loads.spreads), loads.empty_spread
    )
    region = np.concatenate([np.zeros(0, dtype=np.int64), *(phase.regions for phase in profile.phases)])
    weight = np.maximum(guide.regions, 0.0)
    count = len(profile.regions)
    known = sum_by_group(region, weight, count)
    weight = np.where(known[region] > 0, weight, 1.0)
    all_weights = sum_by_group(region, weight, count)
    each = place.sum(axis=1)
    regions = np.divide(weight * each[region], all_weights[region])
    nowhere = float(each[all_weights == 0].sum())
    spread = loads.empty_spread.add_scaled(
        SecondsSpread(regions, np.zeros(len(profile.phases)), place.sum(axis=0), loads.empty_spread.iterations)
    )
    iterations = _share_over_iterations(loads, loads.sum_by_phase(spread), guide.iterations)
    outside = {"outside all phases": nowhere} if nowhere else {}
    return SecondsSpread(spread.regions, spread.rest, spread.processors, iterations, outside)


def _share_over_iterations(loads: ProfileLoads, of_phase: FloatArray, guide: FloatArray) -> FloatArray:
    """Return the seconds of each phase shared out over its iterations as ``guide`` is."""
    lengths = np.diff(loads.iteration_first)
    phase = np.repeat(np.arange(len(lengths)), lengths)
    weight = np.maximum(guide, 0.0)
    weight = np.where(sum_by_group(phase, weight, len(lengths))[phase] > 0, weight, 1.0)
    shared: FloatArray = of_phase[phase] * weight / sum_by_group(phase, weight, len(lengths))[phase]
    return shared


def _attribute_imbalance(source: AttributionSource, lower: str, upper: str) -> tuple[GapPart, ...]:
    """Return L, M' and D, those of them that lie between two bounds."""
    loads, values = source.loads, source.values
    steady = loads.spreads.get("steady", loads.empty_spread)
    everything = float(steady.iterations.sum())
    pieces = []
    for letter, low, high in (("L", "IPCO", "IPCOL"), ("M'", "IPCOL", "IPCOLM"), ("D", "IPCOLM", "IPCOLMD")):
        if _PLACE[low] < _PLACE[lower] or _PLACE[upper] < _PLACE[high]:
            continue
        if letter == "D":
            pieces.append(GapPart((letter,), loads.spreads.get("dynamic", loads.empty_spread)))
        elif everything > LEAST_IMBALANCE * abs(values["IPCOLM"]):
            pieces.append(
                GapPart((letter,), loads.empty_spread.add_scaled(steady, (values[high] - values[low]) / everything))
            )
    return tuple(pieces)


def _attribute_waiting_and_rest(source: AttributionSource, lower: str, upper: str, rest: float) -> tuple[GapPart, ...]:
    """Return synchronization, waiting inside the phases and what lies outside them, ``rest`` seconds together."""
    loads = source.loads
    pieces: list[GapPart] = []
    if "sync" in loads.spreads and _PLACE[lower] < _PLACE["IPCOLMDS"] <= _PLACE[upper]:
        pieces.append(GapPart(("S'",), loads.spreads["sync"]))
    if _PLACE[lower] < _PLACE["IPCOLMDSW"] <= _PLACE[upper]:
        pieces.append(GapPart(("W",) if "sync" in loads.spreads else ("S'", "W"), _waiting_spread(source)))
    if upper == "actual":
        inside = sum(float(piece.spread.iterations.sum()) for piece in pieces)
        pieces.append(GapPart(("X",), _outside_spread(source, rest - inside)))
    return tuple(pieces)


def _waiting_spread(source: AttributionSource) -> SecondsSpread:
    """Return W: what each instance takes longer than its deciding processor works and synchronizes."""
    loads, profile = source.loads, source.profile
    waits = loads.spreads.get("wait", loads.empty_spread)
    if not are_durations_known(profile):
        return waits
    spent = np.concatenate([phase.peak for phase in loads.phases])
    if "sync" in loads.spreads:
        spent = spent + loads.spreads["sync"].iterations
    iterations = instance_durations(profile) - spent
    decider = np.concatenate([phase.decider for phase in loads.phases])
    processors = sum_by_group(decider, iterations, loads.processors)
    total = np.add.reduceat(iterations, loads.iteration_first[:-1])
    inner = inner_waits.select_inner_waits(profile, loads, total)
    regions = inner_waits.sum_by_region(profile, loads, inner, total)
    explained = loads.sum_by_phase(SecondsSpread(regions, np.zeros(len(total)), processors, iterations)) != 0
    regions = np.where(np.repeat(explained, np.diff(loads.region_first)), regions, waits.regions)
    rest = np.where(explained, 0.0, total - loads.sum_by_phase(waits))
    return SecondsSpread(regions, rest, processors, iterations)


def _outside_spread(source: AttributionSource, total: float) -> SecondsSpread:
    """Return ``sum_parts`` seconds outside all phases by their parts; every processor spends them."""
    loads, profile = source.loads, source.profile
    empty = loads.empty_spread
    processors = np.full(loads.processors, total / loads.processors)
    named = _edge_seconds(profile)
    if not profile.has_phases and loads.phases and loads.phases[0].has_work:
        slowest = loads.phases[0].slowest
        processors = total * (np.arange(loads.processors) == slowest)
        named = {name: float(each[slowest]) for name, each in profile.outside.items()}
    return SecondsSpread(
        empty.regions, empty.rest, processors, empty.iterations, _limit_parts(named, total, profile.actual_s)
    )


def _edge_seconds(profile: Profile) -> dict[str, float]:
    """Return the seconds before the first instance and after the last, and those in which others held the cores.

    Phases are taken to be shorter by the delays in them, so that the last one seems to end before its end.
    """
    taken = profile.outside.get(OTHER_PROGRAMS)
    others = {} if taken is None else {OTHER_PROGRAMS: float(taken.max())}
    if are_durations_known(profile) and all(phase.start_s is not None for phase in profile.phases):
        starts = [phase.start_s for phase in profile.phases if phase.start_s is not None]
        lengths = [phase.duration_s for phase in profile.phases if phase.duration_s is not None]
        first = min(float(start.min()) for start in starts)
        last = max(float((start + length).max()) for start, length in zip(starts, lengths, strict=True))
        if first >= 0.0 and last <= profile.actual_s * (1 + ROUNDING):
            shutdown = profile.actual_s - last - others.get(OTHER_PROGRAMS, 0.0)
            return {"start-up": first, "shutdown": max(shutdown, 0.0), **others}
    edges = {name: float(profile.outside[name].mean()) for name in ("start-up", "shutdown") if name in profile.outside}
    return {**edges, **others}


def _limit_parts(named: Mapping[str, float], total: float, actual_s: float) -> dict[str, float]:
    """Return parts that add up to ``sum_parts``: never more than it, and the rest by that name."""
    known = {name: part for name, part in named.items() if part > 0}
    claimed = sum(known.values())
    if claimed > max(total, 0.0):
        known = {name: part * max(total, 0.0) / claimed for name, part in known.items()} if total > 0 else {}
    rest = total - sum(known.values())
    if known and abs(rest) <= ROUNDING * actual_s:
        largest = max(known, key=known.__getitem__)
        return known | {largest: known[largest] + rest}
    return known | {"rest": rest} if rest else known


def _attribute_without_work(source: AttributionSource, lower: Bound, upper: Bound) -> GapPart:
    """Return a gap across the work of the processors where that is not known: by phase and iteration only."""
    loads, profile = source.loads, source.profile
    gap = (upper.seconds or 0.0) - (lower.seconds or 0.0)
    rest, iterations = loads.empty_spread.rest, loads.empty_spread.iterations
    if are_durations_known(profile) and lower.name != "IPCOLMDSW":
        iterations = instance_durations(profile) - _average_spread(source, lower.name, lower.seconds or 0.0).iterations
        rest = np.add.reduceat(iterations, loads.iteration_first[:-1])
    left = gap - float(iterations.sum())
    outside = _limit_parts(_edge_seconds(profile), left, profile.actual_s) if upper.name == "actual" else {}
    processors = np.full(loads.processors, gap / loads.processors)
    spread = SecondsSpread(loads.empty_spread.regions, rest, processors, iterations, outside)
    return GapPart(letters_between(lower.name, upper.name), spread)
