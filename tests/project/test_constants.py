"""Constants stand at the top of their file, where they are looked for, unless they are made of what it defines."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
CONSTANT = ast.Assign | ast.AnnAssign


def find_late_constants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each constant that could stand before the first function.

    What a constant is made of has to be defined before it: such functions and classes belong to the constants.
    """
    constants = [node for node in tree.body if isinstance(node, CONSTANT)]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    needed = find_needed(tree, constants)
    first = min((node.lineno for node in functions if node.name not in needed), default=None)
    late: set[str] = set()
    for node in tree.body if first is not None else ():
        if node.lineno < (first or 0):
            continue
        if isinstance(node, DEFINITION):
            late.add(node.name)
        elif isinstance(node, CONSTANT):
            given = {name.id for name in names_in(node) if isinstance(name.ctx, ast.Store)}
            if names_used(node) & late:
                late |= given
            elif any(name.isupper() for name in given):
                yield node.lineno, ", ".join(sorted(given))


def find_needed(tree: ast.Module, constants: list[ast.stmt]) -> set[str]:
    """The names that constants use, and those that what they use uses."""
    defined = {node.name: node for node in tree.body if isinstance(node, DEFINITION)}
    needed: set[str] = set()
    rest = [name for node in constants for name in names_used(node)]
    while rest:
        if (name := rest.pop()) not in needed:
            needed.add(name)
            rest += names_used(defined[name]) if name in defined else ()
    return needed


def names_in(node: ast.stmt) -> list[ast.Name]:
    return [name for name in ast.walk(node) if isinstance(name, ast.Name)]


def names_used(node: ast.stmt) -> set[str]:
    """The names that a statement reads, those of types aside."""
    value = node.value if isinstance(node, ast.AnnAssign) else node
    return {
        name.id for name in ast.walk(value or node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)
    }


def test_constants_stand_at_the_top() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for room in ("advisor", "gapwatch", "plugins")
        for path in sorted((ROOT / room).rglob("*.py"))
        for line, name in find_late_constants(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "move them above the first function"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A = 1\ndef f(): ...\n", []),
        ("def f(): ...\nA = 1\n", ["A"]),
        ("def f(): ...\nA: int = 1\n", ["A"]),
        ("def make(): ...\nA = make()\nB = 2\ndef f(): ...\n", []),
        ("def g(): ...\ndef make(): g()\nA = make()\n", []),
        ("def f(): ...\nclass C: ...\nA = C()\nB = A\n", []),
        ("def f(): ...\n_kept = []\n", []),
        ("def f():\n    A = 1\n", []),
    ],
)
def test_late_constants_are_seen(text: str, found: list[str]) -> None:
    assert [name for _, name in find_late_constants(ast.parse(text))] == found
