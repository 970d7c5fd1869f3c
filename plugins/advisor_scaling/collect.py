"""From recorded runs, or from files of Extra-P, to the study that is fitted."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis import bounds, gaps, loads
from advisor.model.errors import UsageError
from advisor_scaling.locality import LONGEST, TOTAL
from advisor_scaling.study import FEWEST_POINTS, MeasuredSeries, ScalingStudy
from advisor_scaling.targets import MACHINE_GAPS
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, Gap, Profile
    from advisor_scaling.extrap_files import Measurements

    Observation = tuple[Mapping[str, float], Mapping[MeasuredSeries, float]]

#: A region has a model of its own where it takes that share of some run; the others are added up.
SHOWN_SHARE: Final = 0.01
#: A gap that never takes that share of a run has no model.
GAP_SHARE: Final = 0.001
#: The noise of a part is at least that share of the noise of the whole run.
NOISE_SHARE: Final = 0.02
RUN: Final = MeasuredSeries("run", "run")
OTHER: Final = MeasuredSeries("other regions", "region")
#: What the run takes besides its gaps: the computation, and gaps that have no model of their own.
REST: Final = MeasuredSeries("besides the gaps", "rest")
#: The same below the gaps of the machine (``MACHINE_GAPS``), and outside of all regions.
BELOW: Final = MeasuredSeries("besides the gaps of the machine", "rest")
OUTSIDE: Final = MeasuredSeries("outside the regions", "rest")


@dataclass(frozen=True, slots=True)
class ParameterSpans:
    """The parameters of a set of runs: those that change, those that never do, and those tied to another."""

    changing: tuple[str, ...]
    fixed: dict[str, float]
    tied: dict[str, str]


def from_profiles(profiles: Sequence[Profile]) -> ScalingStudy:
    """Return the study of the runs of one program: the run, its gaps, its regions, its messages and bytes.

    Parameters are those that the profiles state, and the number of ranks as ``P``. ``UsageError`` where the runs do not
    differ in anything, or in too little.
    """
    program, same, notes = _select_program(profiles)
    observations = [(numeric_parameters(profile), compute_series(profile)) for profile in same]
    return build_study(program, observations, notes, NOISE_SHARE)


def from_measurements(measurements: Measurements, path: Path) -> list[ScalingStudy]:
    """Return the studies of a file of Extra-P, one for each metric."""
    metrics = dict.fromkeys(metric for _, metric in measurements.values)
    studies = []
    for metric in metrics:
        regions = {region: rows for (region, of), rows in measurements.values.items() if of == metric}
        observations = _build_observations(measurements.parameters, regions, metric)
        studies.append(build_study(f"{path.stem}: {metric}" if metric else path.stem, observations, (), 0.0))
    return studies


def numeric_parameters(profile: Profile) -> dict[str, float]:
    """Return the numeric parameters of a run; ``P`` is its number of ranks unless a parameter counts processors."""
    found = {
        name: float(value)
        for name, value in profile.parameters.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    }
    if not any(PROCESSORS.fullmatch(name) for name in found):
        found["P"] = float(profile.ranks)
    return found


def compute_series(profile: Profile) -> dict[MeasuredSeries, float]:
    """Return the seconds of the run, of its gaps and of its regions (mean over processors), and its counts."""
    summary = loads.summarize_loads(profile)
    levels = bounds.compute_bounds(profile, None, summary)
    found = {RUN: profile.actual_s}
    found |= compute_gap_series(
        gaps.attribute_gaps(profile, levels, summary) if profile.has_run_time else (), profile.actual_s
    )
    number = max(len(profile.processors), 1)
    found |= compute_region_series(profile)
    found |= _compute_cpu_series(profile)
    for name, total in _sum_counts(profile).items():
        found[MeasuredSeries(f"{name} per processor", "count", "B" if name == "bytes" else "")] = total / number
    return found


def compute_region_series(profile: Profile) -> dict[MeasuredSeries, float]:
    """Return the own seconds of each region, mean over processors."""
    number = max(len(profile.processors), 1)
    return {
        MeasuredSeries(region, "region"): seconds / number for region, seconds in _sum_region_seconds(profile).items()
    }


def _compute_cpu_series(profile: Profile) -> dict[MeasuredSeries, float]:
    """Return the CPU time of all processors and of the one with most of it, where it was measured."""
    if not profile.has_measure("cpu_s"):
        return {}
    each = sum(np.nansum(phase.arrays["cpu_s"], axis=(0, 2)) for phase in profile.phases)
    return {
        MeasuredSeries(TOTAL, "count", "s"): float(np.sum(each)),
        MeasuredSeries(LONGEST, "count", "s"): float(np.max(each)),
    }


def _sum_counts(profile: Profile) -> dict[str, float]:
    """Return what was counted, over all processors: operations of the source or compiled, misses, messages."""
    found = {name: float(np.nansum(profile.counts[name])) for name in ("messages", "bytes") if name in profile.counts}
    for kind in ("compiled_ops.fp", "source_ops.fp"):
        of_kind = [float(np.nansum(array)) for name, array in profile.counts.items() if name.startswith(kind)]
        found |= {"operations": sum(of_kind)} if of_kind else {}
    last = max((name for name in profile.counts if re.fullmatch(r"misses\.(L\d|LL)", name)), default=None)
    return found | ({"misses": float(np.nansum(profile.counts[last]))} if last else {})


def compute_gap_series(found: Iterable[Gap], actual_s: float) -> dict[MeasuredSeries, float]:
    """Return the gaps; what is less than a billionth of the run is a remainder of sums."""
    return {
        MeasuredSeries(gap.name, "gap"): gap.seconds if abs(gap.seconds) > 1e-9 * actual_s else 0.0 for gap in found
    }


def _sum_region_seconds(profile: Profile) -> dict[str, float]:
    """Return the own wall time of each region, summed over phases, processors and iterations."""
    seconds: dict[str, float] = defaultdict(float)
    for phase in profile.phases:
        if "wall_s" in phase.arrays:
            each = np.nansum(phase.arrays["wall_s"], axis=(1, 2))
            for region, value in zip(phase.regions, each, strict=True):
                seconds[profile.regions[int(region)].name] += float(value)
    return seconds


def _select_program(profiles: Sequence[Profile]) -> tuple[str, list[Profile], tuple[str, ...]]:
    """Return the program with the most runs, its timed runs, and what was left out."""
    timed = [profile for profile in profiles if profile.has_run_time]
    if not timed:
        raise UsageError("none of these runs has a wall time; a model of time needs runs that were timed")
    names = [profile.program for profile in timed]
    program = max(dict.fromkeys(names), key=names.count)
    same = [profile for profile in timed if profile.program == program]
    left = len(profiles) - len(same)
    notes = (f"{left} runs of other programs or without times were left out",) if left else ()
    return program, same, notes + _describe_nonpositive(same)


def _describe_nonpositive(profiles: Sequence[Profile]) -> tuple[str, ...]:
    """Return the message about parameters that have no powers."""
    names = {
        name: None
        for profile in profiles
        for name, value in profile.parameters.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0
    }
    return (f"parameters that are not above 0 everywhere were left out: {', '.join(names)}",) if names else ()


def _build_observations(
    parameters: Sequence[str], regions: Mapping[str, Mapping[tuple[float, ...], list[float]]], metric: str
) -> list[Observation]:
    """Return one observation for each repeat at each point."""
    unit = "s" if "time" in metric.lower() or not metric else ""
    found: list[Observation] = []
    points = dict.fromkeys(point for rows in regions.values() for point in rows)
    for point in points:
        repeats = max(len(rows.get(point, ())) for rows in regions.values())
        for repeat in range(repeats):
            values = {
                MeasuredSeries(region or "run", "region" if region else "run", "s" if unit == "s" else ""): rows[point][
                    repeat
                ]
                for region, rows in regions.items()
                if repeat < len(rows.get(point, ()))
            }
            found.append((dict(zip(parameters, point, strict=True)), values))
    return found


def build_study(
    program: str, observations: Sequence[Observation], notes: Sequence[str], noise_share: float
) -> ScalingStudy:  # fmt: skip
    """Return the study of observed (parameters, values); ``UsageError`` where they lie at too few points.

    ``noise_share``: the noise of a part is at least that share of the noise of the run.
    """
    spans = find_spans([parameters for parameters, _ in observations])
    rows: dict[tuple[float, ...], list[Mapping[MeasuredSeries, float]]] = defaultdict(list)
    for parameters, values in observations:
        rows[tuple(parameters[name] for name in spans.changing)].append(values)
    if not spans.changing or len(rows) < FEWEST_POINTS:
        raise UsageError(
            f"the {len(observations)} runs differ in only {len(rows)} points of their parameters; a model needs runs "
            f"at {FEWEST_POINTS} or more, better five. State parameters in gapwatch.json beside each profile, as in "
            '{"parameters": {"N": 512}}'
        )
    points = sorted(rows)
    _require_above_zero(spans.changing, points)
    series, more = _select_series([rows[point] for point in points])
    measured = _build_array(series, [rows[point] for point in points])
    if noise_share:
        series, measured = _add_rests(series, measured)
    series, measured, less = _select_fittable(series, measured)
    center = np.nanmedian(measured, axis=2)
    whole = center[series.index(RUN)] if RUN in series and noise_share else np.zeros(len(points))
    scale = _replace_zeros(np.maximum(np.abs(center), noise_share * whole))
    return ScalingStudy(
        program, spans.changing, np.array(points), tuple(series), measured, scale, spans.fixed, spans.tied,
        (*notes, *more, *less),
    )  # fmt: skip


def is_machine_gap(series: MeasuredSeries) -> bool:
    """Return whether a gap, or all that are merged in it, lies below the computation that was measured."""
    return series.kind == "gap" and set(series.name.split("+")) <= MACHINE_GAPS


def _add_rests(
    series: Sequence[MeasuredSeries], measured: FloatArray
) -> tuple[list[MeasuredSeries], FloatArray]:  # fmt: skip
    """Return the series and what the run takes besides its gaps, and besides its regions: so parts sum to the run.

    A rest that never takes ``GAP_SHARE`` of the run is left out.
    """
    known = np.where(np.isnan(measured), np.nanmedian(measured, axis=2, keepdims=True), measured)
    whole = measured[list(series).index(RUN)]
    upper = [at for at, one in enumerate(series) if one.kind == "gap" and not is_machine_gap(one)]
    machine = [at for at, one in enumerate(series) if is_machine_gap(one)]
    regions = [at for at, one in enumerate(series) if one.kind == "region"]
    rests = {
        REST: (upper, whole - known[upper].sum(axis=0)),
        BELOW: (machine, whole - known[upper + machine].sum(axis=0)),
        OUTSIDE: (regions, whole - known[regions].sum(axis=0)),
    }
    shown = {one: rest for one, (parts, rest) in rests.items() if parts and np.nanmax(rest / whole) >= GAP_SHARE}
    return [*series, *shown], np.stack([*measured, *shown.values()])


def _require_above_zero(names: Sequence[str], points: Sequence[tuple[float, ...]]) -> None:
    """Raise ``UsageError`` for parameters that are not positive everywhere: models consist of their powers."""
    for name, values in zip(names, zip(*points, strict=True), strict=True):
        if min(values) <= 0.0:
            raise UsageError(f"{name} is {min(values):g} at some points; models are powers of values above 0: shift it")


def _select_fittable(
    series: Sequence[MeasuredSeries], measured: FloatArray
) -> tuple[list[MeasuredSeries], FloatArray, list[str]]:  # fmt: skip
    """Return the series that are above zero somewhere, their values, and what is said of the others.

    ``UsageError`` where there are no such series.
    """
    some = [at for at in range(len(series)) if np.nanmax(measured[at]) > 0.0]
    gone = [each.name for at, each in enumerate(series) if at not in some]
    if not some:
        raise UsageError(f"no value is above 0 at any point: {', '.join(gone)}; there is nothing to model")
    said = [f"nowhere above 0, and without a model: {', '.join(gone)}"] if gone else []
    return [series[at] for at in some], measured[some], said


def _replace_zeros(scale: FloatArray) -> FloatArray:
    """Return what noise is relative to: of a value of zero the least of its series that is not zero."""
    least = np.where(scale > 0.0, scale, np.inf).min(axis=1, keepdims=True)
    return np.asarray(np.where(scale > 0.0, scale, least))


def find_spans(runs: Sequence[Mapping[str, float]]) -> ParameterSpans:
    """Return which parameters change in a set of runs; those that not every run states do not count.

    A parameter is tied to another when each value of the one goes with one value of the other (weak scaling on a line):
    then only the number of processors, else the first, is kept.
    """
    names = [name for name in runs[0] if all(name in run for run in runs)] if runs else []
    fixed = {name: runs[0][name] for name in names if len({run[name] for run in runs}) == 1}
    changing = [name for name in names if name not in fixed]
    changing.sort(key=lambda name: not PROCESSORS.fullmatch(name))
    tied: dict[str, str] = {}
    for kept, other in combinations(changing, 2):
        pairs = {(run[kept], run[other]) for run in runs}
        alone = len({run[kept] for run in runs}), len({run[other] for run in runs})
        if kept not in tied and other not in tied and len(pairs) == alone[0] == alone[1]:
            tied[other] = kept
    rest = sorted((name for name in changing if name not in tied), key=lambda name: names.index(name))
    return ParameterSpans(tuple(rest), fixed, tied)


def _select_series(rows: Sequence[Sequence[Mapping[MeasuredSeries, float]]]) -> tuple[list[MeasuredSeries], list[str]]:
    """Return the series to model, and which gaps were not known in every run."""
    runs = [run for point in rows for run in point]
    known = dict.fromkeys(series for run in runs for series in run)
    everywhere = [s for s in known if s.kind == "region" or all(any(s in run for run in point) for point in rows)]
    partial = [series.name for series in known if series.kind == "gap" and series not in everywhere]
    largest = {
        series: max(run.get(series, 0.0) / (run.get(RUN) or np.inf) for run in runs) for series in everywhere
    }  # fmt: skip
    least = {"region": SHOWN_SHARE, "gap": GAP_SHARE} if RUN in known else {}
    shown = [s for s in everywhere if largest[s] >= least.get(s.kind, -np.inf)]
    if sum(s.kind == "region" for s in shown) < sum(s.kind == "region" for s in everywhere):
        shown.append(OTHER)
    text = f"gaps that are not separated in every run have no model: {', '.join(sorted(partial))}" if partial else ""
    return shown, [text] if text else []


def _build_array(
    series: Sequence[MeasuredSeries], rows: Sequence[Sequence[Mapping[MeasuredSeries, float]]]
) -> FloatArray:
    """Return the values (k, n, repeats), NaN for none; a region that a run does not call took it no time."""
    values = np.full((len(series), len(rows), max(map(len, rows))), np.nan)
    named = set(series)
    for n, point in enumerate(rows):
        for r, run in enumerate(point):
            rest = sum(value for each, value in run.items() if each.kind == "region" and each not in named)
            for k, each in enumerate(series):
                absent = 0.0 if each.kind == "region" and RUN in run else np.nan
                values[k, n, r] = rest if each == OTHER else run.get(each, absent)
    return values
