"""Names are never markup: no text reaches rich but through the one door that cleans it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import advisor

PACKAGE = Path(advisor.__file__).parent
SOURCES = sorted([*(PACKAGE / "output").glob("*.py"), *(PACKAGE / "cli").glob("*.py")])
#: Ways of rich to read markup, emoji codes or highlights out of a string.
FORBIDDEN = {"from_markup", "render_str", "render_markup", "assemble", "from_ansi", "rule", "log", "status", "input"}


def calls(file: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_no_string_is_read_as_markup(file: Path) -> None:
    for call in calls(file):
        assert name_of(call) not in FORBIDDEN, f"line {call.lineno}"
        switched_on = {word.arg for word in call.keywords if word.arg in ("markup", "emoji", "highlight")
                       and not (isinstance(word.value, ast.Constant) and word.value.value is False)}  # fmt: skip
        assert not switched_on, f"line {call.lineno}"


def test_rich_texts_are_built_in_one_place() -> None:
    builders = {file.name for file in SOURCES if "from rich.text import" in file.read_text("utf-8")
                and any(name_of(call) == "Text" for call in calls(file))}  # fmt: skip
    assert builders == {"text_cells.py"}


def test_rich_prints_in_one_place_and_what_it_prints_is_no_string() -> None:
    consoles = {file.name for file in SOURCES for call in calls(file) if name_of(call) == "Console"}
    assert consoles == {"page.py"}
    prints = [call for file in SOURCES for call in calls(file) if name_of(call) == "print"]
    assert all(isinstance(call.func, ast.Attribute) for call in prints)
    assert not any(isinstance(part, ast.JoinedStr | ast.Constant) for call in prints for part in call.args)
