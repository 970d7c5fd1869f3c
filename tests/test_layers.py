"""A module imports only from its own row or a row below it in the stack; what is heavy stays in its place."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]

#: The rows, lowest first; a name stands for a module or for everything in a package.
ROWS = (
    ("errors", "units", "reports", "model", "whole_files", "kept", "distributions", "extras"),
    ("grouping", "documents", "strict_json", "bundled", "machines", "machine_rates", "sidecar", "contract", "wire",
     "soundness", "builds", "compiling", "writing"),
    ("traces", "callpaths", "measures", "loads", "bounds", "machine_bounds", "gaps", "efficiencies", "quality",
     "merging", "comparison", "facts", "rules", "ranking", "pictures"),
    ("hookspecs", "commands", "host", "sandbox", "command_list", "readers", "sampling"),
    ("events", "past", "overview", "pipeline", "explaining"),
    ("store", "render"),
    ("watch",),
    ("cli",),
)  # fmt: skip
ROW_OF = {name: number for number, row in enumerate(ROWS) for name in row}

#: Packages that only some parts may import at all.
RESERVED = {"rich": {"render", "cli"}, "watchdog": {"watch"}, "otf2": set(), "_otf2": set()}

#: What plugins may import of gapwatch: what a reader may, and what a command is made of.
FOR_PLUGINS = {"", *ROWS[0], *ROWS[1], *ROWS[2], "hookspecs", "commands"}


def plugin_modules() -> list[Path]:
    return sorted((ROOT / "plugins").rglob("*.py"))


def modules() -> list[Path]:
    return sorted(path for path in (ROOT / "advisor").rglob("*.py") if path != ROOT / "advisor" / "__init__.py")


def top(path: Path) -> str:
    return path.relative_to(ROOT / "advisor").parts[0].removesuffix(".py")


def runtime_imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield what a module imports when it runs, not what it names for type checkers only."""
    checking = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    hidden = {id(inner) for node in checking for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_has_a_row_and_imports_nothing_from_above(path: Path) -> None:
    assert top(path) in ROW_OF, f"{top(path)} stands in no row"
    for name, line in runtime_imports(ast.parse(path.read_text())):
        parts = name.split(".")
        if parts[0] == "advisor" and len(parts) > 1 and parts[1] in ROW_OF:
            assert ROW_OF[parts[1]] <= ROW_OF[top(path)], f"{path.name}:{line} imports {name} from above"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_reserved_packages_stay_in_their_place(path: Path) -> None:
    for name, line in runtime_imports(ast.parse(path.read_text())):
        allowed = RESERVED.get(name.split(".")[0])
        assert allowed is None or top(path) in allowed, f"{path.name}:{line} imports {name}"


@pytest.mark.parametrize("path", plugin_modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_plugin_imports_what_is_published_and_no_other_plugin(path: Path) -> None:
    own = path.relative_to(ROOT / "plugins").parts[0]
    others = {folder.name for folder in (ROOT / "plugins").iterdir() if folder.is_dir()} - {own}
    for name, line in runtime_imports(ast.parse(path.read_text())):
        first, second = (*name.split("."), "")[:2]
        assert first not in others, f"{path.name}:{line} imports {name}"
        assert first not in RESERVED, f"{path.name}:{line} imports {name}"
        assert first != "advisor" or second in FOR_PLUGINS, f"{path.name}:{line} imports {name}"


def test_nothing_in_the_advisor_names_a_reader_or_a_plugin() -> None:
    plugins = [folder.name for folder in (ROOT / "plugins").iterdir() if folder.is_dir()]
    readers = [f"advisor.readers.{path.stem}" for path in (ROOT / "advisor" / "readers").iterdir()]
    for path in modules():
        if top(path) == "readers":
            continue
        for name, line in runtime_imports(ast.parse(path.read_text())):
            assert not any(name.startswith(taboo) for taboo in plugins + readers), f"{path.name}:{line} imports {name}"
