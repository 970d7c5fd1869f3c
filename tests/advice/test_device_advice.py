"""Advice on a run with devices as users see it: documents, explanations, comparisons, gates."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from advisor.advice.explaining import explain_study
from advisor.analysis.comparison import compare_builds
from advisor.extension import host
from advisor.formats.native_writer import write_profile
from advisor.output.advice_document import build_advice_document, load_schema, to_json
from advisor.pipeline import Options, study_newest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

from device_lab.faults import Case, make_case
from device_lab.judge import write_traces

if TYPE_CHECKING:
    from advisor.pipeline import Study


@cache
def plugins() -> host.PluginHost:
    return host.load_plugins()


def study(folder: Path, case: Case) -> Study:
    folder.mkdir()
    write_traces(case, folder)
    files = sorted(folder.iterdir())
    return study_newest([folder if len(files) > 1 else files[0]], Options(), plugins())


@pytest.mark.parametrize("seed", [5, 13])
def test_documents_follow_the_schema_and_close(tmp_path: Path, seed: int) -> None:
    found = study(tmp_path / "run", make_case(seed)).advice
    document = json.loads(to_json(build_advice_document(found)))
    jsonschema.validate(document, load_schema())
    first = next(bound["seconds"] for bound in document["bounds"] if bound["seconds"] is not None)
    total = first + sum(gap["seconds"] for gap in document["gaps"])
    assert total == pytest.approx(document["profile"]["actual_s"], rel=1e-9)


def test_every_number_is_explained(tmp_path: Path) -> None:
    found = study(tmp_path / "run", make_case(5))
    assert explain_study(found).numbers
    for what in ("synchronizations", "launches", "D-4", "D-13"):
        assert explain_study(found, what).numbers


def test_builds_are_compared_by_the_levels_of_devices(tmp_path: Path) -> None:
    case = make_case(5)
    before = study(tmp_path / "before", case).advice
    after = study(tmp_path / "after", Case(case.seed, case.fault, case.repaired, case.repaired)).advice
    compared = compare_builds([before], [after])
    names = [change.name for change in compared.changes]
    assert names[0] == "K"
    assert "synchronizations" in names


def test_a_run_written_without_its_devices_gives_no_advice(tmp_path: Path) -> None:
    found = study(tmp_path / "run", make_case(5)).advice.profile
    write_profile(found, tmp_path / "own.json")
    again = study_newest([tmp_path / "own.json"], Options(), plugins()).advice
    assert again.grade.letter == "F"
    assert not again.recommendations


def test_a_replayed_gain_may_exceed_the_gap_that_its_action_is_about(tmp_path: Path) -> None:
    """What a repair wins beyond the gap, by other gaps, is promised too: ceiling and interval hold the true gain."""
    case = make_case(13)
    found = study(tmp_path / "run", case).advice.recommendations[0]
    assert found.action == "D-42"
    assert found.interval_s is not None
    low, high = found.interval_s
    assert low < case.gain / 1e9 < high <= found.ceiling_s
