"""What ``gapwatch scale --model`` and ``--linear`` show: counts, costs, equation, sensitivity, machines compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.reports import Axis, Code, Column, Line, Series, Table, Text
from advisor_scaling.linear import expressions, machine_comparison, model
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.model.records import FloatArray
    from advisor.model.reports import Cell, Part
    from advisor_scaling.linear.model import LinearModel


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """What was measured: ``points`` (n, m), ``seconds`` (n,)."""

    points: FloatArray
    seconds: FloatArray


def build_model_parts(each: LinearModel, at: FloatArray, language: str | None) -> list[Part]:
    """Return the table of columns (count, cost, share of the time at the last point of ``at``) and the equation."""
    parts = each.column_seconds(at[-1:])[:, 0]
    rows: list[tuple[Cell, ...]] = [
        (
            column,
            expressions.format_expression(each.x[column]),
            each.beta[column],
            float(part),
            float(part / max(parts.sum(), 1e-300)),
        )
        for column, part in zip(each.columns, parts, strict=True)
    ]
    where = _format_point(each.parameters, at[-1])
    heads = (Column("column"), Column("count"), Column("cost of one", "s"), Column(f"at {where}", "s"),
             Column("share", "share"))  # fmt: skip
    return [
        Table(f"T = X beta of {each.name}", heads, tuple(rows)),
        Code("", language or "text", model.export_model(each, language or "text")),
    ]


def _format_point(parameters: Sequence[str], point: FloatArray) -> str:
    return " ".join(f"{name}={value:g}" for name, value in zip(parameters, point, strict=True))


def build_error_parts(each: LinearModel, measured: MeasuredTimes) -> list[Part]:
    """Return how far the model is off the runs, as the source states it: (predicted - actual) / actual."""
    off = each(measured.points) / measured.seconds - 1.0
    share = float((np.abs(off) <= 0.2).mean())
    return [
        Text(
            f"Of {len(off)} points, {share:.0%} are within 20 % of the measured time, half of them within "
            f"{np.median(np.abs(off)):.1%}; the worst is off by {off[np.abs(off).argmax()]:+.0%}."
        )
    ]


def build_sensitivity_parts(each: LinearModel, at: FloatArray, enlarged: Mapping[str, LinearModel]) -> list[Part]:
    """Return elasticities by parameters of the machine at the points, what ``enlarged`` sizes win, and dT / d latency.

    A size has no elasticity: an array fits or it does not.
    """
    found = model.compute_elasticities(each, at)
    heads = (*(Column(name) for name in each.parameters), *(Column(name) for name in found))
    rows = tuple((*at[t].tolist(), *(float(values[t]) for values in found.values())) for t in range(len(at)))
    parts: list[Part] = [Table("Per cent of time per per cent of a machine's parameter", heads, rows)]
    if enlarged:
        won = {name: model.compute_size_gain(each, at, larger) for name, larger in enlarged.items()}
        heads = (
            *(Column(name) for name in each.parameters),
            *(Column(f"{name} twice as large", "share") for name in won),
        )
        rows = tuple((*at[t].tolist(), *(float(values[t]) for values in won.values())) for t in range(len(at)))
        parts.append(Table("What larger sizes win of the time", heads, rows))
    if "messages" in each.columns:
        column = expressions.require_sympy().simplify(model.compute_derivative(each, "messages"))
        parts.append(
            Text(f"Each microsecond more of latency costs (microseconds): {expressions.format_expression(column)}.")
        )
    return parts


def build_machine_parts(one: LinearModel, two: LinearModel, at: FloatArray) -> list[Part]:
    """Return the times on two machines, their ratio, and where one overtakes the other along the processors."""
    ratio = machine_comparison.time_ratio(one, two, at)
    heads = (*(Column(name) for name in one.parameters), Column(one.name, "s"), Column(two.name, "s"), Column("ratio"))
    rows = tuple(
        (*at[t].tolist(), float(one(at[t : t + 1])[0]), float(two(at[t : t + 1])[0]), float(ratio[t]))
        for t in range(len(at))
    )
    axis = next((a for a, name in enumerate(one.parameters) if PROCESSORS.fullmatch(name)), 0)
    high = max(float(at[:, axis].max()), 2.0)
    crossed = machine_comparison.find_crossings(one, two, axis, 1.0, high, at[-1].tolist())
    name = one.parameters[axis]
    texts = [f"At {name} = {np.ceil(each.at):g} {(one, two)[each.faster].name} overtakes." for each in crossed]
    x = np.geomspace(1.0, high, 30)
    points = np.tile(at[-1], (len(x), 1))
    points[:, axis] = x
    lines = tuple(Line(m.name, tuple(x.tolist()), tuple(m(points).tolist())) for m in (one, two))
    return [
        Table("Two machines", heads, rows),
        Series(f"Over {name}", Axis(name, scale="log"), Axis("seconds", "s", "log"), lines),
        Text(" ".join(texts) or f"Up to {name} = {high:g} neither overtakes the other."),
    ]


def build_price_parts(each: LinearModel, at: FloatArray, price: str) -> list[Part]:
    """Return the bandwidth with most speed for its ``price``, a formula of BW in bytes a second, at the last point."""
    now = 1.0 / each.beta["bytes"]
    rates = np.geomspace(now / 100, now * 100, 201)
    formula = expressions.parse_formula(price, ("BW",))
    prices = model.build_matrix({"bytes": formula}, ["bytes"], ("BW",), rates[:, None])[:, 0]
    found = machine_comparison.find_best_rate(each, "bytes", at[-1].tolist(), rates, prices)
    line = Line("speed per price", tuple(rates.tolist()), tuple((found.speed_per_price * prices[0]).tolist()))
    return [
        Series("Speed for the price", Axis("bandwidth", "B/s", "log"), Axis("relative"), (line,)),
        Text(
            f"At {_format_point(each.parameters, at[-1])} a bandwidth of {found.best / 1e6:.3g} MB/s "
            f"gives most speed for its "
            f"price {price}."
        ),
    ]
