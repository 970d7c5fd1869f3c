"""``gapwatch rules check`` names every mistake of a file at once, each with its line and column."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from advisor import cli

if TYPE_CHECKING:
    import pytest

FILE = Path(__file__).parents[1] / "profiles" / "rules" / "mistakes.yaml"


def planted() -> dict[tuple[int, int], str]:
    """Place and part of the message of each mistake, as the comments of the file say."""
    lines = enumerate(FILE.read_text("utf-8").splitlines(), 1)
    found = [(number, re.search(r"# column (\d+): (.*)$", line)) for number, line in lines]
    return {(number, int(said[1])): said[2] for number, said in found if said}


def test_each_mistake_is_named_with_line_and_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "check", str(FILE), "--format", "json"]) == 2
    (table,) = json.loads(capsys.readouterr().out)["parts"]
    found = {(line, column): message for _, line, column, message in table["rows"]}
    assert found.keys() == planted().keys()
    assert [place for place, part in planted().items() if part not in found[place]] == []
    assert len(table["rows"]) == len(found) >= 12


def test_each_mistake_is_one_line_that_an_editor_can_follow(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "check", str(FILE)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{FILE}:{at}:{column}" for at, column in planted()]
