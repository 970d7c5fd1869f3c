"""Clauses ``collapse`` of OpenMP: no counter may stand between the loops of such a nest, so a copy is built without.

What is executed stays the same; only its distribution over the threads, which the counts do not tell, does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from advisor_processor.source.declared_types import iterate_descendants, node_text
from advisor_processor.source.records import Insertion

if TYPE_CHECKING:
    from tree_sitter import Node

_CLAUSE: Final = re.compile(rb"\bcollapse\s*\(\s*(\d+)\s*\)", re.IGNORECASE)
_DIRECTIVE: Final = re.compile(rb"^[ \t]*!\$omp.*$", re.IGNORECASE | re.MULTILINE)


def expand_collapsed_loops(root: Node) -> Iterator[Insertion]:
    """Yield what takes the place of the clauses in C and C++: inner variables declared outside stay private."""
    for node in iterate_descendants(root):
        found = _CLAUSE.search(node.text or b"") if node.type == "preproc_call" else None
        if found is None:
            continue
        names = _find_shared_variables(node, int(found[1]))
        text = f"private({', '.join(names)})" if names else ""
        yield Insertion(node.start_byte + found.start(), text, 0, len(found[0]))


def expand_collapsed_lines(code: bytes) -> Iterator[Insertion]:
    """Yield what takes the place of the clauses in Fortran, where variables of inner loops are private anyway."""
    for line in _DIRECTIVE.finditer(code):
        for found in _CLAUSE.finditer(line[0]):
            yield Insertion(line.start() + found.start(), "", 0, len(found[0]))


def _find_shared_variables(pragma: Node, depth: int) -> list[str]:
    """Return the variables of the inner loops below a directive that are declared before it."""
    loop = pragma.next_named_sibling
    found = []
    for level in range(depth):
        while loop is not None and loop.type != "for_statement":
            loop = loop.named_children[0] if loop.type == "compound_statement" and loop.named_children else None
        if loop is None:
            break
        initial = loop.child_by_field_name("initializer")
        if level and initial is not None and initial.type == "assignment_expression":
            found.append(node_text(initial.child_by_field_name("left")))
        loop = loop.child_by_field_name("body")
    return found
