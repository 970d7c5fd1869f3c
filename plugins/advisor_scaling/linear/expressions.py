"""Formulas as users write them, ``8*N**2/P*log2(P)``, turned into SymPy's expressions without evaluating any code."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from advisor.model.errors import UsageError
from advisor.support.expressions import Algebra, fold_arithmetic, parse_tree
from advisor.support.extras import install_line

if TYPE_CHECKING:
    import sympy

#: Longer formulas, and powers beyond that, are refused: they are mistakes, or meant to take for ever.
_LONGEST: Final = 2000
_HIGHEST_POWER: Final = 64


def require_sympy() -> Any:  # noqa: ANN401
    """Return the module ``sympy``; ``UsageError`` with the way to get it where it is missing."""
    try:
        import sympy
    except ImportError:
        raise UsageError(f"symbolic models need SymPy: {install_line('processor')}") from None
    return sympy


def make_symbol(name: str) -> sympy.Symbol:
    """Return the symbol of a parameter; all are positive, so that roots and logarithms simplify."""
    return require_sympy().Symbol(name, positive=True)


def parse_formula(text: str, names: Collection[str]) -> sympy.Expr:
    """Return the formula as an expression of the parameters ``names``.

    ``ValueError`` where it is none: only numbers, the names, ``+ - * / **`` (also ``^``) and ``log2 log sqrt ceil floor
    min max`` may stand in it.
    """
    sympy = require_sympy()

    def find_symbol(name: str) -> Any:  # noqa: ANN401
        if name not in names:
            raise ValueError(f"{name!r} is not a parameter; there are {', '.join(sorted(names))}")
        return make_symbol(name)

    try:
        algebra = Algebra(_convert_number, find_symbol, _BINARY, operator.neg, _list_functions())
        found = sympy.sympify(fold_arithmetic(parse_tree(text, _LONGEST), algebra))
    except TypeError:
        raise ValueError(f"a function of {text!r} has the wrong number of arguments") from None
    except (MemoryError, RecursionError):
        raise ValueError(f"{text!r} is not a formula") from None
    except ZeroDivisionError:
        raise ValueError(f"{text!r} divides by zero") from None
    if found.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
        raise ValueError(f"{text!r} divides by zero")
    return found


def _convert_number(value: float) -> Any:  # noqa: ANN401
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return require_sympy().nsimplify(value, rational=True) if value == int(value) else value


def _raise_to_power(base: Any, power: Any) -> Any:  # noqa: ANN401
    if getattr(power, "is_number", True) and abs(float(power)) > _HIGHEST_POWER:
        raise ValueError(f"a power beyond {_HIGHEST_POWER}")
    return base**power


_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _raise_to_power,
}


def _list_functions() -> dict[str, Callable[..., Any]]:
    sympy = require_sympy()
    return {
        "log2": lambda x: sympy.log(x, 2),
        "log": lambda x: sympy.log(x),
        "sqrt": sympy.sqrt,
        "ceil": sympy.ceiling,
        "floor": sympy.floor,
        "min": sympy.Min,
        "max": sympy.Max,
    }


def format_expression(expression: sympy.Expr) -> str:
    """Return an expression as a user would write it: ``log2(P)``, not ``log(P)/log(2)``.

    What begins beyond a knee, ``x > k``, is written with ``1 - floor(min(1, k/x))``, 0 up to there and 1 behind.
    """
    sympy = require_sympy()
    flat = expression.replace(sympy.Piecewise, _flatten_step)
    text = re.sub(r"log\((\w+)\)/log\(2\)", r"log2(\1)", str(flat))
    return re.sub(r"\b(Min|Max|ceiling)\(", lambda found: {"ceiling(": "ceil("}.get(found[0], found[0].lower()), text)


def _flatten_step(*parts: Any) -> Any:  # noqa: ANN401
    """Return a step at a knee as a formula."""
    sympy = require_sympy()
    value, beyond = parts[0]
    if len(parts) != 2 or parts[1][0] != 0 or not isinstance(beyond, sympy.StrictGreaterThan):
        return sympy.Piecewise(*parts)
    return value * (1 - sympy.floor(sympy.Min(1, beyond.rhs / beyond.lhs)))
