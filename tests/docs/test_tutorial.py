"""The tutorial, gone through as a new user would: an empty directory, a home of its own, the commands as they stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import tutorial_page
from tutorial_page import MOMENT, PAGE, ROOT, Result, Step

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = ROOT / "examples" / "tutorial"
TEXT = PAGE.read_text(encoding="utf-8")
STEPS = tuple(step for step in tutorial_page.steps(TEXT) if not step.recording)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(scope="module")
def results(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[Step, Result]:
    found = tutorial_page.run([step.command for step in STEPS], folder, tmp_path_factory.mktemp("home"))
    return dict(zip(STEPS, found, strict=True))


def test_each_command_prints_what_the_page_shows(results: dict[Step, Result], request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text(tutorial_page.rewritten(TEXT, results), encoding="utf-8")
        return
    for step, result in results.items():
        assert result.status == 0, f"{step.command}: {result.output}"
        assert MOMENT.sub("", result.output) == MOMENT.sub("", step.output), (
            f"{step.command}: see the change, then pytest --rewrite-golden tests/docs/test_tutorial.py"
        )


def test_the_text_names_numbers_that_the_commands_printed() -> None:
    told = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)
    numbers = re.findall(r"-?\b\d+(?:\.\d+)? (?:ms|%)", told)
    assert len(numbers) > 8
    shown = "".join(step.output for step in STEPS)
    assert [number for number in numbers if number not in shown] == []


def test_the_code_on_the_page_is_that_of_the_program(results: dict[Step, Result], folder: Path) -> None:
    before, after = ((path / "galaxy.c").read_text() for path in (EXAMPLE, folder / "stars"))
    [shown] = re.findall(r"```c\n(.*?)```", TEXT, re.DOTALL)
    [old, new] = re.findall(r"^[-+](    return.*)$", TEXT, re.MULTILINE)
    assert shown in before
    assert after == before.replace(old, new) != before
    [repair] = [step.command for step in STEPS if step.command.startswith("sed ")]
    assert repair.removesuffix(" galaxy.c") in (EXAMPLE / "record.sh").read_text()


def test_the_promise_was_kept(results: dict[Step, Result]) -> None:
    [history] = [result.output for step, result in results.items() if step.command.startswith("gapwatch history")]
    [item] = [line.split() for line in history.splitlines() if "A-28" in line]
    assert "resolved" in item
    promised, realised = (float(item[place]) for place in (-4, -2))
    assert realised == pytest.approx(promised, rel=0.05)
