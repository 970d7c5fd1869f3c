"""Formulas as users write them, ``8*N**2/P*log2(P)``, turned into SymPy's expressions without evaluating any code."""

from __future__ import annotations

import ast
import math
import operator
import re
from typing import TYPE_CHECKING, Any, Final

from advisor.model.errors import UsageError
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import sympy

_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
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
    if len(text) > _LONGEST:
        raise ValueError(f"the formula is longer than {_LONGEST} characters")
    try:
        tree = ast.parse(text.replace("^", "**"), mode="eval")
        found = require_sympy().sympify(_convert_node(tree.body, frozenset(names)))
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"{text!r} is no formula") from None
    except ZeroDivisionError:
        raise ValueError(f"{text!r} divides by zero") from None
    if found.has(require_sympy().zoo, require_sympy().nan, require_sympy().oo, -require_sympy().oo):
        raise ValueError(f"{text!r} divides by zero")
    return found


def _convert_node(node: ast.expr, names: frozenset[str]) -> Any:  # noqa: ANN401
    if isinstance(node, ast.Constant):
        return _convert_number(node.value)
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ValueError(f"{node.id!r} is no parameter; there are {', '.join(sorted(names))}")
        return make_symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_convert_node(node.operand, names)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _convert_node(node.left, names), _convert_node(node.right, names)
        if isinstance(node.op, ast.Pow) and not _is_bearable(left, right):
            raise ValueError(f"a power beyond {_HIGHEST_POWER}")
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _convert_call(node.func.id, [_convert_node(each, names) for each in node.args])
    raise ValueError(f"{ast.unparse(node)!r} may not stand in a formula")


def _convert_number(value: object) -> Any:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return require_sympy().nsimplify(value, rational=True) if isinstance(value, int) or value == int(value) else value


def _is_bearable(base: Any, power: Any) -> bool:  # noqa: ANN401
    number = getattr(power, "is_number", True)
    return not number or abs(float(power)) <= _HIGHEST_POWER


def _convert_call(name: str, given: list[Any]) -> Any:  # noqa: ANN401
    sympy = require_sympy()
    one: dict[str, Callable[[Any], Any]] = {
        "log2": lambda x: sympy.log(x, 2),
        "log": sympy.log,
        "sqrt": sympy.sqrt,
        "ceil": sympy.ceiling,
        "floor": sympy.floor,
    }
    if name in one and len(given) == 1:
        return one[name](given[0])
    if name in ("min", "max") and given:
        return (sympy.Min if name == "min" else sympy.Max)(*given)
    raise ValueError(f"there is no function {name!r} of {len(given)} arguments; there are {', '.join(one)}, min, max")


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
