"""Every piece of code in the rules compiles as it stands, without a warning."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from yaml_files import read_yaml

RULES = Path(__file__).resolve().parents[2] / "rules"
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-fopenmp", "-O1", "-c")


@dataclass(frozen=True)
class Compiler:
    """How code of one language is compiled, and which Debian package brings the compiler."""

    command: str
    package: str
    suffix: str
    options: tuple[str, ...]


C = ("-std=gnu17", *WARNINGS)
CXX = ("-std=c++20", *WARNINGS)
FORTRAN = ("-std=f2018", *WARNINGS)
COMPILERS = {
    ("python", False): Compiler("python3", "python3", ".py", ("-m", "py_compile")),
    ("c", False): Compiler("gcc", "gcc", ".c", C),
    ("cxx", False): Compiler("g++", "g++", ".cpp", CXX),
    ("fortran", False): Compiler("gfortran", "gfortran", ".f90", FORTRAN),
    # MPI_UNWEIGHTED and its like are fixed addresses, which gcc takes for arrays of size 0.
    ("c", True): Compiler("mpicc", "libopenmpi-dev", ".c", (*C, "-Wno-stringop-overread")),
    ("cxx", True): Compiler("mpic++", "libopenmpi-dev", ".cpp", CXX),
    ("fortran", True): Compiler("mpifort", "libopenmpi-dev and gfortran", ".f90", FORTRAN),
}


@dataclass(frozen=True)
class Snippet:
    """One before or after of an action."""

    name: str
    language: str
    code: str

    @property
    def compiler(self) -> Compiler:
        return COMPILERS[self.language, "mpi.h" in self.code or "mpi_f08" in self.code]


def how_tos(how: dict[str, Any]) -> list[tuple[str, int, dict[str, str]]]:
    """Return (model, position, how-to) for each entry of an action's ``how``, single or in a list."""
    return [
        (model, position, entry)
        for model, entries in how.items()
        for position, entry in enumerate(entries if isinstance(entries, list) else [entries])
    ]


def rule_files() -> list[Path]:
    """Return the files with the project's actions and those of the plugins beside it."""
    found = [*sorted(RULES.glob("[1-8]-*.yaml")), *sorted((RULES.parent / "plugins").glob("*/**/rules*.yaml"))]
    assert len(found) > 8
    return found


def snippets() -> list[Snippet]:
    actions = [action for path in rule_files() for action in read_yaml(path)]
    return [
        Snippet(f"{action['id']}-{model}-{position}-{side}", entry["language"], entry[side])
        for action in actions
        for model, position, entry in how_tos(action["how"])
        for side in ("before", "after")
        if side in entry
    ]


@pytest.mark.parametrize("snippet", snippets(), ids=lambda snippet: snippet.name)
def test_code_compiles_without_warnings(snippet: Snippet, tmp_path: Path) -> None:
    compiler = snippet.compiler
    if shutil.which(compiler.command) is None:
        pytest.skip(f"{compiler.command} is not installed; the Debian package {compiler.package} provides it")
    source = tmp_path / f"snippet{compiler.suffix}"
    source.write_text(snippet.code)
    done = subprocess.run(
        [compiler.command, *compiler.options, source.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_action_shows_code() -> None:
    shown = {snippet.name.rsplit("-", 3)[0] for snippet in snippets()}
    actions = [action["id"] for path in sorted(RULES.glob("[1-8]-*.yaml")) for action in read_yaml(path)]
    assert [name for name in actions if name not in shown] == []


def test_all_three_languages_and_both_models_appear() -> None:
    assert {snippet.language for snippet in snippets()} == {"c", "cxx", "fortran", "python"}
    assert sum(snippet.language == "fortran" for snippet in snippets()) >= 40
