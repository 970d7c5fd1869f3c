"""Notebooks as tests: their cells run one after the other in one namespace, as Jupyter would run them.

A cell whose metadata say ``{"gapwatch": {"needs": "pandas"}}`` is left out where that package is not installed.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunCell:
    """What a cell printed, and the value of its last line, None where it has none."""

    printed: str
    value: object

    @property
    def outputs(self) -> list[Document]:
        """The outputs as a notebook holds them, of values the text only."""
        outputs: list[Document] = []
        if self.printed:
            outputs.append({"name": "stdout", "output_type": "stream", "text": self.printed.splitlines(keepends=True)})
        if self.value is not None:
            text = repr(self.value).splitlines(keepends=True)
            outputs.append({"data": {"text/plain": text}, "metadata": {}, "output_type": "display_data"})
        return outputs


def read_notebook(path: Path) -> Document:
    """Return the document of a notebook."""
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    return document


def run_notebook(notebook: Document) -> list[tuple[Document, RunCell]]:
    """Run the code cells that can run here and return each with what it gave; an error of a cell is raised."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    return [
        (cell, run_cell("".join(cell["source"]), namespace))
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and _can_run(cell)
    ]


def _can_run(cell: Document) -> bool:
    needs = cell["metadata"].get("gapwatch", {}).get("needs")
    return needs is None or find_spec(needs) is not None


def run_cell(source: str, namespace: dict[str, object]) -> RunCell:
    """Run one cell; the value is that of a last line that is an expression, without a semicolon behind it."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
    return RunCell(printed.getvalue(), None if source.rstrip().endswith(";") else value)


def write_notebook(notebook: Document) -> str:
    """Return the text of a notebook as Jupyter writes it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
