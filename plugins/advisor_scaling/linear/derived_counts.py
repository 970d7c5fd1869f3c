"""Counts of operations of runs as expressions of their parameters, by the models of growth that fit them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from advisor_scaling import equations, study
from advisor_scaling.linear import expressions

if TYPE_CHECKING:
    import sympy

    from advisor_scaling.equations import Equation
    from advisor_scaling.linear.application import Column
    from advisor_scaling.study import ScalingStudy
    from advisor_scaling.terms import Factor

#: More digits of a fitted coefficient are rounding errors.
_DIGITS: Final = 10
#: The series of counts that are columns of X.
SERIES: Final[dict[str, Column]] = {
    "operations per processor": "operations",
    "loops per processor": "loops",
    "misses per processor": "misses",
    "page faults per processor": "page_faults",
    "messages per processor": "messages",
    "bytes per processor": "bytes",
}


def derive_counts(each: ScalingStudy) -> dict[Column, sympy.Expr]:
    """Return X as expressions of the study's parameters, for the counts that its runs hold."""
    fits = study.fit_study(each)
    return {
        SERIES[series.name]: to_expression(equations.build_equation(fits, at, series.name))
        for at, series in enumerate(each.series)
        if series.name in SERIES and fits.averaged.mean[at].max() > 0.0
    }


def to_expression(equation: Equation) -> sympy.Expr:
    """Return the equation as an expression of SymPy."""
    sympy = expressions.require_sympy()
    total = sympy.Integer(0)
    for term in equation.terms:
        digits = float(f"{term.coefficient:.{_DIGITS}g}")
        value: Any = sympy.Integer(digits) if digits == int(digits) else sympy.Float(digits)
        for name, factor in term.factors:
            value = value * _factor_expression(expressions.make_symbol(name), factor)
        total += value
    return total


def _factor_expression(name: sympy.Symbol, factor: Factor) -> sympy.Expr:
    sympy = expressions.require_sympy()
    inside = sympy.Min(name, factor.knee) if factor.shape == "until" else name
    value = inside ** sympy.Rational(factor.power.numerator, factor.power.denominator)
    if factor.logs:
        value = value * sympy.log(inside, 2) ** factor.logs
    return sympy.Piecewise((value, name > factor.knee), (0, True)) if factor.shape == "beyond" else value
