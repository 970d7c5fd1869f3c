"""Many runs in one folder: they are told apart, listed, and one of them is advised on."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import advice_samples as samples
import pytest

from advisor import pipeline
from advisor.analysis import merging
from advisor.cli import gates
from advisor.collect.campaigns import stated_parameters
from advisor.collect.listed_runs import format_runs
from advisor.extension import host
from advisor.model.errors import UsageError
from advisor.model.records import Grade, Note, Processor

FIG4 = Path(__file__).parents[1] / "profiles" / "fig4.json"


def written(path: Path, **changed: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(json.loads(FIG4.read_text()) | changed))
    return path


def three_runs(folder: Path) -> Path:
    for day in (3, 1, 2):
        written(folder / f"r{day}.json", started=f"2026-11-0{day}T10:00:00", run=f"run-{day}", program="heat")
    return folder


def study(path: Path, run: str | None = None) -> pipeline.Study:
    return pipeline.study_newest([path], pipeline.Options(run=run), host.load_plugins())


def test_a_folder_of_runs_is_listed_and_the_newest_advised_on(tmp_path: Path) -> None:
    found = study(three_runs(tmp_path))
    assert found.advice.profile.run == "run-3"
    assert [one.run for one in found.runs] == ["run-1", "run-2", "run-3"]
    assert "heat, 2026-11-02T10:00:00" in format_runs(found.runs)[1]
    assert format_runs(found.runs, most=1)[0] == "  … 2 older ones"
    assert len({line.index("heat") for line in format_runs(found.runs * 4)}) == 1


@pytest.mark.parametrize("wanted", ["2", "run-2", "r2.json"])
def test_a_run_is_chosen_by_number_name_or_path(tmp_path: Path, wanted: str) -> None:
    assert study(three_runs(tmp_path), wanted).advice.profile.run == "run-2"


@pytest.mark.parametrize(("wanted", "why"), [("9", "no run fits"), ("json", "3 runs fit")])
def test_a_run_that_is_not_there_or_not_alone(tmp_path: Path, wanted: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        study(three_runs(tmp_path), wanted)


def test_a_folder_around_the_runs_names_none(tmp_path: Path) -> None:
    folder = tmp_path / "run-9"
    folder.mkdir()
    with pytest.raises(UsageError, match="no run fits"):
        study(three_runs(folder), "9")


def test_runs_without_a_start_are_as_old_as_their_files(tmp_path: Path) -> None:
    for age, name in ((100, "old"), (50, "new"), (200, "older")):
        file = written(tmp_path / f"{name}.json", run=name)
        os.utime(file, (2_000_000_000 - age,) * 2)
    assert [one.run for one in study(tmp_path).runs] == ["older", "old", "new"]


def test_other_programs_are_no_history(tmp_path: Path) -> None:
    written(tmp_path / "a.json", started="2026-11-01T10:00:00", run="a", program="other")
    written(tmp_path / "b.json", started="2026-11-02T10:00:00", run="b", program="heat")
    found = study(tmp_path)
    assert found.advice.profile.run == "b"
    assert not found.earlier.earlier_advice()


def test_recordings_that_cannot_be_of_one_run_stay_apart() -> None:
    one = replace(samples.full().profile, program="cpi", reader="first", started=None)
    same = replace(one, reader="second")
    assert len(merging.group_by_run([one, same])) == 1
    elsewhere = tuple(replace(processor, host="n9") for processor in one.processors)
    here = replace(one, processors=tuple(replace(processor, host="n1.cluster") for processor in one.processors))
    for other in (
        replace(same, program="", processors=(*same.processors, Processor(99))),
        replace(same, actual_s=3 * one.actual_s),
    ):
        assert len(merging.group_by_run([one, other])) == 2
    assert len(merging.group_by_run([here, replace(same, processors=elsewhere)])) == 2


def test_gates_judge_no_grade_f() -> None:
    advice = samples.full()
    bad = replace(advice, grade=Grade("F", 0.0, (Note("too short", "the run took 3 ms", 1.0),)))
    with pytest.raises(UsageError, match=r"can't be judged: the grade of this run is F: the run took 3 ms"):
        gates.check_gates([gates.parse_gate("L > 3 %")], bad, lambda: None)
    gates.check_gates([], bad, lambda: None)


def test_folders_of_a_campaign_state_parameters(tmp_path: Path) -> None:
    for name in ("mm.p4.n20,5.r1", "mm.p8.n20,5.r1", "mm.p4.n20,5.r2"):
        written(tmp_path / name / "profile.json")
    written(tmp_path / "alone" / "v2" / "profile.json")
    assert stated_parameters(tmp_path / "mm.p8.n20,5.r1" / "profile.json") == {"p": 8.0, "n": 20.5}
    assert stated_parameters(tmp_path / "alone" / "v2" / "profile.json") == {}
    for builds in (("v1", "v2"), ("ba12345", "ba12346")):
        for name in builds:
            written(tmp_path / "builds" / name / "profile.json")
        assert stated_parameters(tmp_path / "builds" / builds[1] / "profile.json") == {}
    runs, _ = pipeline.read_runs([tmp_path / "mm.p8.n20,5.r1"], pipeline.Options(), host.load_plugins())
    assert runs[0].parameters["p"] == 8.0
