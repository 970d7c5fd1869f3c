"""Places of recommendations in a checkout, whatever the compiler called the file."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from advisor.output.source_tree import SourcePlace, open_source_tree


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("src/solver/flux.c", "main.c", "README.md", "Makefile"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/builds/4711/project/src/solver/flux.c", "src/solver/flux.c"),
        ("../src/solver/flux.c", "src/solver/flux.c"),
        ("solver/flux.c", None),
        ("main.c", "main.c"),
        ("/somewhere/else/main.c", None),  # only the name agrees
        ("/usr/include/stdio.h", None),
        (None, None),
    ],
)
def test_files_of_other_machines_are_found_by_the_end_of_their_path(
    checkout: Path, file: str | None, expected: str | None
) -> None:
    tree = open_source_tree(checkout)
    if file == "solver/flux.c":  # relative as compiled in another folder: shown as it is
        assert tree.choose_place(file, 7) == SourcePlace(PurePosixPath("solver/flux.c"), 7)
    elif expected is None:
        assert tree.choose_place(file, 7) == SourcePlace(PurePosixPath("Makefile"), 1)
    else:
        assert tree.choose_place(file, 7) == SourcePlace(PurePosixPath(expected), 7)


@pytest.mark.parametrize(
    ("fallback", "path", "line"),
    [
        (None, "Makefile", 1), ("docs/a.md", "docs/a.md", 1), ("a.md:12", "a.md", 12), ("a:b", "a:b", 1),
        ("a.md:0", "a.md:0", 1), (":5", ":5", 1),
    ],
)  # fmt: skip
def test_the_fallback_is_the_one_asked_for_or_a_project_file(
    checkout: Path, fallback: str | None, path: str, line: int
) -> None:
    assert open_source_tree(checkout, fallback).choose_place(None, None) == SourcePlace(PurePosixPath(path), line)


def test_an_empty_checkout_has_a_place_too(tmp_path: Path) -> None:
    assert open_source_tree(tmp_path).choose_place(None, None) == SourcePlace(PurePosixPath("README.md"), 1)


def test_a_relative_file_that_is_nowhere_below_the_root_stays_as_it_is(checkout: Path) -> None:
    assert open_source_tree(checkout).find_place("gone/x.c", 2) == SourcePlace(PurePosixPath("gone/x.c"), 2)
