"""The one expression language: arithmetic in models, manifests, formulas and loop headers.

A text is parsed into Python's syntax tree, every node of which is checked against a list; nothing is ever executed as
Python. A checked tree is evaluated over whole index ranges at once (``Expression``, float64, exact for whole numbers up
to 2**53), or in any other algebra, such as SymPy's (``fold_arithmetic``).
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
Result = TypeVar("Result")

LONGEST: Final = 500
DEEPEST: Final = 40
_ALLOWED: Final = re.compile(r"[\w\s+\-*/%^().,<>=!\[\]:]*", re.ASCII)

_BINARY: Final[Mapping[type[ast.operator], Callable[..., Values]]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_COMPARE: Final[Mapping[type[ast.cmpop], Callable[..., npt.NDArray[np.bool_]]]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
#: Functions by name, with the number of arguments they take.
FUNCTIONS: Final[Mapping[str, tuple[Callable[..., Values], int]]] = {
    "min": (np.minimum, 2),
    "max": (np.maximum, 2),
    "abs": (np.abs, 1),
    "floor": (np.floor, 1),
    "ceil": (np.ceil, 1),
    "sqrt": (np.sqrt, 1),
    "log2": (np.log2, 1),
    "exp": (np.exp, 1),
    "sin": (np.sin, 1),
}
_NODES: Final = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Subscript)


def parse_tree(text: str, longest: int = LONGEST) -> ast.expr:
    """Return the tree of an expression (``^`` is a power); ValueError with the column of what is not allowed."""
    if len(text) > longest:
        raise ValueError(f"expected an expression of at most {longest} characters")
    bad = _ALLOWED.match(text)
    if bad is None or bad.end() < len(text):
        raise ValueError(f"expected arithmetic; character {(bad.end() if bad else 0) + 1} can't stand there")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except (SyntaxError, MemoryError, RecursionError, ValueError) as error:
        column = getattr(error, "offset", None)
        where = f"at character {column}" if column else "at its end"
        raise ValueError(f"expected an expression such as 2 * n + 1; it goes wrong {where}") from None


@dataclass(frozen=True, slots=True)
class Algebra(Generic[Result]):
    """What numbers, names, operators and functions mean; a name or number that is none raises ValueError."""

    number: Callable[[int | float], Result]
    name: Callable[[str], Result]
    binary: Mapping[type[ast.operator], Callable[[Result, Result], Result]]
    negate: Callable[[Result], Result]
    functions: Mapping[str, Callable[..., Result]] = field(default_factory=dict)


def fold_arithmetic(node: ast.expr, algebra: Algebra[Result]) -> Result:
    """Return the value of a tree in an algebra; ValueError for what is no number, name, operator or function of it."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return algebra.number(value)
        case ast.Name(id=name):
            return algebra.name(name)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return algebra.negate(fold_arithmetic(inner, algebra))
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return fold_arithmetic(inner, algebra)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in algebra.binary:
            return algebra.binary[type(op)](fold_arithmetic(left, algebra), fold_arithmetic(right, algebra))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in algebra.functions:
            return algebra.functions[name](*(fold_arithmetic(argument, algebra) for argument in args))
    raise ValueError(f"{ast.unparse(node)!r} may not stand in a formula")


def check_tree(node: ast.expr, depth: int = 0) -> None:
    """Raise ValueError for anything but numbers, names, arithmetic, comparisons, known functions and table entries."""
    if depth > DEEPEST:
        raise ValueError("expected an expression that is not so deeply nested")
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise _refusal_error(node, "a number")
        if abs(node.value) > 2**60:
            raise _refusal_error(node, "a number below 2**60")
        return
    if not isinstance(node, _NODES):
        raise _refusal_error(node, "arithmetic with names, numbers and table entries")
    if isinstance(node, ast.Call):
        _check_call(node)
        children: list[ast.expr] = node.args
    elif isinstance(node, ast.Subscript):
        children = _subscript_indices(node)
    else:
        if isinstance(node, ast.BinOp) and type(node.op) not in _BINARY:
            raise _refusal_error(node, "one of + - * / // % **")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            raise _refusal_error(node, "- or not")
        if isinstance(node, ast.Compare) and any(type(op) not in _COMPARE for op in node.ops):
            raise _refusal_error(node, "one of < <= > >= == !=")
        children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    for child in children:
        check_tree(child, depth + 1)


def _check_call(node: ast.Call) -> None:
    known = ", ".join(FUNCTIONS)
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
        raise _refusal_error(node, f"one of the functions {known}")
    wanted = FUNCTIONS[node.func.id][1]
    if len(node.args) != wanted or node.keywords:
        raise _refusal_error(node, f"{wanted} argument{'s' if wanted > 1 else ''} for {node.func.id}")


def _subscript_indices(node: ast.Subscript) -> list[ast.expr]:
    if not isinstance(node.value, ast.Name):
        raise _refusal_error(node, "the name of a table before the bracket")
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _refusal_error(node: ast.expr, wanted: str) -> ValueError:
    return ValueError(f"at character {node.col_offset + 1}: expected {wanted}")


def find_names(tree: ast.expr) -> frozenset[str]:
    """Return the names that an expression uses, functions left out."""
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions)


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression: its text, its tree, and the names in it."""

    text: str
    tree: ast.expr = field(repr=False, compare=False)
    names: frozenset[str] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the expression; ValueError with the position of the error."""
        tree = parse_tree(text)
        check_tree(tree)
        return cls(text, tree, find_names(tree))

    def __str__(self) -> str:
        return self.text

    def evaluate_values(self, scope: Mapping[str, object]) -> Values:
        """Return the value with the names of ``scope``, one for each index; ValueError if that is no finite number."""
        return evaluate_tree(self.tree, scope, self.text)

    def evaluate_number(self, scope: Mapping[str, object]) -> float:
        """Return the one value; ValueError where it is none."""
        found = self.evaluate_values(scope)
        if found.ndim:
            raise ValueError(f"{self.text}: expected one number, found {found.shape[0]}")
        return float(found)

    def evaluate_whole(self, scope: Mapping[str, object]) -> int:
        """Return the one whole number; ValueError where it is none."""
        found = self.evaluate_number(scope)
        if not found.is_integer():
            raise ValueError(f"{self.text}: expected a whole number, found {found:g}")
        return int(found)


def evaluate_tree(tree: ast.expr, scope: Mapping[str, object], text: str) -> Values:
    """Return the value of a checked tree; ValueError if it is not finite everywhere."""
    with np.errstate(all="ignore"):
        found = np.asarray(_evaluate_node(tree, scope), dtype=np.float64)
    if not np.isfinite(found).all():
        raise ValueError(f"{text}: the value is not a finite number everywhere")
    return found


def _evaluate_node(node: ast.expr, scope: Mapping[str, object]) -> Values:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return np.asarray(float(node.value))
    if isinstance(node, ast.Name):
        return np.asarray(scope[node.id], dtype=np.float64)
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)](_evaluate_node(node.left, scope), _evaluate_node(node.right, scope))
    if isinstance(node, ast.UnaryOp):
        inner = _evaluate_node(node.operand, scope)
        return np.logical_not(inner).astype(np.float64) if isinstance(node.op, ast.Not) else _apply_sign(node.op, inner)
    if isinstance(node, ast.IfExp):
        return np.where(
            _evaluate_node(node.test, scope) != 0, _evaluate_node(node.body, scope), _evaluate_node(node.orelse, scope)
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        made: Values = FUNCTIONS[node.func.id][0](*(_evaluate_node(argument, scope) for argument in node.args))
        return made
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return look_up_entries(
            np.asarray(scope[node.value.id]),
            [_evaluate_node(one, scope) for one in _subscript_indices(node)],
            node.value.id,
        )
    return _evaluate_logical(node, scope)


def _apply_sign(operator: ast.unaryop, inner: Values) -> Values:
    return np.negative(inner) if isinstance(operator, ast.USub) else inner


def _evaluate_logical(node: ast.expr, scope: Mapping[str, object]) -> Values:
    if isinstance(node, ast.BoolOp):
        parts = [_evaluate_node(value, scope) != 0 for value in node.values]
        both = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        result = parts[0]
        for part in parts[1:]:
            result = both(result, part)
        return np.asarray(result, dtype=np.float64)
    if isinstance(node, ast.Compare):
        sides = [_evaluate_node(one, scope) for one in (node.left, *node.comparators)]
        holds = np.asarray(True)
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            holds = np.logical_and(holds, _COMPARE[type(operator)](left, right))
        return np.asarray(holds, dtype=np.float64)
    raise ValueError("expected arithmetic")


def look_up_entries(table: npt.NDArray[np.float64], places: list[Values], name: str) -> Values:
    """Return the entries of a table at whole-numbered places; ValueError outside of it."""
    if len(places) != table.ndim:
        raise ValueError(f"{name}: expected {table.ndim} index{'es' if table.ndim > 1 else ''}, found {len(places)}")
    indices = []
    for axis, place in enumerate(places):
        whole = np.asarray(np.rint(place), dtype=np.int64)
        if (whole < 0).any() or (whole >= table.shape[axis]).any():
            raise ValueError(
                f"{name}: index {int(whole.min())} to {int(whole.max())} outside 0 to {table.shape[axis] - 1}"
            )
        indices.append(whole)
    return np.asarray(table[tuple(indices)], dtype=np.float64)
