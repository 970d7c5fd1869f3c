"""A file of C or C++ -> its loops and blocks with their operations, and where to insert counters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from advisor_processor.source.c_values import (
    collect_values,
    find_assignments,
    find_declared,
    find_results,
    parse_move,
    parse_while,
)
from advisor_processor.source.case_labels import list_case_conditions
from advisor_processor.source.collapsed_loops import expand_collapsed_loops
from advisor_processor.source.declared_types import collect_types, declared_name, iterate_descendants, node_text
from advisor_processor.source.macro_calls import MacroCalls
from advisor_processor.source.operations import OperationCounter
from advisor_processor.source.records import (
    Block,
    Branch,
    CallSite,
    Insertion,
    Leave,
    Loop,
    LoopEntry,
    Rest,
    Source,
    Work,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

    from advisor_processor.source.case_labels import Conditions
    from advisor_processor.source.declared_types import DeclaredTypes

_LOOPS: Final = ("for_statement", "while_statement", "do_statement", "for_range_loop")
_KINDS: Final[dict[str, Literal["break", "continue", "return"]]] = {
    "break_statement": "break", "continue_statement": "continue", "return_statement": "return",
    "goto_statement": "return", "throw_statement": "return",
}  # fmt: skip
_LEAVING: Final = ("return_statement", "goto_statement", "break_statement", "continue_statement", "throw_statement")
#: Statements that a macro may hide behind; nothing is inserted before them.
_UNTOUCHED: Final = ("preproc_call", "preproc_def", "preproc_function_def", "comment", "preproc_include")


def analyse_c_source(
    code: bytes, file: str, root: Node, language: str, included: Sequence[DeclaredTypes] = ()
) -> Source:  # fmt: skip
    """Return what a file holds; functions and loops in the order of the source. ``included`` are types of headers."""
    source = Source(file, language)
    types = collect_types(root)
    for each in included:
        types.add_types(each)
    types.calls = MacroCalls(types.macros)
    collect_values(source, root)
    source.insertions += expand_collapsed_loops(root)
    for node in iterate_descendants(root):
        if node.type == "function_definition":
            _FunctionWalker(source, node, types).walk_function()
    if root.has_error:
        place = next((one for one in iterate_descendants(root) if one.type == "ERROR" or one.is_missing), root)
        source.problems.append(f"{file}:{place.start_point[0] + 1}: is not understood, and not counted")
    return source


class _FunctionWalker:
    """Walks one function, and makes a block of whatever runs as a whole."""

    def __init__(self, source: Source, node: Node, types: DeclaredTypes) -> None:
        self._source = source
        self._node = node
        self._types = types.types_inside(node)
        declarator = node.child_by_field_name("declarator")
        self._name = declared_name(declarator) if declarator is not None else "?"
        self._conditional: list[Block] = []

    def walk_function(self) -> None:
        """Add the function's blocks and loops to the source."""
        body = self._node.child_by_field_name("body")
        if body is None or body.type != "compound_statement":
            return
        names = [
            declared_name(one.child_by_field_name("declarator") or one)
            for one in iterate_descendants(self._node.child_by_field_name("declarator") or self._node)
            if one.type == "parameter_declaration"
        ]
        self._source.parameters[self._name] = tuple(names)
        self._source.declared[self._name] = frozenset(names) | find_declared(body)
        for name in self._types.names:
            self._source.sizes[self._name, name] = self._types.object_size(name)
        first = self._add_block(body, None, None)
        self._source.entries[self._name] = first
        self._walk_compound(body, first, None, enter=True)
        for block in self._conditional:
            block.statements += [CallSite(*call) for call in block.work.calls]

    def _add_block(self, node: Node, loop: Loop | None, parent: Block | None, branch: bool = False) -> Block:
        number = len(self._source.blocks)
        block = Block(number, self._name, node.start_point[0] + 1, loop, parent, branch=branch)
        self._source.blocks.append(block)
        return block

    def _insert_text(self, offset: int, words: str, order: int = 0) -> None:
        self._source.insertions.append(Insertion(offset, words, order))

    def _walk_compound(self, node: Node, block: Block, loop: Loop | None, enter: bool = False) -> None:
        """Walk the statements of a block in braces; behind one that may leave it another block begins."""
        if enter:
            self._insert_text(node.start_byte + 1, f" GAPWATCH_COUNT_@FILE@({block.number});")
        before = node.start_byte + 1
        for child in node.named_children:
            if child.type in _UNTOUCHED:
                continue
            self._walk_statement(child, block, loop, before)
            before = child.end_byte
            if child.type == "expression_statement":
                self._note_results(child)
            if child.type not in _LEAVING and _may_leave(child):
                rest = self._add_block(child, loop, block)
                block.statements.append(Rest(rest))
                block = rest
                self._insert_text(before, f" GAPWATCH_COUNT_@FILE@({block.number});", 1)

    def _note_results(self, statement: Node) -> None:
        """Have the integers noted that a call of a statement sets through pointers."""
        for name in find_results(statement, self._types):
            place = len(self._source.results)
            self._source.results.append((self._name, name))
            self._insert_text(statement.end_byte, f" GAPWATCH_VALUE_@FILE@(@LOOPS@ + {place}, {name});", -1)

    def _walk_statement(self, node: Node, block: Block, loop: Loop | None, before: int) -> None:
        if node.type == "compound_statement":
            self._walk_compound(node, block, loop)
        elif node.type in _LOOPS:
            self._walk_loop(node, block, before)
        elif node.type == "if_statement":
            self._walk_if(node, block, loop)
        elif node.type in ("switch_statement", "case_statement", "labeled_statement", "try_statement", "catch_clause"):
            self._walk_cases(node, block, loop)
        elif node.type.startswith("preproc_"):
            self._walk_alternatives(node, block, loop)
        else:
            self._count_statement(node, block, loop)

    def _count_statement(self, node: Node | None, block: Block, loop: Loop | None) -> None:
        """Count a statement or an expression, and note what it calls, assigns and leaves."""
        if node is None:
            return
        before = len(block.work.calls)
        self._make_counter(block, loop).count_node(node)
        line = node.start_point[0] + 1
        block.statements += [CallSite(*call, line=line) for call in block.work.calls[before:]]
        block.statements += find_assignments(node)
        if node.type in _KINDS:
            value = node_text(node.named_children[0]) if node.named_children else ""
            block.statements.append(Leave(_KINDS[node.type], value))

    def _walk_alternatives(self, node: Node, block: Block, loop: Loop | None) -> None:
        """Walk what the preprocessor may leave out: each statement counts for itself."""
        for child in node.named_children:
            if child.type.startswith("preproc_") and child.type not in _UNTOUCHED:
                self._walk_alternatives(child, block, loop)
            else:
                self._walk_possible(child, block, loop)

    def _walk_possible(self, node: Node, block: Block, loop: Loop | None, condition: str | None = None) -> None:
        """Walk a statement that may or may not run; a declaration counts in any case."""
        if node.type.endswith("statement") and node.type not in _LEAVING:
            inner = self._add_block(node, loop, block, branch=True)
            block.statements.append(Branch(((condition, inner),)))
            self._walk_body(node, inner, loop)
        elif node.type == "declaration":
            self._count_statement(node, block, loop)

    def _make_counter(self, block: Block, loop: Loop | None) -> OperationCounter:
        def add_branch(node: Node, condition: str) -> Work:
            inner = self._add_block(node, loop, block, branch=True)
            block.statements.append(Branch(((condition, inner),)))
            self._conditional.append(inner)
            self._insert_text(node.start_byte, f"(GAPWATCH_COUNT_@FILE@({inner.number}), ", 2)
            self._insert_text(node.end_byte, ")", -2)
            return inner.work

        return OperationCounter(self._types, block.work, add_branch)

    def _walk_body(self, node: Node | None, block: Block, loop: Loop | None) -> None:
        """Walk a statement that has its own counter, put into braces where it has none."""
        if node is None:
            return
        if node.type == "compound_statement":
            self._walk_compound(node, block, loop, enter=True)
            return
        self._insert_text(node.start_byte, f"{{ GAPWATCH_COUNT_@FILE@({block.number}); ", 0)
        self._walk_statement(node, block, loop, node.start_byte)
        self._insert_text(node.end_byte, " }", -1)

    def _walk_if(self, node: Node, block: Block, loop: Loop | None) -> None:
        condition = node.child_by_field_name("condition")
        self._count_statement(condition, block, loop)
        clauses = []
        then = node.child_by_field_name("consequence")
        if then is not None:
            clauses.append((node_text(condition), self._add_block(then, loop, block, branch=True)))
            self._walk_body(then, clauses[-1][1], loop)
        other = node.child_by_field_name("alternative")
        if other is not None and other.type == "else_clause":
            other = other.named_children[-1] if other.named_children else None
        if other is not None:
            clauses.append(("1", self._add_block(other, loop, block, branch=True)))
            self._walk_body(other, clauses[-1][1], loop)
        block.statements.append(Branch(tuple(clauses)))

    def _walk_cases(self, node: Node, block: Block, loop: Loop | None, conditions: Conditions | None = None) -> None:
        """Walk the statements behind labels, each one separately: it runs where a label before it does."""
        subject = node.child_by_field_name("condition")
        self._make_counter(block, loop).count_node(subject)
        if node.type == "switch_statement":
            conditions = list_case_conditions(node)
        for child in node.named_children:
            if child == subject or child == node.child_by_field_name("value"):
                continue
            if child.type in ("compound_statement", "case_statement") and node.type != "case_statement":
                self._walk_cases(child, block, loop, conditions)
            else:
                condition = conditions.get(node.start_byte) if conditions and node.type == "case_statement" else None
                self._walk_possible(child, block, loop, condition)

    def _walk_loop(self, node: Node, block: Block, before: int) -> None:
        loop = self._build_loop(node, block)
        self._source.loops.append(loop)
        for outer in self._enclosing_loops(block):
            outer.inner = False
        loop.inner = True
        first = sum(len(other.symbols) for other in self._source.loops[:-1])
        noted = "".join(f" GAPWATCH_VALUE_@FILE@({first + place}, {name});" for place, name in enumerate(loop.symbols))
        if noted:
            self._insert_text(before, noted, 3)
        self._count_statement(node.child_by_field_name("initializer"), block, block.loop)
        block.statements.append(LoopEntry(loop))
        body = node.child_by_field_name("body")
        if body is None:
            return
        loop.body = self._add_block(body, loop, None)
        control = self._make_counter(loop.body, loop)
        control.count_node(node.child_by_field_name("condition"))
        self._move_to_entry(loop.body, block)
        control.count_node(node.child_by_field_name("update"))
        loop.body.statements += [CallSite(*call) for call in loop.body.work.calls]
        self._walk_body(body, loop.body, loop)

    def _move_to_entry(self, body: Block, entry: Block) -> None:
        """Have the parts of a loop's condition count for where it is reached: they run once more than its body."""
        for statement in body.statements:
            if isinstance(statement, Branch):
                for _, inner in statement.clauses:
                    inner.parent, inner.loop = entry, entry.loop
                entry.statements.insert(-1, Branch(tuple((None, inner) for _, inner in statement.clauses)))
        body.statements.clear()

    def _enclosing_loops(self, block: Block | None) -> list[Loop]:
        found: list[Loop] = []
        loop = block.loop if block else None
        while loop is not None:
            found.append(loop)
            loop = loop.block.loop
        return found

    def _build_loop(self, node: Node, block: Block) -> Loop:
        kind = node.type.removesuffix("_statement")
        number, line = len(self._source.loops), node.start_point[0] + 1
        loop = Loop(number, self._name, line, kind, "", "", "", "", "", block)
        loop.changed = frozenset(_find_assigned(node)) - _find_begun(node)
        if kind == "while":
            parse_while(loop, node)
        if kind == "for":
            _parse_control(loop, node)
            body = node.child_by_field_name("body")
            if body is not None and loop.variable in _find_assigned(body):
                loop.variable = ""
        wanted = _find_names(loop.initial) | _find_names(loop.final) | _find_names(loop.step)
        names = sorted(wanted - {loop.variable} - loop.changed - _find_begun(node))
        loop.symbols = tuple(name for name in names if name not in self._types.functions)
        return loop


def _parse_control(loop: Loop, node: Node) -> None:
    """Note variable, initial value, end and step of a ``for`` loop, as far as they have the usual form."""
    initial, condition, update = (node.child_by_field_name(key) for key in ("initializer", "condition", "update"))
    tested = _find_names(node_text(condition))
    begins = _list_initial(initial)
    loop.variable, loop.initial = next(
        (each for each in begins if each[0] in tested), begins[0] if begins else ("", "")
    )
    if condition is not None and condition.type == "binary_expression":
        left, right = (node_text(condition.child_by_field_name(key)) for key in ("left", "right"))
        loop.comparison = node_text(condition.child_by_field_name("operator"))
        loop.final = right
        if right == loop.variable:
            loop.comparison, loop.final = loop.comparison.translate(str.maketrans("<>", "><")), left
        elif left != loop.variable:
            loop.variable = ""
    steps = (_parse_step(one, loop.variable) for one in _split_commas(update))
    loop.step = next((step for step in steps if step), "")
    if not loop.step or loop.comparison not in ("<", "<=", ">", ">=", "!="):
        loop.variable = ""


def _list_initial(initial: Node | None) -> list[tuple[str, str]]:
    """Return the variables that the beginning of a ``for`` loop sets, with their values."""
    found = []
    for one in (initial, *iterate_descendants(initial)) if initial is not None else ():
        if one.type == "init_declarator":
            name = declared_name(one.child_by_field_name("declarator") or one)
            found.append((name, node_text(one.child_by_field_name("value"))))
        elif one.type == "assignment_expression":
            found.append((node_text(one.child_by_field_name("left")), node_text(one.child_by_field_name("right"))))
    return found


def _split_commas(node: Node | None) -> list[Node]:
    if node is None or node.type != "comma_expression":
        return [] if node is None else [node]
    return [one for child in node.named_children for one in _split_commas(child)]


def _parse_step(update: Node, variable: str) -> str:
    """Return by how much a loop moves its variable, empty where it does not do so in the usual way."""
    written = node_text(update).replace(" ", "")
    if update.type == "update_expression" and written.strip("+-") == variable:
        return "1" if "++" in written else "-1"
    if update.type != "assignment_expression" or node_text(update.child_by_field_name("left")) != variable:
        return ""
    right, operator = (node_text(update.child_by_field_name(key)) for key in ("right", "operator"))
    return parse_move(right if operator == "=" else f"{variable} {operator[:-1]} {right}", variable)


def _find_names(expression: str) -> set[str]:
    """Return the names in an expression of integers, none where it holds calls or subscripts."""
    if re.search(r"\w\s*\(|\[|\"|'|\?", re.sub(r"\((int|long|size_t|unsigned)\)", "", expression)):
        return set()
    words = re.findall(r"[A-Za-z_]\w*(?:(?:->|\.)[A-Za-z_]\w*)*", expression)
    return {word for word in words if word not in ("int", "long", "size_t", "unsigned", "sizeof")}


def _find_assigned(node: Node) -> set[str]:
    """Return the names that a loop, its own control included, assigns or declares."""
    found: set[str] = set()
    for one in (node, *iterate_descendants(node)):
        if one.type in ("assignment_expression", "update_expression"):
            found.add(node_text(one.child_by_field_name("left") or one.child_by_field_name("argument")))
        elif one.type == "init_declarator":
            found.add(declared_name(one.child_by_field_name("declarator") or one))
    return found


def _find_begun(node: Node) -> set[str]:
    """Return the names that nothing but the beginning of a ``for`` loop assigns."""
    initial = node.child_by_field_name("initializer") if node.type == "for_statement" else None
    if initial is None:
        return set()
    rest = (node.child_by_field_name(key) for key in ("condition", "update", "body"))
    later: set[str] = set().union(*(_find_assigned(one) for one in rest if one is not None))
    return {name for name, _ in _list_initial(initial)} - later


def _may_leave(node: Node, loops: int = 0) -> bool:
    """Return whether a statement may leave the block it stands in."""
    if node.type in ("return_statement", "goto_statement", "throw_statement"):
        return True
    if node.type in ("break_statement", "continue_statement"):
        return loops == 0
    deeper = loops + (node.type in _LOOPS or node.type == "switch_statement")
    return any(_may_leave(child, deeper) for child in node.named_children)
