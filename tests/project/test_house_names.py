"""Public names say what they stand for: no vague words, and one word alone only where a list says why."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]

#: Words that name nothing: as a public name of a function, class, constant or module they are a noun left out.
VAGUE_WORDS = """
    asked each every found given got held kept known left made meant met needed one ones said seen shown spent
    stuff taken thing things told wanted
"""
VAGUE = frozenset(VAGUE_WORDS.split())

#: Functions and methods of one word, each with the reason why a second one would add nothing.
ONE_WORD = {
    "advise": "the flow itself, and the service of that name in the contract of plugins",
    "append": "as of a list",
    "bisect": "of the Python API, as the command",
    "close": "as of a file",
    "compose": "called by Textual",
    "compare": "of the Python API, on two runs or builds",
    "data": "called by the XML parser",
    "demangle": "the linker's term; what is demangled is always a symbol",
    "disassemble": "what is disassembled is always machine code",
    "durations": "of the object that it is called on, beside its field `load`",
    "emit": "called by logging",
    "end": "called by the XML parser",
    "error": "called by argparse",
    "eval": "called by SymPy",
    "execute": "as of a database connection (PEP 249)",
    "executemany": "as of a database connection (PEP 249)",
    "explain": "of the Python API, on a run: named like the command",
    "fetchall": "as of a database cursor (PEP 249)",
    "fetchone": "as of a database cursor (PEP 249)",
    "get": "as of a dict",
    "handle": "called by the sandbox in the module that a child runs",
    "jit": "numba's name for it",
    "load": "of the Python API: `gapwatch.load`",
    "main": "the entry of a program",
    "parse": "of a class, which says what is parsed",
    "plot": "of the Python API, named as in pandas and xarray",
    "prepare": "called by the sandbox in the module that a child runs",
    "read": "as of a file, and a service in the contract of plugins",
    "record": "of the Python API: `gapwatch.record`",
    "report": "of the Python API: `gapwatch.report`",
    "start": "called by the XML parser",
    "stop": "of the daemon",
    "transaction": "a context manager is named by what it holds",
    "tune": "of the Python API, as the command",
    "trigamma": "the function's name in mathematics",
}
PRIVATE_SHARE = 0.3


class Name(NamedTuple):
    """A name that a file gives to something: as written, what it names, and where."""

    text: str
    kind: str
    place: str

    @property
    def is_public(self) -> bool:
        return not self.text.startswith("_")


@cache
def files() -> tuple[Path, ...]:
    return tuple(path for room in ("advisor", "gapwatch", "plugins") for path in sorted((ROOT / room).rglob("*.py")))


def names_in(path: Path, tree: ast.Module) -> Iterator[Name]:
    """Yield the names of a module, its functions, methods, classes and constants; properties are read as fields."""
    place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    yield Name(path.stem, "module", f"{place}")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(one) for one in node.decorator_list}
            is_field = any(one in {"property", "cached_property"} or one.endswith(".setter") for one in decorators)
            yield Name(node.name, "property" if is_field else "function", f"{place}:{node.lineno}")
        elif isinstance(node, ast.ClassDef):
            yield Name(node.name, "class", f"{place}:{node.lineno}")
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name):
                yield Name(target.id, "constant", f"{place}:{statement.lineno}")


@cache
def names() -> tuple[Name, ...]:
    every = (name for path in files() for name in names_in(path, ast.parse(path.read_text(encoding="utf-8"))))
    return tuple(name for name in every if not name.text.startswith("__"))


def has_one_word(text: str) -> bool:
    return "_" not in text.strip("_")


def is_vague(text: str) -> bool:
    """Whether all words of a name are vague: ``told``, ``OneThing``, ``each_one``."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+", text)
    return bool(words) and all(word.lower() in VAGUE for word in words)


def test_public_functions_of_one_word_are_on_the_list() -> None:
    functions = [name for name in names() if name.kind == "function" and name.is_public and has_one_word(name.text)]
    unlisted = [f"{name.place}: {name.text}" for name in functions if name.text not in ONE_WORD]
    assert unlisted == [], "give these a verb and an object, or list them with a reason"
    assert sorted(set(ONE_WORD) - {name.text for name in functions}) == [], "listed, but no longer there"


def test_no_public_name_is_vague() -> None:
    assert [f"{name.place}: {name.text}" for name in names() if name.is_public and is_vague(name.text)] == []


def test_few_private_functions_have_one_word() -> None:
    private = [name for name in names() if name.kind == "function" and not name.is_public]
    assert sum(has_one_word(name.text) for name in private) <= PRIVATE_SHARE * len(private)


def test_packages_hold_no_logic_in_their_init() -> None:
    """They say what they are and re-export names; ``gapwatch`` alone finds the right ``advisor`` before anything."""
    allowed = ast.Expr | ast.Import | ast.ImportFrom
    for path in (path for path in files() if path.name == "__init__.py" and path.parent != ROOT / "gapwatch"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            exports = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"__all__", "__version__"}
            assert exports or isinstance(node, allowed), f"{path.relative_to(ROOT)}:{node.lineno}"


@pytest.mark.parametrize("text", ["told", "Found", "each_one", "KEPT", "OneThing"])
def test_vague_names_are_seen(text: str) -> None:
    assert is_vague(text)


@pytest.mark.parametrize("text", ["kept_rules", "find_found_profiles", "UNIT_FACTOR", "load", "_"])
def test_names_with_a_noun_are_not_vague(text: str) -> None:
    assert not is_vague(text)


def test_names_are_seen_wherever_they_are_given(tmp_path: Path) -> None:
    text = "KEPT = 1\nTOLD: int = 2\nclass A:\n    @property\n    def one(self): ...\n    def each(self): ...\n"
    seen = [(name.text, name.kind) for name in names_in(tmp_path / "told.py", ast.parse(text))]
    assert sorted(seen) == [
        ("A", "class"),
        ("KEPT", "constant"),
        ("TOLD", "constant"),
        ("each", "function"),
        ("one", "property"),
        ("told", "module"),
    ]
