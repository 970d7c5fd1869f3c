"""Extras have the same names in pyproject.toml, in messages, in the pages and in the tests; each dependency its why."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, get_args

import pytest
from installed import ROOT

from advisor.support.extras import Extra, install_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
#: Something that pip installs gapwatch with, in any text.
ASKED_FOR = re.compile(r"gapwatch\[([a-z,]+)\]|\"\.\[([a-z,]+)\]\"")


def texts() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield ROOT / "Makefile"
    for folder, kind in (("docs", "*.md"), ("tests", "*.py"), ("benchmarks", "*.py"), ("plugins", "*.md")):
        yield from (path for path in (ROOT / folder).rglob(kind) if path.name != "test_extras.py")


def package(requirement: str) -> str:
    return re.split(r"[<>=;\[ ]", requirement)[0]


def documented() -> dict[str, str | None]:
    """The packages of docs/dependencies.md with the extra that brings each."""
    found: dict[str, str | None] = {}
    for line in (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").splitlines():
        row = re.fullmatch(r"\| ([a-z0-9, -]+?)(?: \((?:extra|group) `(\w+)`\))? \| .* \| .* \|", line)
        if row and row[1] != "package":
            found |= dict.fromkeys(row[1].split(", "), row[2])
    return found


def test_the_code_knows_the_extras_of_the_project() -> None:
    assert set(get_args(Extra)) == set(EXTRAS) - {"all"}
    assert EXTRAS["all"] == [f"gapwatch[{','.join(sorted(get_args(Extra)))}]"]
    assert install_line("html") == 'pip install "gapwatch[html]"'


def test_only_extras_that_exist_are_asked_for() -> None:
    for path in texts():
        for named in ASKED_FOR.finditer(path.read_text(encoding="utf-8")):
            assert set((named[1] or named[2]).split(",")) <= set(EXTRAS), f"{path}: {named[0]}"


def test_messages_take_the_line_from_one_place() -> None:
    for folder in ("advisor", "plugins"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != ROOT / "advisor" / "support" / "extras.py":
                assert "gapwatch[" not in path.read_text(encoding="utf-8"), path


def test_every_dependency_says_why_it_is_there_and_which_extra_brings_it() -> None:
    expected: dict[str, str | None] = dict.fromkeys(map(package, PROJECT["dependencies"]))
    expected |= {package(each): extra for extra in get_args(Extra) for each in EXTRAS[extra]}
    pages = {name: extra for name, extra in documented().items() if extra != "docs"}
    assert pages == expected


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_the_page_on_installing_has_every_extra(extra: str) -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{extra}` \|", page, re.MULTILINE)


def test_the_page_on_installing_has_every_version_of_python_that_is_stated() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    stated = re.findall(r"Python :: (3\.\d+)\b", "\n".join(PROJECT["classifiers"]))
    assert stated
    assert re.findall(r"^\| (3\.\d+) \|", page, re.MULTILINE) == stated
