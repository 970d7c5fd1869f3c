"""What the integers of a program of C or C++ are set to: assignments, initial values, constants, macros."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from advisor_processor.source.declared_types import DeclaredTypes, declared_name, iterate_descendants, node_text
from advisor_processor.source.records import Assignment, Loop, Source

if TYPE_CHECKING:
    from tree_sitter import Node

_LONGEST_MACRO: Final = 300
_CONTAINERS: Final = frozenset({
    "vector", "valarray", "array", "deque", "list", "map", "set", "unordered_map", "unordered_set", "unique_ptr",
    "shared_ptr", "make_unique", "make_shared",
})  # fmt: skip
_INTEGER: Final = re.compile(r"(unsigned |signed |long |short )*(int|long|short)|size_t|u?int(32|64)_t")
#: Elements of arrays that are followed like variables, at most.
_FEW_ELEMENTS: Final = 8


def collect_values(source: Source, root: Node) -> None:
    """Note macros, enumerations and initial values of the whole file."""
    for node in iterate_descendants(root):
        if node.type == "preproc_def" and (value := node_text(node.child_by_field_name("value"))):
            _add_macro(source, node, None, value)
        elif node.type == "preproc_function_def":
            names = node.child_by_field_name("parameters")
            given = tuple(node_text(child) for child in names.named_children) if names is not None else ()
            _add_macro(source, node, given, node_text(node.child_by_field_name("value")))
        elif node.type == "enumerator_list":
            _add_enumerators(source, node)
        elif node.type == "template_type" and _hides_data(node):
            source.values[node_text(node)] = "gapwatch_array()"
        elif node.type == "declaration" and _is_outside(node):
            for declarator in node.children_by_field_name("declarator"):
                inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else None
                one = inner or declarator
                if one.type == "array_declarator" and not _is_pointer(one):
                    source.values[declared_name(one)] = _array_value(one) or "gapwatch_array()"
        elif node.type == "init_declarator" and _is_outside(node) and not _names_array(node):
            named = node.child_by_field_name("declarator")
            value = node_text(node.child_by_field_name("value"))
            source.values[declared_name(named) if named else ""] = value


def _add_macro(source: Source, node: Node, names: tuple[str, ...] | None, value: str) -> None:
    value = re.sub(r"/\*.*?\*/|//.*", "", value).strip()
    if value and len(value) <= _LONGEST_MACRO:
        source.macros[node_text(node.child_by_field_name("name"))] = (names, value)


def _add_enumerators(source: Source, node: Node) -> None:
    before = "-1"
    for each in node.named_children:
        if each.type == "enumerator":
            value = node_text(each.child_by_field_name("value")) or f"({before}) + 1"
            source.values[node_text(each.child_by_field_name("name"))] = before = value


def _hides_data(node: Node) -> bool:
    """Return whether a container stands where its size is not followed: in a class, an alias, another container."""
    if node_text(node.child_by_field_name("name")) not in _CONTAINERS:
        return False
    above = node.parent
    while above is not None and above.type == "qualified_identifier":
        above = above.parent
    return above is None or above.type not in ("declaration", "parameter_declaration", "for_range_loop")


def _names_array(node: Node) -> bool:
    declarator = node.child_by_field_name("declarator")
    return declarator is not None and declarator.type == "array_declarator"


def _is_outside(node: Node) -> bool:
    """Return whether a declaration stands outside all functions."""
    above = node.parent
    while above is not None and above.type not in ("function_definition", "lambda_expression"):
        above = above.parent
    return above is None


def find_declared(body: Node) -> frozenset[str]:
    """Return the names that a function declares in its body, those of static variables left out."""
    found = set()
    for node in iterate_descendants(body):
        if node.type == "declaration":
            found |= {declared_name(each) for each in node.children_by_field_name("declarator")}
    return frozenset(found)


def find_assignments(node: Node) -> Iterator[Assignment]:
    """Yield what a statement assigns to names, members and what pointers point at, in the order of the source."""
    for one in (node, *iterate_descendants(node)):
        if one.type == "init_declarator":
            declarator = one.child_by_field_name("declarator")
            value = node_text(one.child_by_field_name("value"))
            if declarator is not None and declarator.type == "array_declarator" and not _is_pointer(declarator):
                yield Assignment(declared_name(declarator), _array_value(declarator))
                yield from _list_elements(declarator, one.child_by_field_name("value"))
            elif declarator is not None:
                yield Assignment(declared_name(declarator), _vector_value(one, value))
        elif (
            one.type == "array_declarator"
            and one.parent is not None
            and one.parent.type == "declaration"
            and not _is_pointer(one)
        ):
            yield Assignment(declared_name(one), _array_value(one))
        elif one.type == "assignment_expression":
            operator = node_text(one.child_by_field_name("operator")).removesuffix("=")
            left, right = (node_text(one.child_by_field_name(key)) for key in ("left", "right"))
            if _is_tracked(left):
                yield Assignment(left.replace("->", "."), f"({left}) {operator} ({right})" if operator else right)
        elif one.type == "update_expression":
            name = node_text(one.child_by_field_name("argument"))
            if _is_tracked(name):
                yield Assignment(
                    name.replace("->", "."), f"{name} {node_text(one.child_by_field_name('operator'))[0]} 1"
                )


def _is_pointer(declarator: Node) -> bool:
    """Return whether what looks like an array is a pointer to one: ``(*a)[m]``."""
    return any(one.type == "pointer_declarator" for one in iterate_descendants(declarator))


def _list_elements(declarator: Node, value: Node | None) -> Iterator[Assignment]:
    """Yield what the elements of a declared array begin with; those without a value are zero."""
    if value is None or value.type != "initializer_list":
        return
    written = [node_text(each) for each in value.named_children]
    size = node_text(declarator.child_by_field_name("size"))
    written += ["0"] * (min(int(size), _FEW_ELEMENTS) - len(written) if size.isdigit() else 0)
    for at, each in enumerate(written[:_FEW_ELEMENTS]):
        yield Assignment(f"{declared_name(declarator)}[{at}]", each)


def _is_tracked(written: str) -> bool:
    """Return whether what is assigned is a name, a member, or an element with a number for a subscript."""
    return "[" not in written or re.fullmatch(r"\w+\[\d+\]", written) is not None


def _array_value(node: Node) -> str:
    """Return the memory of a declared array as an expression: ``array(name, n, m)``."""
    sizes: list[str] = []
    name = declared_name(node)
    one: Node | None = node
    while one is not None and one.type == "array_declarator":
        sizes.insert(0, node_text(one.child_by_field_name("size")))
        one = one.child_by_field_name("declarator")
    return f"gapwatch_array({name}, {', '.join(sizes)})" if all(sizes) else ""


def _vector_value(node: Node, value: str) -> str:
    """Return the value of a declaration; of ``std::vector<double> a(n)`` its memory."""
    declaration = node.parent
    written = node_text(declaration.child_by_field_name("type")) if declaration is not None else ""
    found = re.fullmatch(r"(?:std::)?vector<(.+)>", written)
    if found is None:
        return value
    first = value.strip("(){}").split(",")[0]
    return f"gapwatch_vector(sizeof({found[1]}), {first})" if first else ""


def find_results(statement: Node, types: DeclaredTypes) -> Iterator[str]:
    """Yield the integers whose address a call is given, and the elements that ``MPI_Dims_create`` sets."""
    call = statement.named_children[0] if statement.named_children else None
    if call is not None and call.type == "assignment_expression":
        call = call.child_by_field_name("right")
    if call is None or call.type != "call_expression":
        return
    given = call.child_by_field_name("arguments")
    written = [node_text(each) for each in given.named_children] if given is not None else []
    if node_text(call.child_by_field_name("function")) == "MPI_Dims_create" and len(written) > 2:
        several = int(written[1]) if written[1].isdigit() else 0
        yield from (f"{written[2]}[{at}]" for at in range(min(several, _FEW_ELEMENTS)))
    for each in written:
        name = each[1:] if each.startswith("&") else ""
        if _INTEGER.fullmatch(types.names.get(name, "")):
            yield name


def parse_while(loop: Loop, node: Node) -> None:
    """Note variable, end and step of a ``while`` whose body moves the variable of its condition in one place."""
    condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
    while condition is not None and condition.type in ("parenthesized_expression", "condition_clause"):
        condition = condition.child_by_field_name("value") or condition.named_children[0]
    if condition is None or condition.type != "binary_expression" or body is None or body.type != "compound_statement":
        return
    left, operator, right = (node_text(condition.child_by_field_name(key)) for key in ("left", "operator", "right"))
    steps = [assignment for assignment in find_assignments(body) if assignment.name == left]
    top = [
        assignment
        for child in body.named_children
        if child.type == "expression_statement"
        for assignment in find_assignments(child)
    ]
    if len(steps) != 1 or steps[0] not in top or operator not in ("<", "<=", ">", ">=", "!="):
        return
    step = parse_move(steps[0].value, left)
    if step:
        loop.variable, loop.initial, loop.comparison, loop.final, loop.step = left, left, operator, right, step


def parse_move(value: str, variable: str) -> str:
    """Return the step of ``variable = value``: an expression, ``*2`` or ``/2``; empty for what is none."""
    name = rf"\(?{re.escape(variable)}\)?"
    if found := re.fullmatch(rf"{name} ?(<<|>>) ?\(?(\d)\)?", value):
        return f"{'*' if found[1] == '<<' else '/'}{2 ** int(found[2])}"
    if found := re.fullmatch(rf"{name} ?([*/]) ?\(?(\d+)\)?", value):
        return found[1] + found[2]
    if found := re.fullmatch(rf"{name} ?([+-]) ?(.+)", value):
        return found[2] if found[1] == "+" else f"-({found[2]})"
    return ""
