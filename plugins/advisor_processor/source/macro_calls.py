"""Syntax trees by the grammars of tree-sitter, and calls of macros as the expressions that they stand for.

Arrays are often accessed through macros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from advisor.model.errors import UsageError
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from tree_sitter import Node

#: Expressions in which macros stand for others, at most so long; beyond, a call stays one of a function.
_LONGEST: Final = 4000


class MacroCalls:
    """The macros with parameters of a file and its headers, by name: parameters and what they stand for."""

    def __init__(self, macros: Mapping[str, tuple[tuple[str, ...], str]]) -> None:
        named = {name: set(re.findall(r"[A-Za-z_]\w*", body)) & set(macros) for name, (_, body) in macros.items()}
        self._macros = {name: macro for name, macro in macros.items() if not _comes_back(name, named)}
        self._known: dict[str, Node | None] = {}

    def expand_call(self, node: Node) -> Node | None:
        """Return the expression that a call of a macro stands for, in a tree of its own; None for what is none."""
        function, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        name = (function.text or b"").decode("utf-8", "replace") if function is not None else ""
        if name not in self._macros or given is None:
            return None
        arguments = [" ".join((each.text or b"").decode("utf-8", "replace").split()) for each in given.named_children]
        text = self._substitute(name, arguments)
        if text is None:
            return None
        if text not in self._known:
            self._known[text] = _parse_expression(text)
        return self._known[text]

    def _substitute(self, name: str, arguments: Sequence[str]) -> str | None:
        names, body = self._macros[name]
        if len(names) != len(arguments) or "#" in body:
            return None
        table = dict(zip(names, arguments, strict=True))
        text = re.sub(r"[A-Za-z_]\w*", lambda found: f"({table[found[0]]})" if found[0] in table else found[0], body)
        return text if len(text) <= _LONGEST else None


def _comes_back(name: str, named: Mapping[str, set[str]]) -> bool:
    """Return whether a macro stands for itself in the end: the preprocessor does not follow such a name again."""
    seen: set[str] = set()
    waiting = list(named[name])
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += named[one]
    return name in seen


def _parse_expression(text: str) -> Node | None:
    root = parse_source(f"void f() {{ {text}; }}".encode(), "c")
    body = root.named_children[0].child_by_field_name("body") if root.named_children and not root.has_error else None
    if body is None or len(body.named_children) != 1 or body.named_children[0].type != "expression_statement":
        return None
    inside = body.named_children[0].named_children
    return inside[0] if len(inside) == 1 else None


def parse_source(code: bytes, language: str) -> Node:
    """Return the syntax tree of a file; raises ``UsageError`` where the grammars are not installed."""
    from importlib import import_module

    try:
        tree_sitter = import_module("tree_sitter")
        grammar = import_module(f"tree_sitter_{language}")
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: {install_line('processor')}") from error
    root: Node = tree_sitter.Parser(tree_sitter.Language(grammar.language())).parse(code).root_node
    return root
