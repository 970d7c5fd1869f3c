"""Counts composed from the formulas of loops, as columns of X: nothing of them is fitted but what only a run tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor_scaling import collect, equations, study
from advisor_scaling.linear import derived_counts, expressions, polynomials
from advisor_scaling.study import MeasuredSeries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import sympy

    from advisor_scaling.linear.application import Column

_COLUMNS: Final[dict[str, Column]] = {"operations": "operations", "messages": "messages", "bytes": "bytes"}


def convert_formulas(
    formulas: Mapping[str, Any], points: Sequence[Mapping[str, float]]
) -> tuple[tuple[str, ...], dict[Column, sympy.Expr], dict[str, str], tuple[str, ...]]:
    """Return parameters, columns of X, the iterations of each loop in words, and what is to be known about them.

    A symbol that stands for what data decide is replaced in the columns by what fits its values in the runs, and named.
    """
    parameters = tuple(points[0])
    table, notes = fit_opaque(formulas["opaque"], points)
    columns = {
        _COLUMNS[name]: each.subs(table)
        for name, each in formulas["columns"].items()
        if name in _COLUMNS and each != 0 and not (name == "bytes" and formulas["unknown"])
    }
    loops = {name: polynomials.format_polynomial(each) for name, each in formulas["loops"].items()}
    missing = tuple(f"the bytes of {call} are not known; state them in --model" for call in formulas["unknown"])
    return parameters, columns, loops, (*notes, *missing)


def fit_opaque(
    opaque: Mapping[str, Sequence[float]], points: Sequence[Mapping[str, float]]
) -> tuple[dict[sympy.Symbol, sympy.Expr], tuple[str, ...]]:
    """Return what symbols are replaced by, fits of their values in the runs, and how that is known."""
    if not opaque:
        return {}, ()
    observed = [
        (dict(values), {MeasuredSeries(name, "count", ""): each[at] for name, each in opaque.items()})
        for at, values in enumerate(points)
    ]
    found = collect.build_study("measured", observed, (), 0.0)
    fits = study.fit_study(found)
    table, notes = {}, []
    for k, series in enumerate(found.series):
        exact = polynomials.find_exact_polynomial(found.parameters, found.points, np.nanmean(found.values[k], axis=1))
        fitted = exact if exact is not None else derived_counts.to_expression(equations.build_equation(fits, k, ""))
        table[expressions.make_symbol(series.name)] = fitted
        how = "meets all runs" if exact is not None else "was fitted to the runs"
        notes.append(
            f"{series.name}, which data decide, is {min(opaque[series.name]):.4g} to {max(opaque[series.name]):.4g}; "
            f"{polynomials.format_polynomial(fitted)} {how}"
        )
    return table, tuple(notes)
