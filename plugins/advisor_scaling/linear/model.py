"""T = X beta: evaluate it, fit its costs, take them from a machine, differentiate and export it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import UsageError
from advisor_scaling.linear import expressions
from advisor_scaling.linear.application import COLUMNS, ApplicationModel, Column
from advisor_scaling.linear.nnls import solve_nnls

if TYPE_CHECKING:
    import sympy

    from advisor.analysis.machines import Machine
    from advisor.model.records import FloatArray

#: What a cost is made of, for the derivatives by parameters of the machine.
MACHINE_PARAMETERS: Final[dict[str, Column]] = {
    "latency": "messages",
    "bandwidth": "bytes",
    "CPU rate": "operations",
    "memory speed": "misses",
}
#: Parameters whose growth makes a cost smaller: cost = 1 / parameter.
#: Seconds of a page fault where no machine model states them: a read of a page from a solid-state disk, as the probe
#: finds it on machines of this decade (88 to 140 us).
PAGE_FAULT_S: Final = 100e-6
_RATES: Final = ("bandwidth", "CPU rate", "memory speed")


@dataclass(frozen=True, slots=True)
class LinearModel:
    """The counts ``x`` as expressions of ``parameters``, the seconds ``beta`` that one of each costs."""

    parameters: tuple[str, ...]
    x: Mapping[Column, sympy.Expr]
    beta: Mapping[Column, float]
    name: str = "run"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that have a cost."""
        return tuple(column for column in COLUMNS if column in self.x and column in self.beta)

    @property
    def expression(self) -> sympy.Expr:
        """T as one expression of the parameters."""
        return sum(
            (self.x[column] * self.beta[column] for column in self.columns), expressions.require_sympy().Integer(0)
        )

    def column_seconds(self, points: FloatArray) -> FloatArray:
        """Return the seconds of each column (columns, t) at ``points`` (t, m)."""
        costs = np.array([self.beta[column] for column in self.columns])
        return np.asarray(build_matrix(self.x, self.columns, self.parameters, points).T * costs[:, None])

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return the seconds (t,) at ``points`` (t, m)."""
        return np.asarray(self.column_seconds(points).sum(axis=0))


def build_matrix(
    x: Mapping[Column, sympy.Expr], columns: Sequence[Column], parameters: Sequence[str], points: FloatArray
) -> FloatArray:  # fmt: skip
    """Return X (t, columns) at ``points`` (t, m)."""
    rows = []
    for column in columns:
        function = _compile_expression(x[column], tuple(parameters))
        rows.append(np.broadcast_to(np.asarray(function(*points.T), dtype=float), (len(points),)))
    return np.stack(rows, axis=1) if rows else np.zeros((len(points), 0))


@functools.lru_cache(maxsize=256)
def _compile_expression(expression: sympy.Expr, parameters: tuple[str, ...]) -> Callable[..., object]:
    """Return the expression as a function of arrays."""
    given = [expressions.make_symbol(name) for name in parameters]
    function: Callable[..., object] = expressions.require_sympy().lambdify(
        given, expression, modules="numpy", dummify=True
    )
    return function


def fit_costs(
    x: Mapping[Column, sympy.Expr],
    parameters: tuple[str, ...],
    points: FloatArray,
    seconds: FloatArray,
    known: Mapping[Column, float] | None = None,
) -> LinearModel:
    """Return the model with the costs that fit measured ``seconds`` (n,) at ``points`` (n, m) best.

    Relative errors count, no cost is negative; costs that are ``known`` stay as they are.
    """
    columns = [column for column in COLUMNS if column in x]
    free = [column for column in columns if column not in (known or {})]
    design = build_matrix(x, columns, parameters, points)
    rest = np.array(seconds, dtype=float)
    for column, cost in (known or {}).items():
        rest = rest - design[:, columns.index(column)] * cost
    weighted = design[:, [columns.index(column) for column in free]] / seconds[:, None]
    size = np.maximum(np.abs(weighted).max(axis=0, initial=0.0), 1e-300)
    costs = solve_nnls(weighted / size, rest / seconds)
    return LinearModel(parameters, x, {**(known or {}), **dict(zip(free, (costs / size).tolist(), strict=True))})


def known_costs(machine: Machine, application: ApplicationModel) -> dict[Column, float]:
    """Return beta from a machine model: seconds of an operation, a missed line, a page, a message, a byte.

    What the application states goes first: loops are in no machine model. A page fault that none states takes
    ``PAGE_FAULT_S``.
    """
    network, memory = machine.network, machine.memory
    lines = [cache.line for cache in machine.caches.values() if cache.line]
    found: dict[Column, float | None] = {
        "operations": _inverse_rate(arithmetic_rate(machine)),
        "misses": _miss_seconds(memory.latency, memory.sustained or memory.bandwidth, lines) if memory else None,
        "page_faults": (memory.page_fault if memory else None) or PAGE_FAULT_S,
        "messages": network.latency if network else None,
        "bytes": _inverse_rate(network.bandwidth) if network else None,
    }
    found |= application.costs
    return {column: float(cost) for column, cost in found.items() if cost is not None}


def arithmetic_rate(machine: Machine) -> float | None:
    """Return the operations that one core does in a second at its nominal clock, None where that is not known."""
    if machine.frequency is None or machine.flops_per_cycle is None:
        return None
    return float(machine.frequency * machine.flops_per_cycle)


def machine_costs(machine: Machine, application: ApplicationModel) -> dict[Column, float]:
    """Return beta from a machine model and the application; ``UsageError`` names what is missing."""
    known = known_costs(machine, application)
    missing = [column for column in COLUMNS if column in application.counts and column not in known]
    if missing:
        raise UsageError(
            f"the machine model {machine.name} does not say what {', '.join(missing)} cost; add seconds under "
            "costs: in the application model, or leave --machine out to fit costs from runs"
        )
    return known


def _inverse_rate(rate: float | None) -> float | None:
    return 1.0 / rate if rate else None


def _miss_seconds(latency: float | None, bandwidth: float | None, lines: Sequence[float]) -> float | None:
    """Return the seconds of a line from memory: streaming where bandwidth is known, else the latency."""
    if bandwidth and lines:
        return max(lines) / bandwidth
    return latency


def compute_elasticities(model: LinearModel, points: FloatArray) -> dict[str, FloatArray]:
    """Return d log T / d log of each parameter of the machine (t,): the per cent T changes by when it grows by one.

    T is linear in beta, so that of a cost is its part of T; of a rate (1 / cost) it is minus that.
    """
    parts = model.column_seconds(points)
    total = parts.sum(axis=0)
    shares = {column: part / total for column, part in zip(model.columns, parts, strict=True)}
    return {
        name: 0.0 - shares[column] if name in _RATES else shares[column]
        for name, column in MACHINE_PARAMETERS.items()
        if column in shares
    }


def compute_derivative(model: LinearModel, column: Column) -> sympy.Expr:
    """Return dT / d beta of a column as an expression of the parameters: the column of X itself (source, section 4)."""
    beta = expressions.make_symbol("beta")
    return expressions.require_sympy().diff(model.x[column] * beta, beta)


def compute_size_gain(model: LinearModel, points: FloatArray, larger: LinearModel) -> FloatArray:
    """Return the share of T (t,) that is won by another machine's sizes, such as a cache twice as large."""
    return np.asarray(1.0 - larger(points) / model(points))


def export_model(model: LinearModel, language: str) -> str:
    """Return the equation as text, latex, python, c or json."""
    sympy = expressions.require_sympy()
    whole = model.expression
    if language == "latex":
        return f"T({', '.join(model.parameters)}) = {sympy.latex(_round_numbers(whole))}"
    if language == "python":
        return f"import math\n\n\ndef seconds({', '.join(model.parameters)}):\n    return {sympy.pycode(whole)}\n"
    if language == "c":
        arguments = ", ".join(f"double {name}" for name in model.parameters)
        return f"#include <math.h>\n\ndouble seconds({arguments})\n{{\n    return {sympy.ccode(whole)};\n}}\n"
    if language == "json":
        import json

        columns = {
            column: {"count": expressions.format_expression(model.x[column]), "cost": model.beta[column]}
            for column in model.columns
        }
        return json.dumps({"name": model.name, "parameters": list(model.parameters), "columns": columns}, indent=2)
    return f"T({', '.join(model.parameters)}) = {expressions.format_expression(_round_numbers(whole))}"


def _round_numbers(expression: sympy.Expr) -> sympy.Expr:
    """Return an expression with numbers of six digits, as people read them."""
    real = expressions.require_sympy().Float
    found: sympy.Expr = expression.xreplace({each: real(each, 6) for each in expression.atoms(real)})
    return found
