"""What may stand in a manifest: names, arithmetic expressions, templates of command lines, patterns of output."""

from __future__ import annotations

import ast
import math
import operator
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KERNEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
_LONGEST: Final = 200
_PLACE: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]")
_VALUE: Final = r"([+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?)"
_OPERATIONS: Final[Mapping[type, Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


class Name(str):
    """The name of a parameter, an array or a metric."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Name:
        """The name; ValueError for what is none."""
        if len(text) > _LONGEST or not _NAME.fullmatch(text):
            raise ValueError("expected a name of letters, digits and _")
        return cls(text)


class KernelName(str):
    """The name of a kernel: no commas, since these separate the kernels of a chain."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> KernelName:
        """The name; ValueError for what is none."""
        if len(text) > _LONGEST or not _KERNEL.fullmatch(text):
            raise ValueError("expected a name without blanks and commas")
        return cls(text)


class Expression(str):
    """Arithmetic over the parameters: numbers, names, ``+ - * / ^`` and parentheses; ``8 * N^3``."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Expression:
        """The expression; ValueError where it is none."""
        _check_node(_parse_tree(text))
        return cls(text)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that it needs."""
        return tuple(dict.fromkeys(node.id for node in ast.walk(_parse_tree(self)) if isinstance(node, ast.Name)))

    def compute_value(self, values: Mapping[str, float]) -> float:
        """The value; ValueError where it is not finite, or where it can't be computed."""
        try:
            found = _compute_node(_parse_tree(self), values)
        except (ArithmeticError, TypeError):
            raise ValueError(f"'{self}' can't be computed") from None
        if isinstance(found, complex) or not math.isfinite(found):
            raise ValueError(f"'{self}' is not a finite number")
        return found


def _parse_tree(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise ValueError("expected a shorter expression")
    try:
        return ast.parse(text.replace("^", "**").strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError("expected an expression such as 8 * N^3") from None


def _check_node(node: ast.expr) -> None:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            pass
        case ast.Name():
            pass
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            _check_node(node.operand)
        case ast.BinOp() if type(node.op) in _OPERATIONS:
            _check_node(node.left)
            _check_node(node.right)
        case _:
            raise ValueError("expected numbers, names, + - * / ^ and parentheses only")


def _compute_node(node: ast.expr, values: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name():
            return values[node.id]
        case ast.UnaryOp():
            inner = _compute_node(node.operand, values)
            return -inner if isinstance(node.op, ast.USub) else inner
        case ast.BinOp():
            return _OPERATIONS[type(node.op)](_compute_node(node.left, values), _compute_node(node.right, values))
    raise TypeError("no expression")


class Template(str):
    """One word of a command line with places ``{N}``, ``{chain}`` … in it; ``{{`` and ``}}`` stand for braces."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Template:
        """The template; ValueError for a brace that belongs to no place."""
        if "\0" in text:
            raise ValueError("expected text without the character NUL")
        for found in _PLACE.finditer(text):
            if found[0] in ("{", "}"):
                raise ValueError("expected {name}, or {{ or }} for a brace")
        return cls(text)

    @property
    def names(self) -> tuple[str, ...]:
        """The places to fill."""
        return tuple(dict.fromkeys(name for name in _PLACE.findall(self) if name))

    def fill_places(self, values: Mapping[str, str]) -> str:
        """The word with its places filled; what is filled in is never looked at again."""

        def fill_part(found: re.Match[str]) -> str:
            return values[found[1]] if found[1] else found[0][0]

        return _PLACE.sub(fill_part, self)


class Pattern(str):
    """Text of a program's output with ``{value}`` where the number stands; blanks match any blanks."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """The pattern; ValueError without exactly one ``{value}``, or with nothing before and after it."""
        if text.count("{value}") != 1 or not text.replace("{value}", "").strip():
            raise ValueError("expected the text around one {value}")
        return cls(text)

    def find_values(self, output: str) -> tuple[float, ...]:
        """All numbers that the output shows in that place, in order; thousands may be grouped by commas."""
        before, after = (r"\s+".join(map(re.escape, part.split())) for part in self.split("{value}"))
        shape = before + r"\s*" + _VALUE + (r"\s*" + after if after else "")
        texts = (found.replace(",", "").replace("d", "e").replace("D", "e") for found in re.findall(shape, output))
        return tuple(float(text) for text in texts)
