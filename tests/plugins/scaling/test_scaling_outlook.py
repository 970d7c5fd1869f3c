"""What advice says about the scale a program is meant for, and models for other plugins."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import command_line as cli
import numpy as np
import pytest
from scaling_runs import run

from advisor.advice import rules
from advisor.advice.facts import add_finding_values
from advisor.advice.rules import cases
from advisor.advice.rules.lint import check_rule_file
from advisor.analysis import bounds, gaps
from advisor.extension import host
from advisor.model.errors import UsageError
from advisor.model.recommendations import Total
from advisor.model.records import Advice, Grade
from advisor_scaling import advisor_facts, advisor_findings, advisor_rules, advisor_services, target_findings

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Gap, Profile


OWN = tuple(f"T-{number}" for number in range(1, 15))


def gaps_of(profile: Profile) -> tuple[Gap, ...]:
    return gaps.attribute_gaps(profile, bounds.compute_bounds(profile, None))


def advice(profile: Profile) -> Advice:
    grade = Grade("A", 1.0, ())
    bare = replace(profile, phases=(), counts={})
    return Advice(bare, grade, (), gaps_of(profile), (), (), (), Total(0.0), (), (), "nothing significant")


HISTORY = [advice(run(512, p, repeat)) for p in (1, 2, 4) for repeat in range(2)]


def test_a_gap_that_is_small_today_and_large_at_the_target_is_told() -> None:
    now = run(512, 8)
    found = {each.subject: each for each in advisor_findings(now, gaps_of(now), HISTORY)}
    assert found["C'"].measures["share_today"] < 0.12
    assert found["C'"].measures["share"] > 0.3
    assert "save little here and much there" in found["C'"].text
    assert "P=64" in found["C'"].text
    whole = 1.2 * 2e-9 * 512**3 / 64 + 6e-3
    assert found["run"].measures["seconds"] == pytest.approx(whole, rel=0.3)


def test_the_target_is_stated_beside_the_profile() -> None:
    now = replace(run(512, 8), parameters={"N": 512.0, "target": "P=256"})
    found = advisor_findings(now, gaps_of(now), HISTORY)
    assert "P=256" in found[0].text
    assert "32 times beyond" in found[0].text


def test_without_runs_at_several_sizes_nothing_is_said() -> None:
    now = run(512, 8)
    assert not advisor_findings(now, gaps_of(now), [])
    assert not advisor_findings(now, gaps_of(now), HISTORY[:1])
    assert not advisor_findings(now, gaps_of(now), [replace(HISTORY[0], profile=replace(now, program="other"))])


def test_the_fact_knows_how_far_the_target_is() -> None:
    fact = next(fact for fact in advisor_facts() if fact.name == "run.target_processors_factor")
    assert fact.compute is not None
    stated = replace(run(512, 8), parameters={"target": "P=1024 N=8192"})
    assert fact.compute(stated, None) == 128.0
    assert fact.compute(run(512, 8), None) is None
    assert fact.compute(replace(stated, parameters={"target": "soon"}), None) is None


def test_facts_are_what_the_findings_measure() -> None:
    now = run(512, 8)
    findings = advisor_findings(now, gaps_of(now), HISTORY)
    known = {
        fact.name: fact.compute(now, None) for fact in add_finding_values(advisor_facts(), findings) if fact.compute
    }
    grown = next(each for each in findings if each.subject == "C'")
    assert known["run.scaling_points"] == 4.0
    assert known["run.target_communication_share"] == grown.measures["share"]
    growth = grown.measures["share"] / grown.measures["share_today"]
    assert known["run.target_communication_growth"] == pytest.approx(growth)
    # 1.2 * 2e-9 * 512^3 / P + 1e-3 log2 P at P = 64: the derivative of both parts over their sum
    work, tree = 1.2 * 2e-9 * 512**3 / 64, 6e-3
    slope = (work - 1e-3 / np.log(2.0)) / (work + tree)
    assert known["run.speedup_exponent"] == pytest.approx(slope, abs=0.1)
    silent = {fact.name: fact.compute for fact in add_finding_values(advisor_facts(), ())}
    assert silent["run.target_communication_share"] is None
    assert (silent["run.scaling_points"] or (lambda *_: None))(now, None) == 0.0


def test_rules_pass_their_examples() -> None:
    facts = host.load_plugins().collect_facts()
    book = rules.load_default(tuple(advisor_rules()), facts)
    tried = cases.run_examples(book, facts, OWN)
    assert len(tried) == 104
    assert [one for one in tried if not one.has_passed] == []
    assert check_rule_file(advisor_rules()[0], facts) == []


def written(folder: Path, n: int, ranks: int, communication: float) -> Path:
    """A run of ``2e-6 n^3 / ranks`` seconds that also communicates, as a profile of gapwatch."""
    work = 2e-6 * n**3 / ranks
    nothing = {name: [0.0, 0.0] for name in ("wait_s", "sync_s", "io_s")}
    each = {"wall_s": [work, communication], "cpu_s": [work, 0.0], "transfer_s": [0.0, communication], **nothing}
    document = {
        "schema": "gapwatch/profile/1", "program": "solver", "run": f"{n}-{ranks}", "reader": "test",
        "actual_s": work + communication, "processors": [{"rank": rank} for rank in range(ranks)],
        "regions": [{"name": "solve"}, {"name": "MPI_Allreduce"}], "parameters": {"N": n}, "cores": ranks,
        "phases": [{"name": "step", "kind": "parallel", "regions": [0, 1], "closed_by": "MPI_Allreduce",
                    **{name: [[[s]] * ranks for s in row] for name, row in each.items()}}],
        "status": dict.fromkeys(each, "measured"),
    }  # fmt: skip
    (path := folder / f"run-{ranks}.json").write_text(json.dumps(document))
    return path


def test_advice_says_what_wins_little_today_and_much_at_the_target(tmp_path: Path) -> None:
    """Communication of 0.025 P seconds is half a per cent of the run today, and half of it at the target."""
    paths = [written(tmp_path, 512, ranks, 0.025 * ranks) for ranks in (1, 2, 4, 8)]
    done = cli.run("advise", *map(str, paths), "--target", "P=128", "--format", "markdown", home=tmp_path)
    assert done.returncode == 0, done.stderr
    page = done.stdout.decode()
    assert "Change the communication pattern before there are many ranks (T-1)" in page
    assert "takes 0.6% of this run, but will take 45% at P=128" in page
    assert "save little here and much there" in page
    plain = cli.run("advise", str(paths[-1]), "--format", "json", home=tmp_path)
    assert "T-1" not in {one["action"] for one in json.loads(plain.stdout)["recommendations"]}


def test_a_stated_target_is_shown_beside_the_run(tmp_path: Path) -> None:
    paths = [written(tmp_path, 512, ranks, 0.025 * ranks) for ranks in (1, 2, 4, 8)]
    done = cli.run("advise", *map(str, paths), "--target", "P=512", "--format", "json", home=tmp_path)
    (item,) = json.loads(done.stdout)["recommendations"]
    assert item["target"]["point"] == "P=512"
    assert item["target"]["seconds"] > 5 * item["ceiling_s"]
    page = cli.run("advise", *map(str, paths), "--target", "P=512", home=tmp_path).stdout.decode()
    assert " at P=512, 200 ms in this run" in page
    assert "At P=512 the run will take" in page
    assert "next: gapwatch advise --target" not in page


def test_what_overtakes_at_how_many_ranks_is_told() -> None:
    """0.2 * 2e-9 n^3 / P of imbalance against log2 P ms of communication."""
    now = replace(run(512, 8), parameters={"N": 512.0, "target": "P=512"})
    found = {each.subject: each for each in advisor_findings(now, gaps_of(now), HISTORY)}["gaps"]
    crossing = found.measures["first from C'"]
    assert crossing == pytest.approx(14, abs=5)
    assert f"From P={crossing:g} on C' is the largest gap, before it L." in found.text


def test_advice_and_scale_say_the_same(tmp_path: Path) -> None:
    paths = [written(tmp_path, 512, ranks, 0.025 * ranks) for ranks in (1, 2, 4, 8)]
    scaled = cli.run("scale", *map(str, paths), "--predict", "P=128", "--format", "json", home=tmp_path)
    advised = cli.run("advise", *map(str, paths), "--target", "P=128", "--format", "json", home=tmp_path)
    tables = {part.get("title"): part.get("rows") for part in json.loads(scaled.stdout)["parts"]}
    rows = {row[1]: row[2:] for row in tables["Predictions"]}
    found = {one["subject"]: one["measures"] for one in json.loads(advised.stdout)["findings"]}
    assert rows["run"] == pytest.approx([found["run"][name] for name in ("seconds", "low_s", "high_s")])
    assert rows["gap C'"] == pytest.approx([found["gaps"][f"{name} of C'"] for name in ("seconds", "low", "high")])


def test_a_target_names_machine_and_input() -> None:
    other = [replace(one, profile=replace(one.profile, parameters={**one.profile.parameters, "input": "sphere.dat"},
                                          actual_s=9 * one.profile.actual_s)) for one in HISTORY]  # fmt: skip
    alone, mixed = (
        advisor_findings(now := run(512, 8), gaps_of(now), past)[0].measures["seconds"]
        for past in (HISTORY, [*other, *HISTORY])
    )
    assert alone == mixed
    now = replace(run(512, 8), parameters={**run(512, 8).parameters, "target": "P=64 input=sphere.dat"})
    (whole, *_) = advisor_findings(now, gaps_of(now), [*other, *HISTORY])
    assert whole.measures["seconds"] > 4 * alone
    now = replace(now, parameters={**now.parameters, "target": "P=64 machine=epyc-9654"})
    now = replace(now, machine="ibm-sp2-p2sc")
    told = [replace(one, profile=replace(one.profile, machine="ibm-sp2-p2sc")) for one in HISTORY]
    (whole, *_) = advisor_findings(now, gaps_of(now), told)
    assert "too few runs are known with machine epyc-9654" in whole.text


def test_models_of_kernels() -> None:
    maker = advisor_services()["kernel_model"]
    points = [[n, p] for n in (16.0, 32.0, 64.0) for p in (1.0, 2.0, 4.0)]
    draw = np.random.default_rng(1)
    values = [list(1e-7 * n**3 / p * (1 + draw.uniform(-0.02, 0.02, 3))) for n, p in points]
    values[0] = values[0][:2]
    predict = maker(("N", "P"), points, values)
    assert callable(predict)
    value, low, high = predict([128.0, 8.0])
    assert low <= value <= high
    assert value == pytest.approx(1e-7 * 128**3 / 8, rel=0.05)
    two = target_findings.fit_kernel_model(("N",), [[1.0], [2.0]], [[1.0], [2.0]])([4.0])
    assert two[0] > 0.0
    with pytest.raises(UsageError, match="two points"):
        target_findings.fit_kernel_model(("N",), [[1.0]], [[1.0]])


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("p=64", "At P=64 the run will take"),
        ("ranks=64", "At P=64 the run will take"),
        ("M=3", "Nothing is predicted at the target M=3: the runs have no parameter 'M'"),
    ],
)
def test_a_target_may_call_the_ranks_otherwise_and_no_other_name_is_ignored(target: str, words: str) -> None:
    now = replace(run(512, 8), parameters={"N": 512.0, "target": target})
    found = {each.subject: each for each in advisor_findings(now, gaps_of(now), HISTORY)}
    assert found["run"].text.startswith(words)
    assert found["run"].measures["stated"] == 1.0


def test_seconds_at_the_target_are_told_wherever_an_item_is(tmp_path: Path) -> None:
    paths = [written(tmp_path, 512, ranks, 0.025 * ranks) for ranks in (1, 2, 4, 8)]
    done = cli.run("advise", *map(str, paths), "--target", "P=512", "--format", "sarif", home=tmp_path)
    (found,) = json.loads(done.stdout)["runs"][0]["results"]
    assert " of gap C' (1.33 s at P=512)" in found["message"]["text"]
