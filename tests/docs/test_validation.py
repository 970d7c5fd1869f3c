"""The page on validation says what the program does; nine in ten first items are right; repeats agree."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor import pipeline
from advisor.extension import host

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "validation.md"


@pytest.fixture(scope="module")
def validate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("validate", ROOT / "examples" / "faults" / "validate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["validate"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def judgements(validate: ModuleType) -> list[object]:
    return validate.run([])


def test_the_page_holds_the_table_of_today(validate: ModuleType, judgements: list[object]) -> None:
    page = PAGE.read_text()
    assert validate.table(judgements) in page, "run: python examples/faults/validate.py"
    assert validate.accepted_table() in page


def test_nine_in_ten_first_items_are_right_and_clean_runs_get_no_advice(judgements: list[object]) -> None:
    shown = [each for each in judgements if each.verdict in ("hit", "miss")]
    assert len(shown) >= 40
    assert sum(each.verdict == "hit" for each in shown) >= 0.9 * len(shown)
    assert all(each.verdict == "hit" for each in shown if not each.case.faults)


def test_the_same_run_recorded_five_times_gets_the_same_first_item() -> None:
    plugins = host.load_plugins()
    firsts = set()
    for path in sorted((ROOT / "tests" / "profiles" / "faults").glob("repeat-*")):
        first = pipeline.advise([path], pipeline.Options(), plugins).recommendations[0]
        firsts.add((first.action, first.region, first.phase, first.fingerprint))
    assert len(firsts) == 1
