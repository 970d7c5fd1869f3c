"""Syntax trees of source files, by the grammars of tree-sitter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.errors import UsageError
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from tree_sitter import Node


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
