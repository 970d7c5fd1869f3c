"""Names that the declarations of Fortran give a type and a shape: of a procedure, what is around it, and modules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from advisor_processor.source.declared_types import iterate_descendants, node_text
from advisor_processor.source.records import Assignment

if TYPE_CHECKING:
    from tree_sitter import Node

_FLOATING: Final = re.compile(r"real|double precision|complex", re.IGNORECASE)
_SMALL: Final = re.compile(r"real|real\s*\(\s*4\s*\)|integer.*|logical.*", re.IGNORECASE)
_FUNCTION: Final = re.compile(r"^(.*)\bfunction\s+(\w+)", re.IGNORECASE)
_RESULT: Final = re.compile(r"\bresult\s*\(\s*(\w+)", re.IGNORECASE)


@dataclass(slots=True)
class FortranNames:
    """Names of floating-point numbers, arrays with the bytes of an element, bytes of all, and what they start with.

    Components of derived types begin with ``%``.
    """

    floating: set[str] = field(default_factory=set)
    arrays: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    initial: list[Assignment] = field(default_factory=list)

    def add_declarations(self, node: Node, prefix: str = "") -> None:
        """Add what stands directly in a procedure, a module or a derived type."""
        for one in node.named_children:
            if one.type == "variable_declaration":
                self._add_declaration(one, prefix)
            elif one.type == "derived_type_definition" and not prefix:
                self.add_declarations(one, "%")

    def add_names(self, inner: FortranNames) -> None:
        """Add names that hide those which are known."""
        for name in inner.sizes:
            self.floating.discard(name)
            self.arrays.pop(name, None)
        self.floating |= inner.floating
        self.arrays |= inner.arrays
        self.sizes |= inner.sizes

    def is_floating(self, name: str) -> bool:
        """Return whether a variable, component or function is a floating-point number."""
        return name in self.floating or ("%" in name and "%" + name.rpartition("%")[2] in self.floating)

    def element_size(self, name: str) -> int | None:
        """Return the bytes of an element of an array, None for what is none."""
        return self.arrays.get("%" + name.rpartition("%")[2] if "%" in name else name)

    def _add_declaration(self, node: Node, prefix: str) -> None:
        written = node_text(node.child_by_field_name("type"))
        size = 4 if _SMALL.fullmatch(written) else 8
        everywhere = re.search(r"dimension\s*\(([^)]*)\)", node_text(node).lower().split("::")[0])
        for declarator in node.children_by_field_name("declarator"):
            text = node_text(declarator).lower()
            found = re.match(r"\w+", text)
            if found is None:
                continue
            name = prefix + found[0]
            self.sizes[name] = size
            if _FLOATING.match(written):
                self.floating.add(name)
            place, _, value = text.partition("=")
            if everywhere or "(" in place:
                self.arrays[name] = size
            shape = re.search(r"\((.*)\)", place) or everywhere
            extent = shape[1] if shape else ""
            if prefix:
                continue
            if value and not value.startswith(">"):
                self.initial.append(Assignment(name, value.strip()))
            elif extent and not re.search(r"(^|,) ?:|: ?(,|$)|\*", extent):
                self.initial.append(Assignment(name, f"gapwatch_array({name}, {list_extents(extent)})"))


def list_extents(written: str) -> str:
    """Return the extents of an array as factors: of ``0:n`` it is n + 1."""
    parts = re.split(r",(?![^()]*\))", written)
    return ", ".join(
        f"({high}) - ({low}) + 1" if high else low for low, _, high in (each.strip().partition(":") for each in parts)
    )


def collect_module_names(roots: Iterable[Node]) -> FortranNames:
    """Return what the modules of files declare, and their functions of floating-point numbers."""
    found = FortranNames()
    for root in roots:
        for node in iterate_descendants(root):
            if node.type == "module" and node.is_named:
                found.add_declarations(node)
            elif node.type == "function" and node.is_named:
                _add_function(found, node)
    return found


def _add_function(found: FortranNames, node: Node) -> None:
    head = node_text(node.named_children[0]).lower()
    named = _FUNCTION.match(head)
    if named is None:
        return
    own = FortranNames()
    own.add_declarations(node)
    result = _RESULT.search(head)
    if _FLOATING.search(named[1]) or (result[1] if result else named[2]) in own.floating:
        found.floating.add(named[2])


def collect_procedure_names(node: Node, modules: FortranNames) -> tuple[FortranNames, FortranNames]:
    """Return the names that hold inside a procedure, and those that it declares itself."""
    found = FortranNames()
    found.add_names(modules)
    found.floating |= modules.floating
    around: list[Node] = []
    above = node.parent
    while above is not None:
        around.insert(0, above)
        above = above.parent
    for outer in around:
        names = FortranNames()
        names.add_declarations(outer)
        found.add_names(names)
    own = FortranNames()
    own.add_declarations(node)
    head = node_text(node.named_children[0]).lower()
    function = _FUNCTION.match(head)
    if function is not None and _FLOATING.search(function[1]):
        own.floating.add(function[2])
    found.add_names(own)
    return found, own
