"""What ``gapwatch scale --model`` and ``--linear`` show: counts, costs, equation, sensitivity, machines compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.reports import Axis, Cell, Code, Column, Line, Part, Series, Table, Text
from advisor_scaling.linear import expressions, model
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_scaling.linear.application import Column as CountName
    from advisor_scaling.linear.model import LinearModel

_HALVINGS: Final = 60
_STEPS: Final = 400


@dataclass(frozen=True, slots=True)
class Crossing:
    """At ``at`` of a parameter the ``faster`` machine (0 or 1) becomes the faster one."""

    at: float
    faster: int


@dataclass(frozen=True, slots=True)
class SpeedPerPrice:
    """Speed for money, 1 / (seconds x price), at each of ``rates`` of a machine parameter; the ``best`` rate."""

    best: float
    rates: FloatArray
    speed_per_price: FloatArray


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
        parts.append(Table("What larger sizes save", heads, rows))
    if "messages" in each.columns:
        column = expressions.require_sympy().simplify(model.compute_derivative(each, "messages"))
        parts.append(
            Text(f"Each microsecond more of latency costs (microseconds): {expressions.format_expression(column)}.")
        )
    return parts


def build_machine_parts(one: LinearModel, two: LinearModel, at: FloatArray) -> list[Part]:
    """Return the times on two machines, their ratio, and where one overtakes the other along the processors."""
    ratio = time_ratio(one, two, at)
    heads = (*(Column(name) for name in one.parameters), Column(one.name, "s"), Column(two.name, "s"), Column("ratio"))
    rows = tuple(
        (*at[t].tolist(), float(one(at[t : t + 1])[0]), float(two(at[t : t + 1])[0]), float(ratio[t]))
        for t in range(len(at))
    )
    axis = next((a for a, name in enumerate(one.parameters) if PROCESSORS.fullmatch(name)), 0)
    high = max(float(at[:, axis].max()), 2.0)
    crossed = find_crossings(one, two, axis, 1.0, high, at[-1].tolist())
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
    found = find_best_rate(each, "bytes", at[-1].tolist(), rates, prices)
    line = Line("speed per price", tuple(rates.tolist()), tuple((found.speed_per_price * prices[0]).tolist()))
    return [
        Series("Speed for the price", Axis("bandwidth", "B/s", "log"), Axis("relative"), (line,)),
        Text(
            f"At {_format_point(each.parameters, at[-1])} a bandwidth of {found.best / 1e6:.3g} MB/s "
            f"gives most speed for its "
            f"price {price}."
        ),
    ]


def time_ratio(one: LinearModel, two: LinearModel, points: FloatArray) -> FloatArray:
    """Return the time on the second machine over that on the first (t,): the portability of performance."""
    return np.asarray(two(points) / one(points))


def find_crossings(
    one: LinearModel, two: LinearModel, axis: int, low: float, high: float, held: Sequence[float]
) -> tuple[Crossing, ...]:  # fmt: skip
    """Return where the times of two machines cross along a parameter; the others are as in ``held`` (m,)."""
    x = np.geomspace(low, high, _STEPS)
    apart = _make_difference(one, two, axis, held)
    signs = np.sign(apart(x))
    found = []
    for at in np.flatnonzero(signs[1:] * signs[:-1] < 0):
        root = _find_root(apart, x[at], x[at + 1])
        found.append(Crossing(root, 0 if signs[at + 1] < 0 else 1))
    return tuple(found)


def _make_difference(
    one: LinearModel, two: LinearModel, axis: int, held: Sequence[float]
) -> Callable[[FloatArray], FloatArray]:  # fmt: skip
    def time_difference(x: FloatArray) -> FloatArray:
        points = np.tile(np.asarray(held, dtype=float), (len(x), 1))
        points[:, axis] = x
        return np.asarray(one(points) - two(points))

    return time_difference


def _find_root(apart: Callable[[FloatArray], FloatArray], low: float, high: float) -> float:
    start = float(np.sign(apart(np.array([low]))[0]))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if np.sign(apart(np.array([middle]))[0]) == start:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def find_best_rate(
    model: LinearModel, column: CountName, point: Sequence[float], rates: FloatArray, price: FloatArray
) -> SpeedPerPrice:  # fmt: skip
    """Return which rate (1 / cost of ``column``) gives most speed for its ``price`` (r,) at a point (figure 6).

    ``rates`` (r,) ascend. Speed is 1 / T; multiply by the operations for MFLOPS. Between the rates the optimum is that
    of the parabola through the three highest values.
    """
    at = np.asarray(point, dtype=float)[None, :]
    seconds = np.array([replace(model, beta={**model.beta, column: 1.0 / rate})(at)[0] for rate in rates])
    worth = 1.0 / (seconds * price)
    return SpeedPerPrice(_find_peak(np.log(rates), worth), rates, worth)


def _find_peak(x: FloatArray, y: FloatArray) -> float:
    top = int(y.argmax())
    if top in (0, len(x) - 1):
        return float(np.exp(x[top]))
    a, b, _ = np.polyfit(x[top - 1 : top + 2], y[top - 1 : top + 2], 2)
    return float(np.exp(-b / (2 * a)))
