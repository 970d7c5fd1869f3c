"""Operations of an expression of C or C++: floating-point operations by unit, accesses to memory, calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from advisor_processor.source.declared_types import DeclaredTypes, node_text
from advisor_processor.source.records import Reference, Work

if TYPE_CHECKING:
    from tree_sitter import Node

_UNITS: Final = {"+": "fp_add", "-": "fp_add", "*": "fp_mul", "/": "fp_div"}
_ROOTS: Final = frozenset({"sqrt", "sqrtf", "std::sqrt"})
_OUTSIDE: Final = frozenset({"sizeof_expression", "type_descriptor", "lambda_expression", "preproc_call", "comment"})


class OperationCounter:
    """Adds up the work of expressions; ``branch`` gives the work of a part that runs only under a condition."""

    def __init__(self, types: DeclaredTypes, work: Work, branch: Callable[[Node, str], Work] | None = None) -> None:
        self._types = types
        self._work = work
        self._branch = branch

    def count_node(self, node: Node | None) -> None:
        """Add what an expression computes, loads, stores and calls."""
        if node is None or node.type in _OUTSIDE:
            return
        handler = _HANDLERS.get(node.type)
        if handler is None:
            for child in node.named_children:
                self.count_node(child)
        else:
            handler(self, node)

    def _count_binary(self, node: Node) -> None:
        operator = node_text(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        self.count_node(left)
        if operator in ("&&", "||"):
            condition = node_text(left)
            self._count_branch(right, condition if operator == "&&" else f"!({condition})")
            return
        self.count_node(right)
        if operator in _UNITS and self._types.is_floating(node):
            self._add_operation(operator, left, right)

    def _add_operation(self, operator: str, left: Node | None, right: Node | None) -> None:
        """Add one operation; an addition to a product becomes one multiply-add, as hardware does it."""
        if operator in "+-" and (self._is_product(left) or self._is_product(right)):
            self._work.add_operations("fp_mul", -1)
            self._work.add_operations("fp_fma")
        else:
            self._work.add_operations(_UNITS[operator])

    def _is_product(self, node: Node | None) -> bool:
        while node is not None and node.type in ("parenthesized_expression", "call_expression"):
            if node.type == "call_expression":
                node = self._types.expand_call(node)
            else:
                node = node.named_children[0] if node.named_children else None
        if node is None or node.type != "binary_expression":
            return False
        return node_text(node.child_by_field_name("operator")) == "*" and self._types.is_floating(node)

    def _count_assignment(self, node: Node) -> None:
        operator = node_text(node.child_by_field_name("operator")).removesuffix("=")
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        self.count_node(right)
        if operator:
            self.count_node(left)
            if operator in _UNITS and (self._types.is_floating(left) or self._types.is_floating(right)):
                self._add_operation(operator, None, right)
        self._add_store(left)

    def _count_update(self, node: Node) -> None:
        argument = node.child_by_field_name("argument")
        self.count_node(argument)
        if self._types.is_floating(argument):
            self._work.add_operations("fp_add")
        self._add_store(argument)

    def _add_store(self, node: Node | None) -> None:
        if node is not None and node.type == "call_expression":
            node = self._types.expand_call(node)
        if node is not None and node.type in ("subscript_expression", "field_expression", "pointer_expression"):
            self._add_access(node, write=True)

    def _count_subscript(self, node: Node) -> None:
        self._add_access(node, write=False)

    def _add_access(self, node: Node, write: bool) -> None:
        """Add an access to memory and, once, what its subscripts compute."""
        subscripts: list[str] = []
        base: Node | None = node
        while base is not None and base.type == "subscript_expression":
            index = base.child_by_field_name("index") or _find_index(base)
            if not write:
                self.count_node(index)
            subscripts.insert(0, node_text(index))
            base = base.child_by_field_name("argument")
        if base is not None and base.type == "pointer_expression":
            if node_text(base.child_by_field_name("operator")) != "*":
                return  # an address is no access
            subscripts.insert(0, "0")
        if not subscripts and "->" not in node_text(base):
            return
        floats = self._types.is_floating(node)
        size = self._types.element_size(node)
        self._work.references.append(Reference(node_text(base).lstrip("*"), tuple(subscripts), size, write, floats))

    def _count_call(self, node: Node) -> None:
        meant = self._types.expand_call(node)
        if meant is not None:  # no counters can be put into it: a part under a condition counts as if it always ran
            OperationCounter(self._types, self._work).count_node(meant)
            return
        name = node_text(node.child_by_field_name("function"))
        arguments = node.child_by_field_name("arguments")
        given = arguments.named_children if arguments is not None else []
        for each in given:
            self.count_node(each)
        if name in _ROOTS:
            self._work.add_operations("fp_div")
        elif name == "fma":
            self._work.add_operations("fp_fma")
        self._work.calls.append((name, tuple(node_text(each) for each in given)))

    def _count_conditional(self, node: Node) -> None:
        self.count_node(node.child_by_field_name("condition"))
        condition = node_text(node.child_by_field_name("condition"))
        self._count_branch(node.child_by_field_name("consequence"), condition)
        self._count_branch(node.child_by_field_name("alternative"), f"!({condition})")

    def _count_branch(self, node: Node | None, condition: str) -> None:
        if node is None:
            return
        if self._branch is None:
            self.count_node(node)
        else:
            OperationCounter(self._types, self._branch(node, condition), self._branch).count_node(node)

    def _count_declarator(self, node: Node) -> None:
        self.count_node(node.child_by_field_name("value"))


_HANDLERS: Final = {
    "binary_expression": OperationCounter._count_binary,
    "assignment_expression": OperationCounter._count_assignment,
    "update_expression": OperationCounter._count_update,
    "subscript_expression": OperationCounter._count_subscript,
    "pointer_expression": OperationCounter._count_subscript,
    "field_expression": OperationCounter._count_subscript,
    "call_expression": OperationCounter._count_call,
    "conditional_expression": OperationCounter._count_conditional,
    "init_declarator": OperationCounter._count_declarator,
}


def _find_index(node: Node) -> Node | None:
    """Return the subscript of C++'s grammar, which keeps it in a list."""
    indices = node.child_by_field_name("indices")
    return indices.named_children[0] if indices is not None and indices.named_children else None
