"""Operations of an expression of C or C++: floating-point operations by unit, accesses to memory, calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor_processor.source.records import Reference
from advisor_processor.source.types import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from advisor_processor.source.records import Work
    from advisor_processor.source.types import Types

_UNITS: Final = {"+": "fp_add", "-": "fp_add", "*": "fp_mul", "/": "fp_div"}
_ROOTS: Final = frozenset({"sqrt", "sqrtf", "std::sqrt"})
_OUTSIDE: Final = frozenset({"sizeof_expression", "type_descriptor", "lambda_expression", "preproc_call", "comment"})


class Counter:
    """Adds up the work of expressions; ``branch(node)`` gives the work of a part that does not always run."""

    def __init__(self, types: Types, work: Work, branch: Callable[[Node], Work] | None = None) -> None:
        self._types = types
        self._work = work
        self._branch = branch

    def count(self, node: Node | None) -> None:
        """Add what an expression computes, loads, stores and calls."""
        if node is None or node.type in _OUTSIDE:
            return
        handler = _HANDLERS.get(node.type)
        if handler is None:
            for child in node.named_children:
                self.count(child)
        else:
            handler(self, node)

    def _binary(self, node: Node) -> None:
        operator = text(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        self.count(left)
        if operator in ("&&", "||"):
            self._sometimes(right)
            return
        self.count(right)
        if operator in _UNITS and self._types.is_floating(node):
            self._combine(operator, left, right)

    def _combine(self, operator: str, left: Node | None, right: Node | None) -> None:
        """Add one operation; an addition to a product becomes one multiply-add, as hardware does it."""
        if operator in "+-" and (self._is_product(left) or self._is_product(right)):
            self._work.add("fp_mul", -1)
            self._work.add("fp_fma")
        else:
            self._work.add(_UNITS[operator])

    def _is_product(self, node: Node | None) -> bool:
        while node is not None and node.type == "parenthesized_expression":
            node = node.named_children[0] if node.named_children else None
        if node is None or node.type != "binary_expression":
            return False
        return text(node.child_by_field_name("operator")) == "*" and self._types.is_floating(node)

    def _assignment(self, node: Node) -> None:
        operator = text(node.child_by_field_name("operator")).removesuffix("=")
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        self.count(right)
        if operator:
            self.count(left)
            if operator in _UNITS and (self._types.is_floating(left) or self._types.is_floating(right)):
                self._combine(operator, None, right)
        self._store(left)

    def _update(self, node: Node) -> None:
        argument = node.child_by_field_name("argument")
        self.count(argument)
        if self._types.is_floating(argument):
            self._work.add("fp_add")
        self._store(argument)

    def _store(self, node: Node | None) -> None:
        if node is not None and node.type in ("subscript_expression", "field_expression", "pointer_expression"):
            self._access(node, write=True)

    def _subscript(self, node: Node) -> None:
        self._access(node, write=False)

    def _access(self, node: Node, write: bool) -> None:
        """Add an access to memory and, once, what its subscripts compute."""
        subscripts: list[str] = []
        base: Node | None = node
        while base is not None and base.type == "subscript_expression":
            index = base.child_by_field_name("index") or _index(base)
            if not write:
                self.count(index)
            subscripts.insert(0, text(index))
            base = base.child_by_field_name("argument")
        if base is not None and base.type == "pointer_expression":
            if text(base.child_by_field_name("operator")) != "*":
                return  # an address is no access
            subscripts.insert(0, "0")
        if not subscripts and "->" not in text(base):
            return
        floats = self._types.is_floating(node)
        size = self._types.size(node)
        self._work.references.append(Reference(text(base).lstrip("*"), tuple(subscripts), size, write, floats))

    def _call(self, node: Node) -> None:
        name = text(node.child_by_field_name("function"))
        arguments = node.child_by_field_name("arguments")
        given = arguments.named_children if arguments is not None else []
        for each in given:
            self.count(each)
        if name in _ROOTS:
            self._work.add("fp_div")
        elif name == "fma":
            self._work.add("fp_fma")
        self._work.calls.append((name, tuple(text(each) for each in given)))

    def _conditional(self, node: Node) -> None:
        self.count(node.child_by_field_name("condition"))
        self._sometimes(node.child_by_field_name("consequence"))
        self._sometimes(node.child_by_field_name("alternative"))

    def _sometimes(self, node: Node | None) -> None:
        if node is None:
            return
        if self._branch is None:
            self.count(node)
        else:
            Counter(self._types, self._branch(node), self._branch).count(node)

    def _declarator(self, node: Node) -> None:
        self.count(node.child_by_field_name("value"))


def _index(node: Node) -> Node | None:
    """Return the subscript of C++'s grammar, which keeps it in a list."""
    indices = node.child_by_field_name("indices")
    return indices.named_children[0] if indices is not None and indices.named_children else None


_HANDLERS: Final = {
    "binary_expression": Counter._binary,
    "assignment_expression": Counter._assignment,
    "update_expression": Counter._update,
    "subscript_expression": Counter._subscript,
    "pointer_expression": Counter._subscript,
    "field_expression": Counter._subscript,
    "call_expression": Counter._call,
    "conditional_expression": Counter._conditional,
    "init_declarator": Counter._declarator,
}
