"""A file of free-form Fortran -> its loops and blocks with their operations, and where to insert counters.

Whole-array statements count as one operation on each name in them, and are named among the problems: they hide loops.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from advisor_processor.source.declared_types import iterate_descendants, node_text
from advisor_processor.source.records import (
    Assignment,
    Block,
    Branch,
    CallSite,
    Insertion,
    Leave,
    Loop,
    LoopEntry,
    Reference,
    Rest,
    Source,
    Work,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_PROCEDURES: Final = ("program", "subroutine", "function", "module_procedure")
_SPECIFYING: Final = frozenset({
    "program_statement", "subroutine_statement", "function_statement", "implicit_statement", "use_statement", "comment",
    "variable_declaration", "parameter_statement", "include_statement", "interface", "derived_type_definition",
    "import_statement", "data_statement", "variable_modification", "common_statement", "equivalence_statement",
    "preproc_include", "namelist_statement", "module_procedure_statement", "enum", "preproc_ifdef", "preproc_if",
})  # fmt: skip
_FLOATING: Final = re.compile(r"real|double precision|complex", re.IGNORECASE)
_UNITS: Final = {"+": "fp_add", "-": "fp_add", "*": "fp_mul", "/": "fp_div"}
_LITERAL: Final = re.compile(r"\d*\.\d*([ed][+-]?\d+)?(_\w+)?|\d+[ed][+-]?\d+(_\w+)?", re.IGNORECASE)
_INTRINSIC: Final = frozenset({
    "sqrt", "abs", "exp", "log", "sin", "cos", "tan", "max", "min", "atan", "atan2", "sum", "dot_product", "dble",
    "real",
})  # fmt: skip
_KINDS: Final[dict[str, Literal["break", "continue", "return"]]] = {
    "exit": "break", "cycle": "continue", "return": "return", "goto": "return", "go": "return",
}  # fmt: skip
_LEAVING: Final = re.compile(r"(exit|cycle|return|stop|goto|go to)\b", re.IGNORECASE)


def analyse_fortran_source(code: bytes, file: str, root: Node, language: str) -> Source:
    """Return what a file holds; procedures and loops in the order of the source."""
    source = Source(file, language)
    for node in iterate_descendants(root):
        if node.is_named and node.type in _PROCEDURES:
            _ProcedureWalker(source, node).walk_procedure()
    if root.has_error:
        place = next((one for one in iterate_descendants(root) if one.type == "ERROR" or one.is_missing), root)
        source.problems.append(f"{file}:{place.start_point[0] + 1}: is not understood, and not counted")
    return source


class _ProcedureWalker:
    """Walks one program, subroutine or function."""

    def __init__(self, source: Source, node: Node) -> None:
        self._source = source
        self._node = node
        head = node.named_children[0]
        name = head.child_by_field_name("name")
        self._name = "program" if node.type == "program" else node_text(name).lower()
        self._floating: set[str] = set()
        self._arrays: dict[str, int] = {}
        self._declared: set[str] = set()
        self._initial: list[Assignment] = []
        for one in node.named_children:
            if one.type == "variable_declaration":
                self._add_declaration(one)

    def _add_declaration(self, node: Node) -> None:
        written = node_text(node.child_by_field_name("type"))
        size = 4 if re.fullmatch(r"real|real\s*\(\s*4\s*\)|integer.*|logical.*", written, re.IGNORECASE) else 8
        everywhere = "dimension" in node_text(node).lower()
        for declarator in node.children_by_field_name("declarator"):
            name = re.match(r"\w+", node_text(declarator))
            if name is None:
                continue
            self._declared.add(name[0].lower())
            self._note_value(node, node_text(declarator).lower(), name[0].lower(), size)
            if _FLOATING.match(written):
                self._floating.add(name[0].lower())
            if everywhere or "(" in node_text(declarator).split("=")[0]:
                self._arrays[name[0].lower()] = size

    def _note_value(self, node: Node, written: str, name: str, size: int) -> None:
        """Note the initial value of a declared name, or the memory of an array."""
        self._source.sizes[self._name, name] = size
        place, _, value = written.partition("=")
        shape = re.search(r"\((.*)\)", place)
        everywhere = re.search(r"dimension\s*\(([^)]*)\)", node_text(node).lower().split("::")[0])
        extent = shape[1] if shape else everywhere[1] if everywhere else ""
        if value:
            self._initial.append(Assignment(name, value.strip()))
        elif extent and ":" not in extent.replace("0:", "") and "*" not in extent:
            self._initial.append(Assignment(name, f"gapwatch_array({name}, {_extents(extent)})"))

    def walk_procedure(self) -> None:
        """Add the procedure's blocks and loops to the source."""
        head = node_text(self._node.named_children[0]).lower()
        first = next((one for one in self._node.named_children if one.type not in _SPECIFYING), None)
        if first is None or re.search(r"\b(pure|elemental)\b", head):
            self._source.problems.append(f"{self._source.file}: {self._name} is pure: counters can't be put into it")
            return
        given = self._node.named_children[0].child_by_field_name("parameters")
        names = tuple(node_text(each).lower() for each in given.named_children) if given is not None else ()
        self._source.parameters[self._name] = names
        self._source.declared[self._name] = frozenset(self._declared) | frozenset(names)
        block = self._add_block(first, None, None)
        self._source.entries[self._name] = block
        block.statements += self._initial
        self._insert_tick(first.start_byte, block, before=True)
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
                self._count_assignment(node, block.work)
            else:
                self._count_expression(node, block.work)
            calls = block.work.calls[before:]
            last = len(calls) - 1 if node.type == "subroutine_call" else -1
            block.statements += [CallSite(*call, is_function=at != last) for at, call in enumerate(calls)]
            block.statements += self._find_effects(node)

    def _find_effects(self, node: Node) -> Iterator[Assignment | Leave]:
        """Yield what a statement assigns, reads, allocates or leaves."""
        text = node_text(node).lower()
        if node.type == "assignment_statement":
            left = node.child_by_field_name("left")
            if left is not None and left.type != "call_expression":
                yield Assignment(node_text(left).lower(), node_text(node.child_by_field_name("right")).lower())
        elif node.type == "keyword_statement" and (word := re.match(r"[a-z]+", text)) and word[0] in _KINDS:
            yield Leave(_KINDS[word[0]])
        elif node.type == "read_statement" and (found := re.fullmatch(r"read ?\( ?(\w+) ?,[^)]*\) ?(\w+)", text)):
            yield Assignment(found[2], f"gapwatch_read({found[1]})")
        elif node.type == "allocate_statement":
            for name, extent in re.findall(r"(\w+) ?\(((?:[^()]|\([^()]*\))*)\)", text.partition("(")[2]):
                yield Assignment(name, f"gapwatch_array({name}, {_extents(extent)})")

    def _walk_if(self, node: Node, block: Block, loop: Loop | None) -> None:
        condition, *rest = [one for one in node.named_children if one.type != "comment"]
        self._count_expression(condition, block.work)
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
                self._count_expression(inside[0], block.work)
            other = node_text(inside.pop(0)).lower() if clause.type == "elseif_clause" else "1"
            taken += self._walk_branch(other, inside, block, loop)
        block.statements.append(Branch(tuple(taken)))

    def _walk_branch(
        self, condition: str, nodes: list[Node], block: Block, loop: Loop | None
    ) -> list[tuple[str | None, Block]]:  # fmt: skip
        if not nodes:
            return []
        inner = self._add_block(nodes[0], loop, block, branch=True)
        self._insert_tick(nodes[0].start_byte, inner, before=True)
        self._walk_statements(nodes, inner, loop)
        return [(condition, inner)]

    def _walk_loop(self, node: Node, block: Block) -> None:
        head, *body = node.named_children
        body = [one for one in body if not one.type.startswith("end_do")]
        loop = Loop(len(self._source.loops), self._name, node.start_point[0] + 1, "do", "", "", "<=", "", "", block)
        control = next((one for one in head.named_children if one.type == "loop_control_expression"), None)
        if control is not None:
            parts = [node_text(one).lower() for one in control.named_children]
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
        for place, name in enumerate(loop.symbols):
            self._insert_text(node.start_byte, f"call gapwatch_value_@FILE@({first + place}, int({name}, 8))\n", 2)
        block.statements.append(LoopEntry(loop))
        loop.body = self._add_block(node, loop, None)
        self._insert_tick(head.end_byte, loop.body)
        for one in head.named_children:
            if one.type != "loop_control_expression":
                self._count_expression(one, loop.body.work)
        self._walk_statements(body, loop.body, loop)

    def _count_assignment(self, node: Node, work: Work) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        self._count_expression(right, work)
        if left is None:
            return
        if left.type == "call_expression":
            self._add_access(left, work, write=True)
        elif node_text(left).lower() in self._arrays:
            place = f"{self._source.file}:{node.start_point[0] + 1}"
            self._source.problems.append(f"{place}: works on a whole array, which is counted as one operation")

    def _count_expression(self, node: Node | None, work: Work) -> None:
        if node is None:
            return
        if node.type == "call_expression":
            self._add_access(node, work, write=False)
            return
        for child in node.named_children:
            self._count_expression(child, work)
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
        return node is not None and node.type == "math_expression" and any(child.type == "*" for child in node.children)

    def _is_floating(self, node: Node) -> bool:
        if node.type == "identifier":
            return node_text(node).lower() in self._floating
        if node.type == "number_literal":
            return bool(_LITERAL.fullmatch(node_text(node)))
        if node.type == "call_expression":
            name = node_text(node.named_children[0]).lower()
            return name in self._floating or (
                name in _INTRINSIC and any(map(self._is_floating, node.named_children[1:]))
            )
        return any(self._is_floating(child) for child in node.named_children)

    def _add_access(self, node: Node, work: Work, write: bool) -> None:
        """Add an array element, or a call of a function: Fortran writes both alike."""
        name = node_text(node.named_children[0]).lower()
        given = node.named_children[1].named_children if len(node.named_children) > 1 else []
        if not write:
            for each in given:
                self._count_expression(each, work)
        if name in self._arrays or write:
            subscripts = tuple(node_text(each).lower() for each in given)
            reference = Reference(name, subscripts, self._arrays.get(name, 8), write, name in self._floating)
            work.references.append(reference)
        else:
            work.calls.append((name, tuple(node_text(each).lower() for each in given)))
            if name == "sqrt":
                work.add_operations("fp_div")


def _extents(written: str) -> str:
    """Return the extents of an array as factors: of ``0:n`` it is n + 1."""
    parts = re.split(r",(?![^()]*\))", written)
    return ", ".join(
        f"({high}) - ({low}) + 1" if high else low for low, _, high in (each.strip().partition(":") for each in parts)
    )


def _may_leave(node: Node) -> bool:
    """Return whether a statement holds one that leaves the block it stands in, or the loop around that."""
    return any(
        one.type == "keyword_statement" and bool(_LEAVING.match(node_text(one))) for one in iterate_descendants(node)
    )
