"""The code of device rules: every Python snippet parses, and every model of programming has some."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from yaml_files import read_yaml

RULES = Path(__file__).resolve().parents[2] / "rules"


def device_rules() -> list[dict[str, Any]]:
    files = ("9-devices.yaml", "9-devices-use.yaml")
    return [action for name in files for action in read_yaml(RULES / name)]


def snippets() -> list[tuple[str, str]]:
    found = []
    for action in device_rules():
        for model, hows in action["how"].items():
            for how in hows if isinstance(hows, list) else [hows]:
                if how.get("language") == "python":
                    found += [(f"{action['id']} {model} {side}", how[side]) for side in ("before", "after")]
    return found


@pytest.mark.parametrize("snippet", snippets(), ids=lambda snippet: snippet[0])
def test_python_parses(snippet: tuple[str, str]) -> None:
    ast.parse(snippet[1])


def test_there_are_rules_for_all_models_with_code_before_and_after() -> None:
    rules = device_rules()
    assert [action["id"] for action in rules] == [f"D-{number}" for number in range(1, len(rules) + 1)]
    assert len(rules) >= 40
    models: Counter[str] = Counter()
    for action in rules:
        for model, hows in action["how"].items():
            for how in hows if isinstance(hows, list) else [hows]:
                models[model] += "before" in how and "after" in how
    assert models["cuda"] >= 30
    assert models["hip"] >= 20
    assert models["openmp-target"] >= 15
    assert models["pytorch"] >= 25
