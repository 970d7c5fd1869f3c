"""Rooms import downwards only, no two files import each other, and docs/design.md draws the rooms as they are."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
DESIGN = ROOT / "docs" / "design.md"

#: The floors, highest first; a room imports from itself and from lower floors only.
FLOORS = (
    ("cli",),
    ("agents",),
    ("daemon", "experiments"),
    ("history", "output"),
    ("pipeline",),
    ("extension",),
    ("advice",),
    ("formats", "collect"),
    ("analysis",),
    ("trace",),
    ("support",),
    ("model",),
)
HEIGHT = {room: height for height, floor in enumerate(reversed(FLOORS)) for room in floor}

#: The published contract: readers are plugins and import their marks from it, although it is in a room above them.
CONTRACT = "advisor.extension.hookspecs"
#: What plugins build commands from, also published.
COMMANDS = "advisor.extension.commands"
#: What plugins may write: gapwatch's own format.
WRITING = "advisor.formats.native_writer"
#: What plugins read programs with: symbols, debug information and machine code.
BINARIES = "advisor.collect.binaries"
#: The rooms that a plugin may import from. ``advice`` for facts and rules, which plugins extend.
FOR_PLUGINS = {"model", "support", "trace", "analysis", "advice"}
FOR_FORMATS = {"model", "support", "trace", "analysis"}

#: Packages that only some rooms may import at all.
RESERVED = {"rich": {"output", "cli"}, "textual": {"cli"}, "watchdog": {"daemon"}, "otf2": set(), "_otf2": set()}


def plugin_files() -> list[Path]:
    return sorted((ROOT / "plugins").rglob("*.py"))


def files() -> list[Path]:
    return sorted(path for path in (ROOT / "advisor").rglob("*.py") if path != ROOT / "advisor" / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "advisor").parts[0].removesuffix(".py")


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def named(path: Path, *, types: bool = False) -> tuple[tuple[str, int], ...]:
    """Return what a file imports when it runs, with the line; with ``types`` also what only type checkers see.

    ``from a import b`` is ``a.b``, which may be a module or a name in one.
    """
    return tuple(_imports(ast.parse(path.read_text(encoding="utf-8")), types))


def _imports(node: ast.AST, types: bool) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.module is not None, f"line {node.lineno}: a relative import"
        assert node.level == 0, f"line {node.lineno}: a relative import"
        yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
    only_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    inner = node.orelse if isinstance(node, ast.If) and only_types and not types else ast.iter_child_nodes(node)
    for child in inner:
        yield from _imports(child, types)


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def room_named(name: str) -> str | None:
    """Return the room of what an import names; None for what is not of gapwatch, and for its version."""
    parts = name.split(".")
    return parts[1] if parts[0] == "advisor" and len(parts) > 1 and parts[1] != "__version__" else None


def imported(names: Iterable[str], known: Mapping[str, Path]) -> set[Path]:
    """Return the files that hold what imports name, of those ``known`` by the names of their modules."""
    found = set()
    for name in names:
        module = name if name in known else name.rpartition(".")[0]
        if module in known:
            found.add(known[module])
    return found


def modules(root: Path, paths: Iterable[Path]) -> dict[str, Path]:
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def importing() -> dict[str, set[str]]:
    """Return the rooms that each room imports from when it runs, without itself and the contract."""
    found: dict[str, set[str]] = {room: set() for room in HEIGHT}
    for path in files():
        rooms = (room_named(name) for name, _ in named(path) if not within(name, CONTRACT))
        found[room_of(path)] |= {room for room in rooms if room not in (None, room_of(path))}
    return found


def test_imports_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    lines = ("from a import b", "if TYPE_CHECKING:", "    import c.d", "else:", "    import e", "def f():")
    file.write_text("\n".join((*lines, "    from a.b import g as h")))
    assert [name for name, _ in named(file)] == ["a.b", "e", "a.b.g"]
    assert [name for name, _ in named(file, types=True)] == ["a.b", "c.d", "e", "a.b.g"]


def test_every_file_is_in_a_room() -> None:
    assert {room_of(path) for path in files()} == set(HEIGHT)
    loose = {path.name for path in (ROOT / "advisor").glob("*.py")}
    assert loose == {"__init__.py", "pipeline.py"}


@pytest.mark.parametrize(
    ("root", "paths"), [(ROOT, files()), (ROOT / "plugins", plugin_files())], ids=["advisor", "plugins"]
)
def test_no_two_files_import_each_other_not_even_by_way_of_others(root: Path, paths: list[Path]) -> None:
    known = modules(root, paths)
    graph = {path: imported((name for name, _ in named(path, types=True)), known) for path in paths}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(map(label, error.args[1])))


@pytest.mark.parametrize("path", files(), ids=label)
def test_a_room_imports_nothing_from_above_or_beside_it(path: Path) -> None:
    own = room_of(path)
    for name, line in named(path):
        room = room_named(name)
        if room is not None and room != own and not (own == "formats" and within(name, CONTRACT)):
            assert HEIGHT[room] < HEIGHT[own], f"{label(path)}:{line} imports {name}"


def test_the_contract_imports_no_other_room() -> None:
    (contract,) = (path for path in files() if label(path) == f"{CONTRACT.replace('.', '/')}.py")
    assert [name for name, _ in named(contract) if room_named(name)] == []


@pytest.mark.parametrize("path", [path for path in files() if room_of(path) == "formats"], ids=label)
def test_a_reader_imports_what_is_published_and_no_other_room(path: Path) -> None:
    for name, line in named(path):
        room = room_named(name)
        allowed = room in (None, "formats", *FOR_FORMATS) or within(name, CONTRACT)
        assert allowed, f"{label(path)}:{line} imports {name}"


@pytest.mark.parametrize("path", files(), ids=label)
def test_reserved_packages_stay_in_their_rooms(path: Path) -> None:
    for name, line in named(path):
        allowed = RESERVED.get(name.split(".")[0])
        assert allowed is None or room_of(path) in allowed, f"{label(path)}:{line} imports {name}"


@pytest.mark.parametrize("path", plugin_files(), ids=label)
def test_a_plugin_imports_what_is_published_and_no_other_plugin(path: Path) -> None:
    own = path.relative_to(ROOT / "plugins").parts[0]
    others = {folder.name for folder in (ROOT / "plugins").iterdir() if folder.is_dir()} - {own}
    for name, line in named(path):
        first, room = name.split(".")[0], room_named(name)
        assert first not in others, f"{label(path)}:{line} imports {name}"
        assert first not in RESERVED, f"{label(path)}:{line} imports {name}"
        allowed = room in (None, *FOR_PLUGINS) or within(name, CONTRACT, COMMANDS, WRITING, BINARIES)
        assert allowed, f"{label(path)}:{line} imports {name}"


def test_nothing_in_the_advisor_names_a_format_or_a_plugin() -> None:
    plugins = [folder.name for folder in (ROOT / "plugins").iterdir() if folder.is_dir()]
    formats = [path.parent.name for path in (ROOT / "advisor" / "formats").glob("*/__init__.py")]
    taboo = (*plugins, *(f"advisor.formats.{name}" for name in formats))
    for path in files():
        if room_of(path) != "formats":
            for name, line in named(path):
                assert not within(name, *taboo), f"{label(path)}:{line} imports {name}"


def test_the_picture_of_the_rooms_is_right() -> None:
    picture = DESIGN.read_text(encoding="utf-8").split("## Rooms")[1].split("```")[1]
    assert [tuple(re.findall(r"[a-z]+", line)) for line in picture.splitlines()[1:]] == list(FLOORS)


def test_the_table_of_the_rooms_says_what_each_imports() -> None:
    section = DESIGN.read_text(encoding="utf-8").split("## Rooms")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| `")]
    said = {re.findall(r"`([a-z]+)", row[0])[0]: set(re.findall(r"[a-z]+", row[-1])) for row in rows}
    assert said == importing()
