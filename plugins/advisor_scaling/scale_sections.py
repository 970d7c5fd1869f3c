"""The parts of the report of ``gapwatch scale``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from advisor.model.reports import Axis, Cell, Code, Column, Line, Part, Series, Table, Text
from advisor_scaling import dominance, equations, forecasts, joint_forecasts, next_run, study

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_scaling.engine import FittedModels
    from advisor_scaling.forecasts import Forecast
    from advisor_scaling.study import ScalingStudy


def describe_study(each: ScalingStudy) -> str:
    """Return in words what the models are made from."""
    spans = "; ".join(
        f"{name} = {', '.join(f'{value:g}' for value in np.unique(each.points[:, at]))}"
        for at, name in enumerate(each.parameters)
    )
    text = f"{each.program}: {each.run_count} runs at {len(each.points)} points: {spans}."
    if each.fixed:
        text += f" In all runs {', '.join(f'{name} = {value:g}' for name, value in each.fixed.items())}."
    for name, other in each.tied.items():
        text += f" {name} changes only together with {other}, so what grows with {other} may be due to {name}."
    return " ".join([text, *(f"{note[0].upper()}{note[1:]}." for note in each.notes)])


def build_model_tables(each: ScalingStudy, fits: FittedModels, checked: Forecast | None) -> list[Part]:
    """Return tables of models: equation, errors, the probability of the sum of terms that stands for all."""
    errors = np.median(np.abs(study.relative_errors(fits, forecasts.compute_forecast(fits, each.points).value)), axis=1)
    left = np.nanmedian(np.abs(study.relative_errors(fits, checked.value)), axis=1) if checked is not None else None
    chosen, powers = forecasts.representative_sums(fits), forecasts.central_powers(fits)
    parts: list[Part] = []
    for unit, which in _group_by_unit(each).items():
        rows: list[tuple[Cell, ...]] = []
        for at in which:
            text = equations.export_equation(study.series_equation(each, fits, at), "text").partition(" = ")[2]
            weight = float(fits.candidates.probability[at, chosen[at]])
            most = float(fits.averaged.mean[at].max())
            grows = _format_powers(each.parameters, powers[at])
            row: tuple[Cell, ...] = (_series_name(each.series[at]), most, text, weight, grows, float(errors[at]))
            rows.append((*row, float(left[at])) if left is not None else row)
        heads = (Column("what"), Column("at most", unit), Column("equation"), Column("weight", "share"),
                 Column("highest power"), Column("error", "share"),
                 *([Column("left out", "share")] if left is not None else []))  # fmt: skip
        parts.append(Table("Models" if unit == "s" else "Models of counts", heads, tuple(rows)))
    return parts


def _format_powers(parameters: Sequence[str], powers: FloatArray) -> str:
    """Return the highest power of each parameter in words; nothing of those that none depends on."""
    return ", ".join(f"{name} {power:.3g}" for name, power in zip(parameters, powers, strict=True) if power) or "0"


def _group_by_unit(each: ScalingStudy) -> dict[Literal["s", "B", ""], list[int]]:
    """Return the series by their unit: a column of a table has one."""
    found: dict[Literal["s", "B", ""], list[int]] = {}
    for at, series in enumerate(each.series):
        found.setdefault(series.unit, []).append(at)
    return found


def _series_name(series: study.MeasuredSeries) -> str:
    return f"gap {series.name}" if series.kind == "gap" else series.name


def build_check_parts(each: ScalingStudy, fits: FittedModels, checked: Forecast) -> list[Part]:
    """Return how far each point of the first series was off when it was left out of the fit."""
    values = each.values[0]
    errors = study.relative_errors(fits, checked.value)[0]
    known = ~np.isnan(errors)
    if not known.any():
        return [Text("There are too few points for cross-validation.")]
    inside = (values >= checked.low[0][:, None]) & (values <= checked.high[0][:, None])
    hit = inside[~np.isnan(values)].mean()
    within = float((np.abs(errors[known]) <= 0.2).mean())
    rows = tuple(
        (*each.points[at].tolist(), float(fits.averaged.mean[0, at]), float(checked.value[0, at]), float(errors[at]))
        for at in np.flatnonzero(known)
    )
    heads = (*(Column(name) for name in each.parameters), Column("measured", "s"), Column("predicted", "s"),
             Column("error", "share"))  # fmt: skip
    text = (
        f"Left out of the fit, {within:.0%} of the points of {each.series[0].name} are predicted within 20 %, "
        f"half of them within {np.median(np.abs(errors[known])):.1%}; {hit:.0%} of the runs lie in their 80 % interval."
    )
    return [Table(f"Each point of {each.series[0].name}, left out of the fit", heads, rows), Text(text)]


def build_prediction_parts(each: ScalingStudy, fits: FittedModels, points: FloatArray, level: float) -> list[Part]:
    """Return a table with value and interval of each series at each point, and what to beware of."""
    said = joint_forecasts.forecast_jointly(each, fits, points, level)
    ends = (said.value, said.low, said.high)
    parts: list[Part] = []
    for unit, which in _group_by_unit(each).items():
        heads = (*(Column(name) for name in each.parameters), Column("what"), Column("predicted", unit),
                 Column(f"{level:.0%} from", unit), Column("to", unit))  # fmt: skip
        rows = tuple(
            (*points[t].tolist(), _series_name(each.series[k]), *(float(end[k, t]) for end in ends))
            for t in range(len(points))
            for k in which
        )
        parts.append(Table("Predictions" if unit == "s" else "Predictions of counts", heads, rows))
    beware = dict.fromkeys(text for point in points for text in study.describe_warnings(each, point.tolist()))
    return [*parts, *(Text(f"Beware: {text}.") for text in beware)]


def build_course_parts(each: ScalingStudy, fits: FittedModels, target: FloatArray, level: float) -> list[Part]:
    """Return how the gaps (or the run) go on up to the target: a plot, and where one overtakes another."""
    seen = dominance.compute_course(each, fits, target.tolist(), level)
    parts: list[Part] = [build_curves(each, seen), Text(" ".join(_describe_dominance(each, seen, _format_held(seen))))]
    return [part for part in parts if not isinstance(part, Text) or part.text]


def complete_picture(each: ScalingStudy, course: Series) -> Series:
    """Return the plot for a separate file: with the program's name, and a line at the largest measured value."""
    measured = float(np.asarray(each.points)[:, each.parameters.index(course.x.name)].max())
    heights = [height for line in course.lines for height in (*line.low, *line.high) if height > 0.0] or [1.0]
    edge = Line("largest measured", (measured, measured), (min(heights), max(heights)))
    return replace(course, title=f"{each.program}: {course.title}", lines=(*course.lines, edge))


def build_curves(each: ScalingStudy, seen: dominance.ForecastCourse) -> Series:
    """Return the forecasts along one parameter as lines with their bands."""
    lines = []
    for k in seen.series:
        value, low, high = (end[k] for end in (seen.forecast.value, seen.forecast.low, seen.forecast.high))
        lines.append(
            Line(_series_name(each.series[k]), _to_floats(seen.x), _to_floats(value), _to_floats(low), _to_floats(high))
        )
    held = _format_held(seen)
    title = f"Over {seen.parameter}" + (f" at {held}" if held else "")
    return Series(title, Axis(seen.parameter, scale="log"), Axis("seconds", "s", "log"), tuple(lines))


def _format_held(seen: dominance.ForecastCourse) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in seen.fixed_values.items())


def _to_floats(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _describe_dominance(each: ScalingStudy, seen: dominance.ForecastCourse, held: str) -> Iterable[str]:
    if len(seen.series) < 2:
        return
    values = seen.forecast.value[list(seen.series)]
    first, last = (_series_name(each.series[seen.series[int(values[:, at].argmax())]]) for at in (0, -1))
    where = f" ({held})" if held else ""
    if not values[:, 0].max() > 0.0:
        first = "none"
    yield f"At {seen.parameter} = {seen.x[0]:g}{where} {first} is the largest."
    for change in dominance.find_overtakings(each, seen):
        yield f"At {change.at:g} {change.winner} overtakes {change.loser}."
    yield f"At {seen.parameter} = {seen.x[-1]:g} {last} is the largest."


def build_elasticity_table(each: ScalingStudy, fits: FittedModels, target: FloatArray) -> Table:
    """Return by how many per cent each series grows when a parameter grows by one per cent, at the target."""
    at = dict(zip(each.parameters, target.tolist(), strict=True))
    rows: list[tuple[Cell, ...]] = []
    for k, series in enumerate(each.series):
        equation = study.series_equation(each, fits, k)
        rows.append((_series_name(series), *(equation.compute_elasticity(name, at) for name in each.parameters)))
    where = " ".join(f"{name}={value:g}" for name, value in at.items())
    heads = (Column("what"), *(Column(f"by {name}") for name in each.parameters))
    return Table(f"Elasticities at {where}: per cent of time per per cent of the parameter", heads, tuple(rows))


def build_next_run_parts(each: ScalingStudy, fits: FittedModels, target: FloatArray) -> list[Part]:
    """Return the runs that would narrow the prediction of the first series most, as command lines."""
    found = next_run.rank_next_runs(each, fits, 0, target.tolist())[:3]
    if not found:
        return [Text("No run of bearable cost would say more.")]
    heads = (*(Column(name) for name in each.parameters), Column("takes", "s"), Column("leaves of the error", "share"))
    rows = tuple((*run.point, run.seconds, run.narrowed) for run in found)
    where = " ".join(f"{name}={value:g}" for name, value in zip(each.parameters, target, strict=True))
    return [
        Table(f"Runs that would narrow the prediction at {where}", heads, rows),
        Code("The most useful one", "sh", next_run.format_command(each, found[0])),
    ]


def export_equations(each: ScalingStudy, fits: FittedModels, language: equations.Language) -> Sequence[tuple[str, str]]:
    """Return name and equation of each series."""
    return [
        (_series_name(series), equations.export_equation(study.series_equation(each, fits, at), language))
        for at, series in enumerate(each.series)
    ]  # fmt: skip
