"""The flow as a whole: which run is advised on, what is left out and said, when there is no advice."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from site_folder import plugin

from advisor import pipeline
from advisor.extension import host
from advisor.model.errors import DocumentError, UsageError
from advisor.model.recommendations import Need
from advisor.model.records import DEVICES_UNSEEN, Note

FIG4 = Path(__file__).parents[1] / "profiles" / "fig4.json"


def written(folder: Path, name: str = "run.json", **changed: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(json.loads(FIG4.read_text()) | changed))
    return path


def alone() -> host.PluginHost:
    return host.load_plugins()


def test_of_several_runs_the_newest_is_advised_on(tmp_path: Path) -> None:
    new = written(tmp_path, "a.json", started="2026-11-20T10:00:00", run="new")
    old = written(tmp_path, "b.json", started="2026-11-19T10:00:00", run="old")
    assert pipeline.advise([new, old], pipeline.Options(), alone()).profile.run == "new"


def test_first_bound_and_all_gaps_make_the_run_time(tmp_path: Path) -> None:
    advice = pipeline.advise([written(tmp_path)], pipeline.Options(), alone())
    known = [bound.seconds for bound in advice.bounds if bound.seconds is not None]
    assert known[0] + sum(gap.seconds for gap in advice.gaps) == pytest.approx(advice.profile.actual_s, abs=1e-9)
    assert advice.verdict == "advice"


def test_a_profile_may_name_a_machine_that_has_no_model_a_user_may_not(tmp_path: Path) -> None:
    path = written(tmp_path, machine="node17")
    advice = pipeline.advise([path], pipeline.Options(), alone())
    assert any("node17" in problem for problem in advice.problems)
    with pytest.raises(UsageError, match="node18"):
        pipeline.advise([path], pipeline.Options(machine="node18"), alone())


def test_a_run_too_short_to_trust_gets_no_advice(tmp_path: Path) -> None:
    arrays = json.loads(FIG4.read_text())
    text = json.dumps(arrays).replace('"actual_s": 47', '"actual_s": 0.047')
    short = json.loads(text)
    for region in short["regions"]:
        region["work_s"] = [[value / 1000 for value in row] for row in region["work_s"]]
    path = tmp_path / "short.json"
    path.write_text(json.dumps(short))
    advice = pipeline.advise([path], pipeline.Options(), alone())
    assert (advice.verdict, advice.recommendations, advice.needs) == ("insufficient evidence", (), ())


def test_where_no_gap_is_known_nothing_is_called_insignificant(tmp_path: Path) -> None:
    regions = [{"name": "solve", "wall_s": [8.1, 11.9]}]
    path = written(tmp_path, actual_s=12.5, synchronized=False, regions=regions)
    advice = pipeline.advise([path], pipeline.Options(), alone())
    assert (advice.verdict, advice.gaps) == ("insufficient evidence", ())


def test_a_large_gap_that_no_rule_can_judge_is_not_called_insignificant(tmp_path: Path) -> None:
    uneven = written(tmp_path, regions=[{"name": "solve", "work_s": [[10.0] * 3, [3.0] * 3]}], actual_s=31.0)
    advice = pipeline.advise([uneven], pipeline.Options(), alone())
    assert {gap.name: round(gap.share, 2) for gap in advice.gaps}["L"] == 0.34
    assert (advice.verdict, advice.recommendations) == ("insufficient evidence", ())
    assert "wait.late_sender_share" in {need.fact for need in advice.needs}
    even = written(tmp_path, regions=[{"name": "solve", "work_s": [[10.0] * 3, [10.0] * 3]}], actual_s=31.0)
    assert pipeline.advise([even], pipeline.Options(), alone()).verdict == "nothing significant"


def test_rules_of_a_plugin_with_mistakes_lose_nothing_else(tmp_path: Path) -> None:
    rules = tmp_path / "bad.yaml"
    rules.write_text("- {id: Z-1, titel: nonsense}\n")
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "broken", f"""
        from pathlib import Path
        @hookimpl
        def advisor_rules():
            return [Path({str(rules)!r})]
    """)  # fmt: skip
    advice = pipeline.advise([written(tmp_path)], pipeline.Options(), host.load_plugins([folder]))
    assert advice.verdict == "advice"
    assert any("left out" in problem and "titel" in problem for problem in advice.problems)


def test_mistakes_in_the_users_own_rules_are_the_users_to_mend(tmp_path: Path) -> None:
    rules = tmp_path / "mine.yaml"
    rules.write_text("- {id: Z-1, titel: nonsense}\n")
    with pytest.raises(DocumentError, match="titel"):
        pipeline.advise([written(tmp_path)], pipeline.Options(rules=(rules,)), alone())


def test_a_user_can_switch_an_action_off(tmp_path: Path) -> None:
    path = written(tmp_path)
    first = pipeline.advise([path], pipeline.Options(), alone()).recommendations[0].action
    rules = tmp_path / "mine.yaml"
    rules.write_text(f"- {{id: {first}, enabled: false}}\n")
    after = pipeline.advise([path], pipeline.Options(rules=(rules,)), alone()).recommendations
    assert first not in {item.action for item in after}


def test_cores_said_on_the_command_line_count(tmp_path: Path) -> None:
    advice = pipeline.advise([written(tmp_path)], pipeline.Options(cores=1), alone())
    assert advice.profile.cores == 1
    assert any("core" in note.text for note in advice.grade.notes)


def test_the_target_of_the_command_line_replaces_the_one_beside_the_profile(tmp_path: Path) -> None:
    path = written(tmp_path, parameters={"N": 512, "target": "P=8"})
    said = pipeline.advise([path], pipeline.Options(target="P=64 N=1024"), alone())
    assert said.profile.parameters == {"N": 512, "target": "P=64 N=1024"}
    assert pipeline.advise([path], pipeline.Options(), alone()).profile.parameters["target"] == "P=8"


def test_what_devices_do_is_asked_for_only_where_one_was_seen() -> None:
    """What GNU time prints leaves open what the system did, for which rules on devices would like to know more."""
    advice = pipeline.advise([FIG4.parent / "timing_tables" / "time.txt"], pipeline.Options(), alone())
    assert advice.needs
    assert not [need.fact for need in advice.needs if need.fact.startswith("device.")]
    seen = replace(advice.grade, notes=(Note(DEVICES_UNSEEN, "kernels ran", 0.1),))
    wanted = (Need("device.idle_share", "nsys profile"),)
    assert pipeline._select_needs(advice.profile, seen, wanted) == wanted


def test_what_gnu_time_says_beside_a_profile_is_about_the_command_that_ran_it(tmp_path: Path) -> None:
    shutil.copy(FIG4, tmp_path)
    text = (FIG4.parent / "timing_tables" / "time.txt").read_text(encoding="utf-8")
    name = json.loads(FIG4.read_text(encoding="utf-8"))["program"]
    (tmp_path / "time.txt").write_text(text.replace("/home/user/bin/indexer", f"mpirun -n 2 {name}"), encoding="utf-8")
    found = pipeline.study_newest([tmp_path], pipeline.Options(), alone())
    assert [one.program for one in found.runs] == [name]
    assert found.advice.profile.parameters["memory_bytes"] > 0
    (tmp_path / "time.txt").write_text(text, encoding="utf-8")
    found = pipeline.study_newest([tmp_path], pipeline.Options(), alone())
    assert [one.program for one in found.runs] == ["indexer", name]
    assert found.advice.profile.program == name
