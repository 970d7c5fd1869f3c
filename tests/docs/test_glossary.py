"""docs/glossary.md names files and what is in them: all of it is there, and a search for a formula leads to it."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
PLACE = re.compile(r"`([\w/]+\.py):([\w.]+)`")


def rows(text: str) -> list[tuple[str, str]]:
    """Return first and last cell of each row of the tables."""
    lines = [line.strip("| ").replace(r"\|", "") for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return [(row[0], row[-1]) for row in cells if row[-1] != "where"]


TERMS = rows(TEXT)
FORMULAS = rows(TEXT.partition("## Formulas")[2])


@pytest.mark.parametrize(("path", "name"), sorted(set(PLACE.findall(TEXT))))
def test_what_the_glossary_names_is_there(path: str, name: str) -> None:
    module = import_module(path.removeprefix("plugins/").removesuffix(".py").replace("/", "."))
    assert Path(module.__file__ or "") == ROOT / path
    reduce(getattr, name.split("."), module)


def test_every_term_has_a_place() -> None:
    assert len(TERMS) > 60
    assert [term for term, where in TERMS if not PLACE.search(where)] == []


@pytest.mark.parametrize(("formula", "where"), FORMULAS)
def test_a_search_for_a_formula_leads_to_its_file(formula: str, where: str) -> None:
    words = formula.casefold().split(", ")
    for path, _ in PLACE.findall(where):
        text = (ROOT / path).read_text(encoding="utf-8").casefold()
        assert [word for word in words if word not in text] == [], path


def test_there_are_twelve_look_ups() -> None:
    assert len(FORMULAS) == 12
