"""The model of one series as an equation: evaluate it, print it, export it as LaTeX, Python, C or JSON."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from advisor_scaling import forecasts
from advisor_scaling.terms import UNIT_FACTOR, Factor

if TYPE_CHECKING:
    from fractions import Fraction

    from advisor.model.records import FloatArray
    from advisor_scaling.engine import FittedModels

Language = Literal["text", "latex", "python", "c", "json"]
_C_WORDS: Final = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main
"""


@dataclass(frozen=True, slots=True)
class Term:
    """A coefficient times a factor for each of some parameters."""

    coefficient: float
    factors: tuple[tuple[str, Factor], ...] = ()


@dataclass(frozen=True, slots=True)
class Equation:
    """A sum of terms in ``parameters``; ``name`` says what it is the time (or count) of."""

    name: str
    parameters: tuple[str, ...]
    terms: tuple[Term, ...]

    def __call__(self, at: Mapping[str, FloatArray | float]) -> FloatArray:
        """Return the value at each parameter's values, which broadcast."""
        total = np.zeros(np.broadcast_shapes(*(np.shape(at[name]) for name in self.parameters)))
        for term in self.terms:
            value: FloatArray | float = term.coefficient
            for name, factor in term.factors:
                value = value * factor(np.asarray(at[name], dtype=float))
            total = total + value
        return total

    def compute_elasticity(self, parameter: str, at: Mapping[str, float]) -> float:
        """Return d log T / d log parameter at a point: by how many per cent T grows when the parameter grows by one."""
        value = float(self(at))
        step = 1e-4
        higher = float(self({**at, parameter: at[parameter] * (1 + step)}))
        lower = float(self({**at, parameter: at[parameter] / (1 + step)}))
        return (higher - lower) / (2 * step * value) if value else 0.0


def build_equation(fits: FittedModels, series: int, name: str) -> Equation:
    """Return the representative equation of a series."""
    which = int(forecasts.representative_sums(fits)[series])
    factors = forecasts.factors_of_sums(fits)[series, which]
    used = fits.candidates.terms[series, which] >= 0
    coefficients = fits.candidates.coefficients[series, which]
    terms = [
        Term(float(coefficients[at]), _select_factors(fits, factors[at].tolist()))
        for at in range(len(used))
        if used[at]
    ]  # fmt: skip
    return Equation(name, fits.parameters, tuple(sorted(terms, key=_growth_order)))


def _select_factors(fits: FittedModels, chosen: list[int]) -> tuple[tuple[str, Factor], ...]:
    pairs = ((each.parameter, each.factors[at]) for each, at in zip(fits.libraries, chosen, strict=True))
    return tuple((name, factor) for name, factor in pairs if factor != UNIT_FACTOR)


def _growth_order(term: Term) -> tuple[float, float]:
    powers = [float(factor.power) + 0.01 * factor.logs for _, factor in term.factors]
    return (sum(powers), sum(map(abs, powers)))


def export_equation(equation: Equation, language: Language) -> str:
    """Return the equation in a language; names are made safe for it."""
    if language == "json":
        return json.dumps(to_plain_data(equation), indent=2)
    if language == "text":
        left = f"T({', '.join(equation.parameters)})" if equation.parameters else "T"
        return f"{left} = {_format_sum(equation, _text_factor, ' * ', {name: name for name in equation.parameters})}"
    names = _safe_identifiers(equation.parameters)
    if language == "latex":
        symbols = {name: _latex_name(name) for name in equation.parameters}
        return f"T({', '.join(symbols.values())}) = {_format_sum(equation, _latex_factor, ' ', symbols, latex=True)}"
    title = "".join(sign if sign.isprintable() else "?" for sign in equation.name)
    if language == "python":
        body = _format_sum(equation, _python_factor, " * ", names)
        return (
            f"from math import log2\n\n\ndef seconds({', '.join(names.values())}):\n    # {title}\n    return {body}\n"
        )
    body = _format_sum(equation, _c_factor, " * ", names)
    arguments = ", ".join(f"double {name}" for name in names.values()) or "void"
    note = title.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /").rstrip("\\")
    return f"#include <math.h>\n\n/* {note} */\ndouble seconds({arguments})\n{{\n    return {body};\n}}\n"


def to_plain_data(equation: Equation) -> dict[str, Any]:
    """Return the equation as data: terms with coefficient and, for each parameter, power, logarithms, shape, knee."""
    return {
        "name": equation.name,
        "parameters": list(equation.parameters),
        "terms": [
            {
                "coefficient": term.coefficient,
                "factors": {
                    name: {"power": str(factor.power), "logs": factor.logs}
                    | ({"shape": factor.shape, "knee": factor.knee} if factor.shape != "all" else {})
                    for name, factor in term.factors
                },
            }
            for term in equation.terms
        ],
    }


def _format_sum(
    equation: Equation, write: Callable[[str, Factor], str], times: str, names: Mapping[str, str], latex: bool = False
) -> str:
    if not equation.terms:
        return "0"
    parts = []
    for term in equation.terms:
        number = _latex_number(term.coefficient) if latex else f"{term.coefficient:.6g}"
        parts.append(times.join([number, *(write(names[name], factor) for name, factor in term.factors)]))
    return " + ".join(parts)


def _text_factor(name: str, factor: Factor) -> str:
    inside = f"min({name}, {factor.knee:.6g})" if factor.shape == "until" else name
    parts = [] if factor.power == 0 else [inside if factor.power == 1 else f"{inside}^{_format_power(factor.power)}"]
    parts += [f"log2({inside})" + (f"^{factor.logs}" if factor.logs > 1 else "")] if factor.logs else []
    parts += [f"[{name} > {factor.knee:.6g}]"] if factor.shape == "beyond" else []
    return " * ".join(parts)


def _format_power(power: Fraction) -> str:
    return str(power) if power.denominator == 1 and power > 0 else f"({power})"


@dataclass(frozen=True, slots=True)
class _Syntax:
    """How a language writes a power, a power of a logarithm, and the smaller of two."""

    power: str
    log: str
    least: str


_PYTHON: Final = _Syntax("{} ** {}", "log2({}) ** {}", "min({}, {!r})")
_C: Final = _Syntax("pow({}, {})", "pow(log2({}), {})", "fmin({}, {!r})")


def _python_factor(name: str, factor: Factor) -> str:
    return _code_factor(name, factor, _PYTHON)


def _c_factor(name: str, factor: Factor) -> str:
    return _code_factor(name, factor, _C)


def _code_factor(name: str, factor: Factor, syntax: _Syntax) -> str:
    inside = syntax.least.format(name, factor.knee) if factor.shape == "until" else name
    parts = [] if factor.power == 0 else [syntax.power.format(inside, _format_decimal(factor.power))]
    parts += [syntax.log.format(inside, factor.logs)] if factor.logs else []
    parts += [f"({name} > {factor.knee!r})"] if factor.shape == "beyond" else []
    return " * ".join(parts)


def _format_decimal(power: Fraction) -> str:
    return f"({power.numerator}.0 / {power.denominator}.0)" if power.denominator > 1 else f"{power.numerator}.0"


def _latex_factor(name: str, factor: Factor) -> str:
    inside = f"\\min({name}, {factor.knee:.6g})" if factor.shape == "until" else name
    parts = [] if factor.power == 0 else [inside if factor.power == 1 else f"{inside}^{{{factor.power}}}"]
    parts += [f"\\log_2^{{{factor.logs}}} {inside}" if factor.logs > 1 else f"\\log_2 {inside}"] if factor.logs else []
    parts += [f"[{name} > {factor.knee:.6g}]"] if factor.shape == "beyond" else []
    return " ".join(parts)


def _latex_number(value: float) -> str:
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _latex_name(name: str) -> str:
    word = re.sub(r"[^A-Za-z0-9 _-]", "", name).replace("_", r"\_")
    return word if len(word) == 1 else rf"\mathrm{{{word or 'x'}}}"


def _safe_identifiers(parameters: tuple[str, ...]) -> dict[str, str]:
    """Return a name for each parameter that Python and C accept, no two the same."""
    names: dict[str, str] = {}
    for parameter in parameters:
        word = re.sub(r"\W", "_", parameter, flags=re.ASCII)
        if (
            not word
            or word[0].isdigit()
            or keyword.iskeyword(word)
            or word in _C_WORDS.split()
            or word in ("log2", "seconds")
        ):
            word = f"x_{word}"
        while word in names.values():
            word += "_"
        names[parameter] = word
    return names
