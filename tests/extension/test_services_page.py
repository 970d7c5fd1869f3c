"""The page on commands names every service that a command may ask for, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from advisor.extension.commands import Argument, CommandServices

PAGE = (Path(__file__).parents[2] / "docs" / "hooks" / "advisor_commands.md").read_text(encoding="utf-8")


def test_the_page_lists_the_services_that_there_are() -> None:
    listed = set(re.findall(r"^\| `services\.(\w+)\(", PAGE, re.MULTILINE))
    assert listed == {name for name in vars(CommandServices) if not name.startswith("_")}


def test_the_page_lists_what_an_argument_takes() -> None:
    [listed] = re.findall(r"`Argument\((.*?)\)`", PAGE)
    assert listed.split(", ") == list(Argument.__dataclass_fields__)
