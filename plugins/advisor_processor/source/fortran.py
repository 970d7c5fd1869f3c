"""A file of free-form Fortran -> its loops and blocks with their operations, and where to insert counters.

A statement on a whole array, or on a section of one, is a loop over its elements.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from advisor_processor.source.collapsed_loops import expand_collapsed_lines
from advisor_processor.source.declared_types import iterate_descendants, node_text
from advisor_processor.source.fortran_expressions import ExpressionCounter
from advisor_processor.source.fortran_names import collect_module_names, collect_procedure_names, list_extents
from advisor_processor.source.records import (
    Assignment,
    Block,
    Branch,
    CallSite,
    Insertion,
    Leave,
    Loop,
    LoopEntry,
    Rest,
    Source,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from advisor_processor.source.fortran_names import FortranNames

_PROCEDURES: Final = ("program", "subroutine", "function", "module_procedure")
_SPECIFYING: Final = frozenset({
    "program_statement", "subroutine_statement", "function_statement", "implicit_statement", "use_statement", "comment",
    "variable_declaration", "parameter_statement", "include_statement", "interface", "derived_type_definition",
    "import_statement", "data_statement", "variable_modification", "common_statement", "equivalence_statement",
    "preproc_include", "namelist_statement", "module_procedure_statement", "enum", "preproc_ifdef", "preproc_if",
})  # fmt: skip
_KINDS: Final[dict[str, Literal["break", "continue", "return"]]] = {
    "exit": "break", "cycle": "continue", "return": "return", "goto": "return", "go": "return",
}  # fmt: skip
#: Counters that may be called where nothing but pure procedures may: the compiler is not told what they do.
_PURE_COUNTERS: Final = """interface
pure subroutine gapwatch_tick_@FILE@(n)
integer, intent(in) :: n
end subroutine
pure subroutine gapwatch_value_@FILE@(n, x)
integer, intent(in) :: n
integer(8), intent(in) :: x
end subroutine
pure subroutine gapwatch_add_@FILE@(n, times)
integer, intent(in) :: n
integer(8), intent(in) :: times
end subroutine
end interface
"""
_LEAVING: Final = re.compile(r"(exit|cycle|return|stop|goto|go to)\b", re.IGNORECASE)


def analyse_fortran_source(code: bytes, file: str, root: Node, language: str, modules: FortranNames) -> Source:
    """Return what a file holds; procedures and loops in the order of the source. ``modules`` are names of all files."""
    source = Source(file, language, insertions=list(expand_collapsed_lines(code)))
    source.values.update({each.name: each.value for each in collect_module_names([root]).initial})
    for node in iterate_descendants(root):
        if node.is_named and node.type in _PROCEDURES:
            _ProcedureWalker(source, node, modules).walk_procedure()
    if root.has_error:
        place = next((one for one in iterate_descendants(root) if one.type == "ERROR" or one.is_missing), root)
        source.problems.append(f"{file}:{place.start_point[0] + 1}: is not understood, and not counted")
    return source


class _ProcedureWalker:
    """Walks one program, subroutine or function."""

    def __init__(self, source: Source, node: Node, modules: FortranNames) -> None:
        self._source = source
        self._node = node
        head = node.named_children[0]
        name = head.child_by_field_name("name")
        self._name = "program" if node.type == "program" else node_text(name).lower()
        self._names, own = collect_procedure_names(node, modules)
        self._declared = frozenset(own.sizes)
        self._initial = own.initial
        self._counter = ExpressionCounter(self._names)
        for each, size in own.sizes.items():
            self._source.sizes[self._name, each] = size

    def walk_procedure(self) -> None:
        """Add the procedure's blocks and loops to the source."""
        head = node_text(self._node.named_children[0]).lower()
        first = next((one for one in self._node.named_children if one.type not in _SPECIFYING), None)
        if first is None:
            return
        if re.search(r"\b(pure|elemental)\b", head) or _has_pure_loop(self._node):
            self._insert_text(_find_directives(first).start_byte, _PURE_COUNTERS, -1)
        given = self._node.named_children[0].child_by_field_name("parameters")
        names = tuple(node_text(each).lower() for each in given.named_children) if given is not None else ()
        self._source.parameters[self._name] = names
        self._source.declared[self._name] = self._declared | frozenset(names)
        block = self._add_block(first, None, None)
        self._source.entries[self._name] = block
        block.statements += self._initial
        self._insert_tick(_find_directives(first).start_byte, block, before=True)
        self._walk_statements([one for one in self._node.named_children if one.type not in _SPECIFYING], block, None)

    def _add_block(self, node: Node, loop: Loop | None, parent: Block | None, branch: bool = False) -> Block:
        block = Block(len(self._source.blocks), self._name, node.start_point[0] + 1, loop, parent, branch=branch)
        self._source.blocks.append(block)
        return block

    def _insert_text(self, offset: int, words: str, order: int = 0) -> None:
        self._source.insertions.append(Insertion(offset, words, order))

    def _insert_tick(self, offset: int, block: Block, before: bool = False, order: int = 0) -> None:
        words = f"call gapwatch_tick_@FILE@({block.number})"
        self._insert_text(offset, f"{words}\n" if before else f"\n{words}\n", order)

    def _walk_statements(self, nodes: list[Node], block: Block, loop: Loop | None) -> None:
        for node in nodes:
            if node.type == "internal_procedures" or node.type in _PROCEDURES:
                continue
            self._walk_statement(node, block, loop)
            if node.type in ("if_statement", "select_case_statement") and _may_leave(node):
                rest = self._add_block(node, loop, block)
                block.statements.append(Rest(rest))
                block = rest
                self._insert_tick(node.end_byte, block, order=1)

    def _walk_statement(self, node: Node, block: Block, loop: Loop | None) -> None:
        if node.type in ("do_loop", "do_loop_statement"):
            self._walk_loop(node, block)
        elif node.type == "if_statement":
            self._walk_if(node, block, loop)
        elif not node.type.startswith("end_"):
            before = len(block.work.calls)
            if node.type == "assignment_statement":
                self._walk_assignment(node, block)
            else:
                self._counter.count_expression(node, block.work)
            calls = block.work.calls[before:]
            last = len(calls) - 1 if node.type == "subroutine_call" else -1
            block.statements += [CallSite(*call, at != last, node.start_point[0] + 1) for at, call in enumerate(calls)]
            block.statements += self._find_effects(node)

    def _find_effects(self, node: Node) -> Iterator[Assignment | Leave]:
        """Yield what a statement assigns, reads, allocates or leaves."""
        text = node_text(node).lower()
        if node.type == "assignment_statement":
            left = node.child_by_field_name("left")
            if left is not None and left.type != "call_expression" and self._find_array(left) is None:
                yield Assignment(node_text(left).lower(), node_text(node.child_by_field_name("right")).lower())
        elif node.type == "keyword_statement" and (word := re.match(r"[a-z]+", text)) and word[0] in _KINDS:
            yield Leave(_KINDS[word[0]])
        elif node.type == "read_statement" and (found := re.fullmatch(r"read ?\( ?(\w+) ?,.*\) ?(\w+)", text)):
            yield Assignment(found[2], f"gapwatch_read({found[1]})")
        elif node.type == "allocate_statement":
            for name, extent in re.findall(r"(\w+) ?\(((?:[^()]|\([^()]*\))*)\)", text.partition("(")[2]):
                yield Assignment(name, f"gapwatch_array({name}, {list_extents(extent)})")

    def _walk_if(self, node: Node, block: Block, loop: Loop | None) -> None:
        condition, *rest = [one for one in node.named_children if one.type != "comment"]
        self._counter.count_expression(condition, block.work)
        if not any(child.type == "then" for child in node.children):
            inner = self._add_block(rest[0], loop, block, branch=True)
            self._insert_text(rest[0].start_byte, f" then\ncall gapwatch_tick_@FILE@({inner.number})\n")
            self._insert_text(node.end_byte, "\nend if\n", -1)
            self._walk_statements(rest, inner, loop)
            block.statements.append(Branch(((node_text(condition).lower(), inner),)))
            return
        clauses = [one for one in rest if one.type in ("elseif_clause", "else_clause")]
        then = [one for one in rest if one not in clauses and one.type != "end_if_statement"]
        taken = self._walk_branch(node_text(condition).lower(), then, block, loop)
        for clause in clauses:
            inside = [one for one in clause.named_children if one.type != "comment"]
            if clause.type == "elseif_clause":
                self._counter.count_expression(inside[0], block.work)
            other = node_text(inside.pop(0)).lower() if clause.type == "elseif_clause" else "1"
            taken += self._walk_branch(other, inside, block, loop)
        block.statements.append(Branch(tuple(taken)))

    def _walk_branch(
        self, condition: str, nodes: list[Node], block: Block, loop: Loop | None
    ) -> list[tuple[str | None, Block]]:  # fmt: skip
        if not nodes:
            return []
        inner = self._add_block(nodes[0], loop, block, branch=True)
        self._insert_tick(_find_directives(nodes[0]).start_byte, inner, before=True)
        self._walk_statements(nodes, inner, loop)
        return [(condition, inner)]

    def _walk_loop(self, node: Node, block: Block) -> None:
        head, *body = node.named_children
        body = [one for one in body if not one.type.startswith("end_do")]
        loop = Loop(len(self._source.loops), self._name, node.start_point[0] + 1, "do", "", "", "<=", "", "", block)
        control = next((one for one in head.named_children if one.type == "loop_control_expression"), None)
        parts = [node_text(one).lower() for one in control.named_children] if control is not None else []
        parts = parts or _join_concurrent(head)
        if parts:
            loop.variable, loop.initial, loop.final = parts[:3]
            loop.step = parts[3] if len(parts) > 3 else "1"
            loop.comparison = ">=" if loop.step.startswith("-") else "<="
            names = set(re.findall(r"[a-z_]\w*", " ".join(parts[1:]))) - {loop.variable}
            plain = not re.search(r"\w\s*\(|%", " ".join(parts[1:]))
            loop.symbols = tuple(sorted(names)) if plain else ()
        assigned = [
            one.child_by_field_name("left") for one in iterate_descendants(node) if one.type == "assignment_statement"
        ]
        loop.changed = frozenset(node_text(one).lower() for one in assigned)
        first = sum(len(other.symbols) for other in self._source.loops)
        self._source.loops.append(loop)
        outer = block.loop
        while outer is not None:
            outer.inner, outer = False, outer.block.loop
        loop.inner = True
        place_before = _find_directives(node).start_byte
        for place, name in enumerate(loop.symbols):
            self._insert_text(place_before, f"call gapwatch_value_@FILE@({first + place}, int({name}, 8))\n", 2)
        block.statements.append(LoopEntry(loop))
        loop.body = self._add_block(node, loop, None)
        self._insert_tick(head.end_byte, loop.body)
        for one in head.named_children:
            if one.type != "loop_control_expression":
                self._counter.count_expression(one, loop.body.work)
        self._walk_statements(body, loop.body, loop)

    def _walk_assignment(self, node: Node, block: Block) -> None:
        """Count an assignment; one to a whole array or to a section of one is a loop over its elements."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        target = self._find_array(left)
        if left is None or target is None:
            self._counter.count_expression(right, block.work)
            if left is not None and left.type == "call_expression":
                self._counter.add_target(left, block.work)
            return
        if _shares_work(node):
            place = f"{self._source.file}:{node.start_point[0] + 1}"
            self._source.problems.append(f"{place}: works on a whole array in a workshare, which is not counted")
            return
        number, line, extent = len(self._source.loops), node.start_point[0] + 1, f"gapwatch_size({target})"
        loop = Loop(number, self._name, line, "array", "gapwatch_element", "1", "<=", extent, "1", block)
        self._source.loops.append(loop)
        loop.body = self._add_block(node, loop, None)
        loop.inner = True
        block.statements.append(LoopEntry(loop))
        written = " ".join(node_text(left).split())
        self._insert_text(
            node.end_byte, f"\ncall gapwatch_add_@FILE@({loop.body.number}, int(size({written}), 8))\n", -2
        )
        counter = ExpressionCounter(self._names, whole=True)
        counter.count_expression(right, loop.body.work)
        counter.add_target(left, loop.body.work)

    def _find_array(self, left: Node | None) -> str | None:
        """Return an array that is assigned as a whole or in sections, with its subscripts; None for an element."""
        if left is None:
            return None
        if left.type != "call_expression":
            name = node_text(left).lower().replace(" ", "")
            return name if self._names.element_size(name) is not None else None
        array, *given = left.named_children
        subscripts = given[0].named_children if given else []
        if not any(each.type == "extent_specifier" for each in subscripts):
            return None
        return ", ".join(node_text(each).lower() for each in (array, *subscripts))


def _shares_work(node: Node) -> bool:
    """Return whether a statement stands between the directives of a ``workshare``, where no call may."""
    above = node.prev_named_sibling
    while above is not None:
        text = node_text(above).lower()
        if above.type == "comment" and text.startswith("!$omp") and "workshare" in text:
            return not text.removeprefix("!$omp").lstrip().startswith("end")
        above = above.prev_named_sibling
    return False


def _find_directives(node: Node) -> Node:
    """Return the first of the directives right above a loop, which nothing may part from it; else the loop."""
    above = node.prev_named_sibling
    while above is not None and above.type == "comment":
        if node_text(above).startswith("!$"):
            node = above
        above = above.prev_named_sibling
    return node


def _join_concurrent(head: Node) -> list[str]:
    """Return the control of a ``do concurrent``, with several indices that of their combinations; empty with a mask."""
    header = next((one for one in iterate_descendants(head) if one.type == "concurrent_header"), None)
    if header is None or any(one.type != "concurrent_control" for one in header.named_children):
        return []
    controls = [[node_text(each).lower() for each in one.named_children] for one in header.named_children]
    if len(controls) == 1:
        return controls[0]
    extents = (
        f"(({end}) - ({begin}) + ({step})) / ({step})" for _, begin, end, step in ([*one, "1"][:4] for one in controls)
    )
    return ["gapwatch_combination", "1", " * ".join(f"({each})" for each in extents)]


def _has_pure_loop(procedure: Node) -> bool:
    """Return whether a procedure, without those inside it, holds a ``do concurrent``."""
    stack = [each for each in procedure.named_children if each.type not in ("internal_procedures", *_PROCEDURES)]
    while stack:
        node = stack.pop()
        if node.type in ("concurrent_statement", "concurrent_control"):
            return True
        stack.extend(node.named_children)
    return False


def _may_leave(node: Node) -> bool:
    """Return whether a statement holds one that leaves the block it stands in, or the loop around that."""
    return any(
        one.type == "keyword_statement" and bool(_LEAVING.match(node_text(one))) for one in iterate_descendants(node)
    )
