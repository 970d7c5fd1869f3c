"""Operations of an expression of Fortran: floating-point operations by unit, accesses to memory, calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor_processor.source.declared_types import node_text
from advisor_processor.source.records import Reference, Work

if TYPE_CHECKING:
    from tree_sitter import Node

    from advisor_processor.source.fortran_names import FortranNames

_UNITS: Final = {"+": "fp_add", "-": "fp_add", "*": "fp_mul", "/": "fp_div"}
_LITERAL: Final = re.compile(r"\d*\.\d*([ed][+-]?\d+)?(_\w+)?|\d+[ed][+-]?\d+(_\w+)?", re.IGNORECASE)
_INTRINSIC: Final = frozenset({
    "sqrt", "abs", "exp", "log", "sin", "cos", "tan", "max", "min", "atan", "atan2", "sum", "dot_product", "dble",
    "real",
})  # fmt: skip
#: Intrinsic functions that make a floating-point number of anything.
_CONVERTING: Final = frozenset({"real", "dble", "float", "cmplx"})


class ExpressionCounter:
    """Adds up the work of expressions; in statements on ``whole`` arrays their names are accesses to an element."""

    def __init__(self, names: FortranNames, whole: bool = False) -> None:
        self._names = names
        self._whole = whole

    def _add_whole(self, name: str, work: Work, write: bool) -> None:
        size = self._names.element_size(name)
        if size is not None:
            work.references.append(Reference(name, (":",), size, write, self._names.is_floating(name)))

    def add_target(self, node: Node, work: Work) -> None:
        """Add the store of an element of an array."""
        if node.type == "call_expression":
            self.add_access(node, work, write=True)
        else:
            self._add_whole(_plain_name(node), work, write=True)

    def count_expression(self, node: Node | None, work: Work) -> None:
        """Add what an expression, or a call, computes, loads and calls."""
        if node is None:
            return
        if node.type == "call_expression":
            self.add_access(node, work, write=False)
            return
        if node.type == "identifier" and self._whole:
            self._add_whole(node_text(node).lower(), work, write=False)
        for child in node.named_children:
            self.count_expression(child, work)
        if node.type == "subroutine_call":
            given = next((one for one in node.named_children if one.type == "argument_list"), None)
            arguments = tuple(node_text(one).lower() for one in given.named_children) if given is not None else ()
            work.calls.append((node_text(node.child_by_field_name("subroutine")).lower(), arguments))
        elif node.type == "math_expression" and self._is_floating(node):
            self._count_operation(node, work)

    def _count_operation(self, node: Node, work: Work) -> None:
        operator = next((child.type for child in node.children if child.type in ("+", "-", "*", "/", "**")), "")
        if operator == "**":
            work.add_operations("fp_mul" if node_text(node.child_by_field_name("right")) == "2" else "power")
        elif operator in "+-" and any(self._is_product(node.child_by_field_name(key)) for key in ("left", "right")):
            work.add_operations("fp_mul", -1)
            work.add_operations("fp_fma")
        elif operator in _UNITS:
            work.add_operations(_UNITS[operator])

    def _is_product(self, node: Node | None) -> bool:
        while node is not None and node.type == "parenthesized_expression":
            node = node.named_children[0] if node.named_children else None
        is_product = node is not None and node.type == "math_expression" and any(c.type == "*" for c in node.children)
        return is_product and node is not None and self._is_floating(node)

    def _is_floating(self, node: Node) -> bool:
        if node.type == "identifier":
            return self._names.is_floating(node_text(node).lower())
        if node.type == "number_literal":
            return bool(_LITERAL.fullmatch(node_text(node)))
        if node.type in ("call_expression", "derived_type_member_expression"):
            is_call = node.type == "call_expression"
            name = _plain_name(node.named_children[0] if is_call else node)
            return (
                self._names.is_floating(name)
                or name in _CONVERTING
                or (name in _INTRINSIC and any(map(self._is_floating, node.named_children[1:])))
            )
        return any(self._is_floating(child) for child in node.named_children)

    def add_access(self, node: Node, work: Work, write: bool) -> None:
        """Add an array element, or a call of a function: Fortran writes both alike."""
        name = _plain_name(node.named_children[0])
        given = node.named_children[1].named_children if len(node.named_children) > 1 else []
        if not write:
            for each in given:
                self.count_expression(each, work)
        size = self._names.element_size(name)
        if size is not None or write:
            subscripts = tuple(node_text(each).lower() for each in given)
            work.references.append(Reference(name, subscripts, size or 8, write, self._names.is_floating(name)))
        else:
            work.calls.append((name, tuple(node_text(each).lower() for each in given)))
            if name == "sqrt":
                work.add_operations("fp_div")


def _plain_name(node: Node) -> str:
    return node_text(node).lower().replace(" ", "")
