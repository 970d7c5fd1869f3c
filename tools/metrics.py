"""Measures the shape of the code: names, sizes of functions and files, packages with logic in their ``__init__``.

    python tools/metrics.py [FOLDER ...]        # advisor and plugins unless told otherwise

What no file may do (import cycles, imports from a room above) is a test: ``tests/project/test_layers.py``.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of code: its path, its lines, and its functions and methods but for ``__magic__`` ones."""

    path: Path
    lines: int
    functions: tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]
    tree: ast.Module


def read_sources(folders: Iterable[Path]) -> Iterator[SourceFile]:
    """Yield every Python file below the folders."""
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        nodes = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        functions = tuple(node for node in nodes if not node.name.startswith("__"))
        yield SourceFile(path, text.count("\n"), functions, tree)


def is_one_word(name: str) -> bool:
    """Whether a name, its leading underscores aside, is a single word."""
    return "_" not in name.strip("_")


def has_logic(tree: ast.Module) -> bool:
    """Whether a module does more than import, export names and document itself."""
    for node in tree.body:
        documents = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        checks_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        exports = isinstance(node, ast.Assign) and all(
            isinstance(target, ast.Name) and target.id.startswith("__") for target in node.targets
        )
        if not (documents or imports or checks_types or exports):
            return True
    return False


def percentile(values: Sequence[int], share: float) -> int:
    """Return the value below which ``share`` of the values lie."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def print_metrics(sources: Sequence[SourceFile]) -> None:
    """Print one line for each figure."""
    functions = [function for source in sources for function in source.functions]
    lengths = [(function.end_lineno or function.lineno) - function.lineno + 1 for function in functions]
    sizes = [source.lines for source in sources]
    short = sum(is_one_word(function.name) for function in functions)
    packages = [source for source in sources if source.path.name == "__init__.py"]
    thick = [source.path for source in packages if has_logic(source.tree)]
    print(f"files {len(sources)}, lines {sum(sizes)}, functions {len(functions)}")
    print(f"function names of one word {short / len(functions):.1%}")
    print(f"function lines: median {median(lengths):.0f}, p90 {percentile(lengths, 0.9)}, most {max(lengths)}")
    print(f"file lines: median {median(sizes):.0f}, p90 {percentile(sizes, 0.9)}, most {max(sizes)}")
    print(f"__init__.py with logic {len(thick)} of {len(packages)}")
    for path in thick:
        print(f"  {path.relative_to(ROOT)}")


if __name__ == "__main__":
    print_metrics(list(read_sources([ROOT / name for name in sys.argv[1:] or ("advisor", "plugins")])))
