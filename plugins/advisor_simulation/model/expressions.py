"""Arithmetic in models: parsed into a tree of a few allowed kinds, evaluated over whole index ranges at once.

Nothing is ever executed as Python: a text is parsed, every node of its tree is checked against a list, and the
evaluation below knows these nodes and no others. All numbers are float64, exact for whole numbers up to 2**53.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Values = npt.NDArray[np.float64]

LONGEST: Final = 500
DEEPEST: Final = 40
_ALLOWED: Final = re.compile(r"[\w\s+\-*/%().,<>=!\[\]:]*", re.ASCII)

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


def parse_expression(text: str) -> ast.expr:
    """Return the tree of an expression; ValueError with the column of what is not allowed."""
    if len(text) > LONGEST:
        raise ValueError(f"expected an expression of at most {LONGEST} characters")
    bad = _ALLOWED.match(text)
    if bad is None or bad.end() < len(text):
        raise ValueError(f"expected arithmetic; character {(bad.end() if bad else 0) + 1} can't stand there")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, MemoryError, RecursionError, ValueError) as error:
        column = getattr(error, "offset", None)
        where = f"at character {column}" if column else "at its end"
        raise ValueError(f"expected an expression such as 2 * n + 1; it goes wrong {where}") from None
    return tree


def check_expression(node: ast.expr, depth: int = 0) -> None:
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
        _check_operators(node)
        children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    for child in children:
        check_expression(child, depth + 1)


def _check_operators(node: ast.expr) -> None:
    if isinstance(node, ast.BinOp) and type(node.op) not in _BINARY:
        raise _refusal_error(node, "one of + - * / // % **")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        raise _refusal_error(node, "- or not")
    if isinstance(node, ast.Compare) and any(type(op) not in _COMPARE for op in node.ops):
        raise _refusal_error(node, "one of < <= > >= == !=")


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
        """Return the expression; ValueError with the character at which it goes wrong."""
        tree = parse_expression(text)
        check_expression(tree)
        return cls(text, tree, find_names(tree))

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
        parts = [_evaluate_node(one, scope) != 0 for one in node.values]
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


@dataclass(frozen=True, slots=True)
class Access:
    """A reference to data: ``Pos[i]`` (all items of row i), ``Pos[i, 0]``, ``Vel[Neighbor[i], 0:2]``.

    ``rows`` is the expression of the row; ``first`` and ``last`` (excluded) the items of the row, None: all of them.
    """

    text: str
    array: str
    rows: ast.expr = field(repr=False, compare=False)
    first: ast.expr | None = field(repr=False, compare=False)
    last: ast.expr | None = field(repr=False, compare=False)
    names: frozenset[str] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the access; ValueError with what was expected."""
        tree = parse_expression(text)
        if not isinstance(tree, ast.Subscript) or not isinstance(tree.value, ast.Name):
            raise ValueError("expected an array with its index, such as Pos[i] or Pos[Neighbor[i], 0:3]")
        places = list(tree.slice.elts) if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        if len(places) > 2 or isinstance(places[0], ast.Slice):
            raise ValueError("expected the row, and at most one item or range of items after it")
        first, last = _item_range(places[1]) if len(places) > 1 else (None, None)
        parts = [part for part in (places[0], first, last) if part is not None]
        for part in parts:
            check_expression(part)
        used = frozenset().union(*map(find_names, parts))
        return cls(text, tree.value.id, places[0], first, last, used)


def _item_range(place: ast.expr) -> tuple[ast.expr, ast.expr]:
    if not isinstance(place, ast.Slice):
        return place, ast.BinOp(place, ast.Add(), ast.Constant(1))
    if place.lower is None or place.upper is None or place.step is not None:
        raise ValueError("expected a range of items with both ends, such as 0:3")
    return place.lower, place.upper
