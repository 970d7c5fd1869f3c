"""What comparing builds said of recorded ones: twenty unchanged, forty with one fault of five per cent."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

    from advisor.model.records import Advice

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "validation.md"


@pytest.fixture(scope="module")
def builds() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compared_builds", ROOT / "examples" / "faults" / "builds.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["compared_builds"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(builds: ModuleType) -> dict[str, list[Advice]]:
    kept: dict[str, list[Advice]] = builds.builds()
    return kept


def test_every_build_of_the_plan_was_recorded_three_times(builds: ModuleType, found: dict[str, list[Advice]]) -> None:
    assert {build: len(runs) for build, runs in found.items()} == {build: 3 for build, _ in builds.plan()}
    assert len(found) == 60


def test_unchanged_builds_raise_no_alarm(builds: ModuleType, found: dict[str, list[Advice]]) -> None:
    assert builds.alarms(found) == []


def test_faults_are_named_with_gap_and_region(builds: ModuleType, found: dict[str, list[Advice]]) -> None:
    said = builds.named(found)
    assert len(said) == 40
    assert sum(right for *_, right in said.values()) >= 38


def test_each_fault_costs_about_five_per_cent(builds: ModuleType, found: dict[str, list[Advice]]) -> None:
    """By the fastest runs, which nothing disturbed."""
    clean = min(run.profile.actual_s for build, runs in found.items() if build.startswith("clean") for run in runs)
    for fault in builds.FAULTS:
        fastest = min(
            run.profile.actual_s for number in range(builds.TRIALS) for run in found[f"{fault.name} {number}"]
        )
        assert 1.035 < fastest / clean < 1.075, fault.name


def test_the_page_has_the_table_of_today(
    builds: ModuleType, found: dict[str, list[Advice]], request: pytest.FixtureRequest
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = builds.SECTION.search(page)
    assert section is not None
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text(page[: section.start()] + builds.table(found) + page[section.end() :], encoding="utf-8")
    else:
        assert section[0] == builds.table(found), "run: pytest --rewrite-golden tests/history/test_builds_compared.py"
