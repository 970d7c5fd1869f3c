"""No statement is only a text: half of a message whose parentheses are missing, which ruff does not report."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("advisor", "benchmarks", "docs", "examples", "gapwatch", "plugins", "studies", "tests", "tools")


def find_lost_text(tree: ast.Module) -> Iterator[int]:
    """Yield the line of each statement that is a text, or a text with values in it, but no docstring."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(node.body[0]) for node in ast.walk(tree) if isinstance(node, owners) and node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and id(node) not in docstrings:
            constant = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            if constant or isinstance(node.value, ast.JoinedStr):
                yield node.lineno


def test_no_text_is_lost() -> None:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(paths) > 1000
    lost = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in paths
        for line in find_lost_text(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not lost


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('a = f"{b} and "\nf"{c}"\n', [2]),
        ('def f():\n    """Return."""\n    x = "a "\n    "b"\n', [4]),
        ('"""Module."""\nx = ("a " "b")\n', []),
    ],
)
def test_lost_text_is_seen(text: str, lines: list[int]) -> None:
    assert list(find_lost_text(ast.parse(text))) == lines
