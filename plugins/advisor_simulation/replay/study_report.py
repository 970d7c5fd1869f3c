"""Sweeps, models, calibrations and costs as parts of a report."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model import units
from advisor.model.errors import UsageError
from advisor.model.reports import Axis, Cell, Column, Line, Part, Series, Table, Text
from advisor.support.atomic_write import atomic_write
from advisor_simulation.replay import diagnosis, study
from advisor_simulation.replay.outcome_report import describe_limit, describe_network

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.replay.calibration import Calibration
    from advisor_simulation.replay.costs import NetworkCosts, PathShare
    from advisor_simulation.replay.fitting import Coefficient, Plane
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.piecewise import PiecewiseTime
    from advisor_simulation.replay.study import FitStudy

_QUANTILES: Final = ((0.0, "least"), (0.25, "lower quarter"), (0.5, "median"), (0.75, "upper quarter"), (1.0, "most"))
_ROWS: Final = 12
_SAMPLES: Final = 40
#: Points that are listed one by one, at most.
_LISTED: Final = 50


def build_sweep_parts(
    points: Sequence[Network], time_s: FloatArray, exact: PiecewiseTime | None, line: Plane | None
) -> list[Part]:
    """Return run times over the points, the exact function beside the straight one, and a plot over latency."""
    found = np.quantile(time_s, [share for share, _ in _QUANTILES])
    rows = tuple((name, float(value)) for (_, name), value in zip(_QUANTILES, found, strict=True))
    parts: list[Part] = [
        Table(
            f"Run time at {units.format_count(len(points), 'point')}",
            (Column("of all points"), Column("run time", "s")),
            rows,
        )
    ]
    latency, gap = study.point_axes(points)
    if line is not None:
        error = np.abs(line.predict_times(latency, gap) / time_s - 1.0)
        parts.append(Text(
            f"The straight line T = {line.alpha.value:.6g} s + {line.beta.value:.6g} L + {line.gamma.value:.6g} B / BW "
            f"is off by {units.format_share(float(np.median(error)))} in the median, "
            f"{units.format_share(float(error.max()))} at most."
        ))  # fmt: skip
    if exact is not None:
        parts += _exact_parts(exact, latency, gap, time_s)
        parts.append(_latency_series(exact, line))
    return [*parts, *_point_parts(points, time_s)]


def _exact_parts(exact: PiecewiseTime, latency: FloatArray, gap: FloatArray, time_s: FloatArray) -> list[Part]:
    error = float(np.abs(exact.evaluate_times(latency, gap) / time_s - 1.0).max(initial=0.0))
    parts: list[Part] = [Text(
        f"Exactly, T is the largest of {units.format_count(len(exact.planes), 'plane')}, found by "
        f"{units.format_count(exact.replays, 'replay')}; at the points "
        f"above they differ from T by {error:.1e} of it at most"
        + (f", between them by {exact.below:.1e}." if exact.below > 1e-9 else ".")
    )]  # fmt: skip
    order = np.argsort(exact.planes[:, 1], kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(_ROWS, len(order))).astype(np.int64))]
    rows = tuple(tuple(float(value) for value in exact.planes[at]) for at in chosen)
    columns = (Column("alpha", "s"), Column("beta: latencies"), Column("gamma: bytes", "B"))
    title = "Planes of T = max(alpha + beta L + gamma / BW)" + (", some of them" if len(chosen) < len(order) else "")
    return [*parts, Table(title, columns, rows)]


def _latency_series(exact: PiecewiseTime, line: Plane | None) -> Series:
    """Return T over latency at the least and the most bandwidth, exactly and by the straight line."""
    latency = np.linspace(*exact.latencies_s, _SAMPLES)
    lines = []
    for gap in exact.gaps:
        name = "infinite bandwidth" if gap == 0 else units.format_quantity(1.0 / gap, "bandwidth")
        values = exact.evaluate_times(latency, np.full(_SAMPLES, gap))
        lines.append(Line(name, tuple(latency.tolist()), tuple(values.tolist())))
        if line is not None:
            straight = line.predict_times(latency, np.full(_SAMPLES, gap))
            lines.append(Line(f"{name}, straight line", tuple(latency.tolist()), tuple(straight.tolist())))
    return Series("Run time over latency", Axis("latency", "s"), Axis("run time", "s"), tuple(lines))


def _point_parts(points: Sequence[Network], time_s: FloatArray) -> list[Part]:
    """Return the replays as a plot, and as a table where they are few."""
    latency = study.point_axes(points)[0]
    order = np.argsort(latency, kind="stable")
    cloud = Line("replays", tuple(latency[order].tolist()), tuple(time_s[order].tolist()), joined=False)
    parts: list[Part] = [Series("All replays", Axis("latency", "s"), Axis("run time", "s"), (cloud,))]
    if len(points) <= _LISTED:
        columns = (Column("latency", "s"), Column("bandwidth", "B/s"), Column("CPU ratio"), Column("run time", "s"))
        parts.append(Table("Every point", columns, tuple(point_rows(points, time_s))))
    return parts


def point_rows(points: Sequence[Network], time_s: FloatArray) -> list[tuple[float, float | None, float, float]]:
    """Return latency, bandwidth (None: infinite), CPU ratio and run time of each point."""
    return [
        (point.latency_s, point.bandwidth if math.isfinite(point.bandwidth) else None, point.cpu_ratio, float(seconds))
        for point, seconds in zip(points, time_s, strict=True)
    ]


def write_points(points: Sequence[Network], time_s: FloatArray, path: Path) -> Text:
    """Write all points to ``path`` as JSON, and say so; raises ``UsageError`` where that fails."""
    names = ("latency_s", "bandwidth_Bps", "cpu_ratio", "time_s")
    document = {"columns": names, "rows": point_rows(points, time_s)}
    try:
        with atomic_write(path) as partial:
            partial.write_text(json.dumps(document) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--export {path}: {error.strerror or error}") from None
    return Text(f"All points are written to {path.name}.")


def build_fit_parts(found: FitStudy, asked: Sequence[int], at: Network | None) -> list[Part]:
    """Return the models at each P and over P, how well they predict, and predictions."""
    parts: list[Part] = [_rank_count_table(found)]
    if len(found.by_rank_count) > 1:
        parts.append(_lines_table(found))
    if len(found.by_rank_count) == 2:
        parts.append(Text(
            "Lines over P go through two points here: nothing is known of their errors, and little of what lies beyond."
        ))  # fmt: skip
    parts.append(_error_table(found))
    if asked:
        parts.append(_prediction_table(found, asked, at))
    return parts


def _format_coefficient(found: Coefficient) -> str:
    if not found.is_significant:
        return "N.S."
    return f"{found.value:.6g}" if np.isnan(found.error) else f"{found.value:.6g} ± {found.error:.2g}"


def _rank_count_table(found: FitStudy) -> Table:
    names = ("ranks", "LF", "alpha (s)", "alpha' (s)", "beta", "beta'", "gamma (B)", "gamma' (B)")
    rows = tuple(
        (
            one.processors, round(one.locality, 6), _format_coefficient(one.plain.alpha),
            _format_coefficient(one.primed.alpha),
            _format_coefficient(one.plain.beta), _format_coefficient(one.primed.beta),
            _format_coefficient(one.plain.gamma), _format_coefficient(one.primed.gamma),
        )
        for one in found.by_rank_count
    )  # fmt: skip
    title = (
        f"T = alpha + beta L + gamma / BW at each number of ranks, {found.fitted} replays each; ' with locality factor"
    )
    return Table(title, tuple(Column(name) for name in names), rows)


def _lines_table(found: FitStudy) -> Table:
    model = found.model
    rows = tuple(
        (name, over, _format_coefficient(line.constant), _format_coefficient(line.slope))
        for name, over, line in (
            ("alpha'", "1 / P", model.alpha), ("beta'", "P", model.beta), ("gamma'", "P", model.gamma)
        )
    )  # fmt: skip
    columns = (Column("coefficient"), Column("over"), Column("constant"), Column("slope"))
    return Table("T(P, L, BW) = alpha'(P) LF(P) + beta'(P) L + gamma'(P) / BW", columns, rows)


def _error_table(found: FitStudy) -> Table:
    rows = tuple(
        (one.processors, one.error, one.model_error, one.piecewise_error, one.planes) for one in found.by_rank_count
    )
    columns = (
        Column("ranks"), Column("straight line at this P", "share"), Column("model over P", "share"),
        Column("exact piecewise form", "share"), Column("its planes"),
    )  # fmt: skip
    return Table(f"Largest relative error at {found.checked} other random points", columns, rows)


def _prediction_table(found: FitStudy, asked: Sequence[int], at: Network | None) -> Table:
    latency, gap = (0.0, 0.0) if at is None else (at.latency_s, at.gaps[0])
    where = "an ideal network" if at is None else f"a network of {describe_network(at)}"
    rows = tuple(
        (count, round(found.model.locality_factor(count), 6), found.model.predict_time(count, latency, gap))
        for count in asked
    )
    title = f"Predicted run times on {where}; LF lies between those of traced numbers of ranks, or is the nearest one's"
    return Table(title, (Column("ranks"), Column("LF"), Column("run time", "s")), rows)


def build_calibration_parts(found: Calibration) -> list[Part]:
    """Return the network that was found, and how well it predicts."""
    unknown = [
        name for name, known in (("latency", found.known_latency), ("bandwidth", found.known_bandwidth)) if not known
    ]
    text = f"The recorded run is met best by {describe_network(found.network)}."
    if unknown:
        text += f" The run hardly depends on its {' and '.join(unknown)}: that is not known from it."
    if found.worst_error > diagnosis.BELIEVED:
        text += (
            " The run is not met by it: something else than the network decides how long its calls take, so this"
            " network is not to be believed."
        )
    rows: tuple[tuple[Cell, ...], ...] = (
        ("fitted half", *found.fitted_s, found.fitted_s[1] / found.fitted_s[0] - 1.0),
        ("predicted half", *found.predicted_s, found.prediction_error),
    )
    columns = (Column("pieces of the run"), Column("recorded", "s"), Column("replayed", "s"), Column("error", "share"))
    return [Text(text), Table("Every other piece is fitted, the rest predicted", columns, rows)]


def build_cost_parts(
    found: NetworkCosts | None, network: Network, shares: Sequence[PathShare], enough: tuple[float, float]
) -> list[Part]:
    """Return what network and imbalance cost, and where."""
    parts: list[Part] = []
    if found is not None:
        rows: tuple[tuple[Cell, ...], ...] = (
            ("recorded", found.recorded_s), ("on an ideal network", found.ideal_s),
            ("with balanced ranks as well", found.balanced_s), ("longest computation of a rank", found.longest_s),
            ("mean computation", found.mean_s),
        )  # fmt: skip
        parts.append(Table("Between start-up and shutdown", (Column("run"), Column("seconds", "s")), rows))
        if found.balanced_s > found.ideal_s:
            parts.append(Text(
                "With as much computation on each rank the run would be longer: who waits for whom decides here, not"
                " who has most to do."
            ))  # fmt: skip
        efficiencies = (("transfer", found.transfer_efficiency), ("serialization", found.serialization_efficiency))
        parts.append(Table("Efficiencies", (Column("efficiency"), Column("value", "share")), efficiencies))
    rows = tuple(
        (share.region, share.call, share.size or None, share.latency_s, share.transfer_s, share.bound_by)
        for share in shares[:_ROWS]
    )
    columns = (
        Column("region"), Column("call"), Column("messages from", "B"), Column("latency", "s"), Column("transfer", "s"),
        Column("bound by"),
    )  # fmt: skip
    title = f"On the critical path, on a network of {describe_network(network)}{describe_limit(len(shares), _ROWS)}"
    parts.append(Table(title, columns, rows))
    parts.append(Text(
        f"Up to a latency of {units.format_seconds(enough[0])}, and from a bandwidth of "
        f"{units.format_quantity(enough[1], 'bandwidth')} on, the run takes at most 1 % longer than without it."
    ))  # fmt: skip
    return parts
