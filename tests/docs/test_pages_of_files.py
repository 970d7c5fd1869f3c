"""The pages on files that users write name all that such a file may hold, and the commands on them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from advisor.advice.rules.records import HowModel, Language, Model

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(("key", "choices"), [("how", HowModel), ("language", Language), ("applies_to", Model)])
def test_the_rule_on_the_page_names_all_choices(key: str, choices: object) -> None:
    [line] = re.findall(rf"^ +{key}: .*$|^ +{key}:  .*$", (DOCS / "rules.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(get_args(choices)) <= set(re.findall(r"[a-z-]+", line))


@pytest.mark.parametrize("command", ["list", "show", "probe", "import"])
def test_the_page_on_machines_shows_each_command(command: str) -> None:
    assert f"    gapwatch machines {command}" in (DOCS / "machines.md").read_text(encoding="utf-8")
