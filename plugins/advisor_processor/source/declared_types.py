"""Which names hold floating-point numbers, from the declarations in a file of C or C++."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tree_sitter import Node

    from advisor_processor.source.macro_calls import MacroCalls

_SIZES: Final = {"double": 8, "float": 4, "long double": 16, "char": 1, "short": 2, "long": 8, "int": 4}
_FLOATING: Final = re.compile(r"\b(double|float|real|_Float\d+|__m(128|256|512)d?)\b")
_NUMBER_TYPE: Final = re.compile(r"(unsigned |long |short )*(double|float|int|long|short|char)")
_NUMBER: Final = re.compile(r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP]|(\d+\.\d*|\.\d+|\d+[eE])|\d+\.?[fF]$)")
#: Functions of the mathematical library, which return floating-point numbers.
MATHEMATICS: Final = frozenset({
    "sqrt", "fabs", "exp", "log", "sin", "cos", "tan", "pow", "atan", "atan2", "floor", "ceil", "fmin", "fmax", "fma",
    "sinh", "cosh", "tanh", "cbrt", "hypot", "exp2", "log2", "log10", "erf", "fmod", "sqrtf", "fabsf", "expf", "logf",
})  # fmt: skip
_NAMES: Final = ("identifier", "field_identifier", "type_identifier", "operator_name", "destructor_name")
_COMPARING: Final = frozenset({"<", ">", "<=", ">=", "==", "!=", "&&", "||", "%", "&", "|", "^", "<<", ">>"})
_THROUGH: Final = frozenset({
    "binary_expression", "parenthesized_expression", "unary_expression", "conditional_expression", "comma_expression",
})  # fmt: skip


def node_text(node: Node | None) -> str:
    """Return a node as written, on one line."""
    if node is None or node.text is None:
        return ""
    return " ".join(node.text.decode("utf-8", "replace").split())


@dataclass(slots=True)
class DeclaredTypes:
    """Declared types by name, of the whole file and of one function, fields of structures, and other names of types."""

    names: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    macros: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    calls: MacroCalls | None = None

    def types_inside(self, function: Node) -> DeclaredTypes:
        """Return the types that hold inside a function."""
        found = replace(self, names=dict(self.names))
        for node in iterate_descendants(function):
            if node.type in ("declaration", "parameter_declaration", "optional_parameter_declaration"):
                found.add_declaration(node)
        return found

    def add_declaration(self, node: Node) -> None:
        """Note the names that a declaration declares."""
        written = self.resolve_alias(node_text(node.child_by_field_name("type")))
        for declarator in node.children_by_field_name("declarator"):
            if name := declared_name(declarator):
                is_function = any(
                    each.type == "function_declarator" for each in (declarator, *iterate_descendants(declarator))
                )
                (self.functions if is_function else self.names)[name] = written

    def add_types(self, other: DeclaredTypes) -> None:
        """Add the declarations of another file; known ones take precedence."""
        pairs: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
            (self.names, other.names), (self.functions, other.functions),
            (self.fields, other.fields), (self.aliases, other.aliases), (self.macros, other.macros),
        )  # fmt: skip
        for mine, theirs in pairs:
            mine.update({name: written for name, written in theirs.items() if name not in mine})

    def object_size(self, name: str) -> int:
        """Return the bytes of a number of the type of a name, or of what it points at; 8 where that is not known."""
        written = self.names.get(name, "")
        return next((size for word, size in _SIZES.items() if re.search(rf"\b{word}\b", written)), 8)

    def resolve_alias(self, written: str) -> str:
        """Return the type behind an alias."""
        for _ in range(8):
            if written not in self.aliases:
                break
            written = self.aliases[written]
        return written

    def is_floating(self, node: Node | None) -> bool:
        """Return whether an expression is a floating-point number."""
        if node is None:
            return False
        if node.type in ("identifier", "qualified_identifier"):
            return is_floating_type(self.names.get(node_text(node), ""))
        if node.type == "number_literal":
            return bool(_NUMBER.match(node_text(node)))
        if node.type == "field_expression":
            return is_floating_type(self.fields.get(node_text(node.child_by_field_name("field")), ""))
        if node.type == "call_expression":
            meant = self.expand_call(node)
            if meant is not None:
                return self.is_floating(meant)
            name = node_text(node.child_by_field_name("function")).removeprefix("std::")
            method = "operator()" if name in self.names else re.split(r"\.|->|::", name)[-1]
            return name in MATHEMATICS or is_floating_type(self.functions.get(method, ""))
        if node.type == "cast_expression":
            return is_floating_type(self.resolve_alias(node_text(node.child_by_field_name("type")).rstrip(" *")))
        if node.type in ("assignment_expression", "update_expression"):
            return self.is_floating(node.child_by_field_name("left") or node.child_by_field_name("argument"))
        if node.type == "binary_expression" and node_text(node.child_by_field_name("operator")) in _COMPARING:
            return False
        if node.type in ("subscript_expression", "pointer_expression"):
            return self.is_floating(node.child_by_field_name("argument"))
        return node.type in _THROUGH and any(self.is_floating(child) for child in node.named_children)

    def expand_call(self, node: Node) -> Node | None:
        """Return the expression that a call of a macro stands for, None for other calls."""
        return self.calls.expand_call(node) if self.calls is not None else None

    def element_size(self, node: Node | None) -> int:
        """Return the bytes of an element of the array that an expression names, 8 where that is not known."""
        while node is not None and node.type in (
            "subscript_expression",
            "pointer_expression",
            "parenthesized_expression",
        ):
            node = node.child_by_field_name("argument") or (node.named_children[0] if node.named_children else None)
        name = node_text(node)
        if node is not None and node.type == "field_expression":
            written = self.fields.get(node_text(node.child_by_field_name("field")), "")
        else:
            written = self.names.get(name, "")
        return next((size for word, size in _SIZES.items() if re.search(rf"\b{word}\b", written)), 8)


def is_floating_type(written: str) -> bool:
    """Return whether a type, as written, is one of floating-point numbers (or points to them)."""
    return bool(_FLOATING.search(written))


def declared_name(declarator: Node) -> str:
    """Return the name inside a declarator such as ``*restrict a`` or ``a[N]``."""
    node: Node | None = declarator
    while node is not None and node.type not in _NAMES:
        node = (
            node.child_by_field_name("declarator")
            or (node.child_by_field_name("name") if node.type == "qualified_identifier" else None)
            or next((child for child in node.named_children if child.type.endswith(("declarator", "identifier"))), None)
        )
    return node_text(node)


def iterate_descendants(node: Node) -> Iterator[Node]:
    """Yield everything below a node, in the order of the source."""
    stack = list(reversed(node.children))
    while stack:
        one = stack.pop()
        yield one
        stack.extend(reversed(one.children))


def collect_types(root: Node) -> DeclaredTypes:
    """Return the types that hold in the whole file."""
    found = DeclaredTypes()
    for node in iterate_descendants(root):
        if node.type == "type_definition":
            for declarator in node.children_by_field_name("declarator"):
                found.aliases[declared_name(declarator)] = node_text(node.child_by_field_name("type"))
        elif node.type == "preproc_def" and _NUMBER_TYPE.fullmatch(node_text(node.child_by_field_name("value"))):
            found.aliases[node_text(node.child_by_field_name("name"))] = node_text(node.child_by_field_name("value"))
        elif node.type == "preproc_function_def":
            names = node.child_by_field_name("parameters")
            given = tuple(node_text(each) for each in names.named_children) if names is not None else ()
            body = re.sub(r"/\*.*?\*/|//.*", "", node_text(node.child_by_field_name("value"))).replace("\\", " ")
            found.macros[node_text(node.child_by_field_name("name"))] = (given, body.strip())
        elif node.type == "field_declaration":
            written = found.resolve_alias(node_text(node.child_by_field_name("type")))
            for declarator in node.children_by_field_name("declarator"):
                found.fields[declared_name(declarator)] = written
        elif node.type == "function_definition":
            name = declared_name(node.child_by_field_name("declarator") or node)
            found.functions[name] = found.resolve_alias(node_text(node.child_by_field_name("type")))
        elif node.type == "declaration" and node.parent is not None and node.parent.type == "translation_unit":
            found.add_declaration(node)
    return found
