"""``gapwatch mcp`` as an agent sees it: the client of the SDK over standard input and output."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from command_line import ROOT
from compiled_programs import compile_program
from mcp_client import FIG4, RECORDED, Agent, run_agent

import gapwatch
from advisor.advice.explaining import explain_study
from advisor.agents.advice_answers import build_advice_answer, build_comparison_answer, judge_change
from advisor.agents.answers import LIMIT, build_explanation_answer, count_tokens, encode_answer
from advisor.agents.tools import TOOLS
from advisor.analysis.comparison import Change, Comparison
from advisor.model.records import OTHER_PROGRAMS, Note

if TYPE_CHECKING:
    from pathlib import Path
PROGRAM = """
#include <stdlib.h>
#include <math.h>
int main(int count, char **words) {
    double sum = 0;
    for (long i = 1; i < atol(words[1]); i++) sum += sqrt((double)i);
    return sum < 0;
}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path) -> Path:
    """Where the server starts."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_an_agent_finds_tools_resources_and_the_prompt(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        tools = (await agent.client.list_tools()).tools
        assert {tool.name for tool in tools} == set(TOOLS)
        assert {tool.name for tool in tools if not tool.annotations.read_only_hint} == {"measure", "mark_applied"}
        resources = (await agent.client.list_resources()).resources
        for uri in (*(str(resource.uri) for resource in resources), "gapwatch://rules/A-28"):
            [content] = (await agent.client.read_resource(uri)).contents
            assert len(content.text) > 200
        [prompt] = (await agent.client.list_prompts()).prompts
        [message] = (await agent.client.get_prompt(prompt.name, {"command": "./app"})).messages
        assert "«./app»" in message.content.text
        with pytest.raises(Exception, match="no resource"):
            await agent.client.read_resource("gapwatch://rules/nothing")

    run_agent(use, ROOT, tmp_path)


def test_one_call_says_where_why_how_much_and_what_to_change(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        for path in (RECORDED / "v1-1", ROOT / "examples" / "demo"):
            answer = await agent.call("get_advice", run=str(path), language="c")
            assert count_tokens(answer.text) <= LIMIT
            first = answer.value["items"][0]
            assert first["action"] == "A-28"
            assert first["interval_s"][0] <= first["expected_s"] <= first["interval_s"][1] <= first["ceiling_s"]
            assert first["do"][0]["before"] != first["do"][0]["after"]
        explained = (await agent.call("explain_number", run=str(RECORDED / "v1-1"), what="L")).value
        assert explained["numbers"][0]["formula"] == "IPCOL - IPCO"
        shown = (await agent.call("show_action", action="A-28", language="fortran")).value
        assert shown["do"][0]["language"] == "fortran"
        simulated = (await agent.call("what_if", run=str(RECORDED / "v1-1"), actions=["A-28"])).value
        assert simulated["status"] == "modelled"
        assert simulated["tables"][0]["rows"][0][2] == pytest.approx(0.1668, abs=1e-3)

    run_agent(use, ROOT, tmp_path)


def test_the_reference_client_runs_through_all_tools(tmp_path: Path) -> None:
    """Each tool answers at least once, with what a session would give it, and within the limit of an answer."""
    program = compile_program(tmp_path, "cc", PROGRAM, "-O1", "-g", "-lm")
    command = [f"./{program.name}", "4000000"]
    recorded = str(RECORDED / "v1-1")
    calls: list[tuple[str, dict[str, object]]] = [
        ("measure", {"command": command, "build": "start", "repeats": 2}),
        ("list_runs", {}),
        ("get_advice", {"run": recorded}),
        ("explain_number", {"run": recorded, "what": "A-28"}),
        ("show_action", {"action": "A-28", "language": "c"}),
        ("what_if", {"run": recorded, "actions": ["A-28"]}),
        ("measure", {"command": command, "build": "changed", "repeats": 2}),
        ("compare", {"before": "start", "after": "changed"}),
    ]

    async def use(agent: Agent) -> None:
        for tool, arguments in calls:
            answer = await agent.call(tool, **arguments)
            assert not answer.failed, answer.text
            assert count_tokens(answer.text) <= LIMIT
        missing = await agent.call("mark_applied", item="A-28")
        assert missing.failed, "the run that it is about is not in the history"
        assert "A-28" in missing.text
        assert {tool for tool, _ in calls} | {"mark_applied"} == set(TOOLS)

    run_agent(use, tmp_path, tmp_path / "home", "--root", str(ROOT), "--allow", f"./{program.name}")


def test_before_anything_was_measured_the_agent_is_told_to_measure(tmp_path: Path, home: Path) -> None:
    async def use(agent: Agent) -> None:
        for tool, arguments in (("get_advice", {"run": "1"}), ("compare", {"before": "a", "after": "b"})):
            answer = await agent.call(tool, **arguments)
            assert answer.failed
            assert answer.value["error"] == "«nothing was measured yet; use measure»"

    run_agent(use, tmp_path, home)


def test_what_was_carried_out_is_marked_and_its_gain_kept(tmp_path: Path, home: Path) -> None:
    history = gapwatch.open_history(home / "state")
    for version in ("v1-1", "v1-2", "v1-3"):
        history.store_run(gapwatch.load(RECORDED / version))

    async def use(agent: Agent) -> None:
        [item, *_] = (await agent.call("get_advice", run="1")).value["items"]
        marked = await agent.call("mark_applied", item=item["fingerprint"])
        assert not marked.failed, marked.text
        assert (marked.value["action"], marked.value["state"]) == ("A-28", "applied")
        for version in ("v2-1", "v2-2", "v2-3"):
            history.store_run(gapwatch.load(RECORDED / version))
        builds = [run["build"].strip("«»") for run in (await agent.call("list_runs")).value["runs"]]
        verdict = (await agent.call("compare", before=builds[-1], after=builds[0])).value
        assert verdict["verdict"] == "helped"
        [applied] = verdict["applied"]
        assert (applied["action"], applied["state"]) == ("A-28", "resolved")
        assert applied["realised_s"] == pytest.approx(0.17, abs=0.01)

    run_agent(use, ROOT, home)


def test_what_was_carried_out_before_it_was_marked_keeps_what_it_has_won(tmp_path: Path, home: Path) -> None:
    history = gapwatch.open_history(home / "state")
    for version in ("v1-1", "v1-2", "v1-3", "v2-1", "v2-2", "v2-3"):
        history.store_run(gapwatch.load(RECORDED / version))

    async def use(agent: Agent) -> None:
        [item, *_] = (await agent.call("get_advice", run="1")).value["items"]
        marked = await agent.call("mark_applied", item=item["fingerprint"])
        assert (marked.value["action"], marked.value["state"]) == ("A-28", "resolved")
        assert marked.value["realised_s"] == pytest.approx(0.17, abs=0.01)

    run_agent(use, ROOT, home)


def test_what_does_not_fit_is_counted() -> None:
    """An agent that is not told of the items that were cut believes that there are no others."""
    study = gapwatch.load(RECORDED / "v1-1")._study
    items = tuple(replace(study.advice.recommendations[0], rank=rank) for rank in range(1, 31))
    answer = json.loads(encode_answer(build_advice_answer(replace(study.advice, recommendations=items), study, 10)))
    assert answer["items_in_all"] == 30
    assert f"{10 - len(answer['items'])} of items" in answer["cut"]
    assert encode_answer({"numbers": [{"inputs": list(range(2000))}] * 2}).count("of inputs") == 1


def test_an_explanation_holds_threshold_and_notes(tmp_path: Path) -> None:
    study = gapwatch.load(RECORDED / "v1-1")._study
    numbers = build_explanation_answer(explain_study(study, "A-1").numbers)["numbers"]
    assert all(number["threshold"] and number["notes"] == ["«so the rule is silent here»"] for number in numbers)
    [bound] = build_explanation_answer(explain_study(study, "M").numbers)["numbers"]
    assert bound["value"] is None, "unknown, and not left out"
    assert bound["status"] == "unavailable"


def test_an_action_shown_alone_keeps_its_caveats(tmp_path: Path, home: Path) -> None:
    async def use(agent: Agent) -> None:
        shown = (await agent.call("show_action", action="G-35")).value
        assert shown["why"].endswith("is not accurate enough.")

    run_agent(use, tmp_path, home)


def test_a_proof_is_a_call_only_for_a_command_that_may_run(tmp_path: Path, home: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    document = json.loads(FIG4.read_text(encoding="utf-8"))
    document["build"] = "b"
    for name, command in (("mine", "X=1 mpirun -n 2 ./app 'a b'"), ("hostile", "rm -rf ."), ("broken", "./app '")):
        document["parameters"] = {"command": command}
        (root / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")

    async def use(agent: Agent) -> None:
        mine = (await agent.call("get_advice", run="mine.json")).value
        assert mine["prove"]["measure"]["command"] == ["mpirun", "-n", "2", "./app", "a b"]
        for name in ("hostile", "broken"):
            assert isinstance((await agent.call("get_advice", run=f"{name}.json")).value["prove"], str)

    run_agent(use, root, home, "--allow", "mpirun -n 2 ./app", "--allow", "./app")


def test_an_answer_says_what_is_doubtful_and_where_time_goes(tmp_path: Path) -> None:
    advice = gapwatch.load(RECORDED / "v1-1")
    study = advice._study
    answer = build_advice_answer(study.advice, study, 3, "c")
    assert answer["grade"].startswith("B")
    assert answer["lowest_bound"]["bound"] == "I"
    assert answer["computation"]
    largest = answer["gaps"][0]
    assert largest["gap"] == "L"
    assert largest["where"]
    assert answer["meaning"] == "carry out the first item"
    doubtful = replace(
        study.advice, verdict="insufficient evidence", recommendations=(),
        grade=replace(study.advice.grade, letter="F", notes=(Note("load", "other programs held the cores", 0.9),)),
    )  # fmt: skip
    silent = build_advice_answer(doubtful, study, 3)
    assert silent["doubts"] == ["«other programs held the cores»"]
    assert "measure again" in silent["meaning"]
    small = replace(study.advice.recommendations[0], ceiling_s=0.005)
    little = build_advice_answer(replace(study.advice, recommendations=(small,)), study, 3)
    assert little["meaning"].startswith("no item saves more than 0.9% of the run")


def test_nobody_is_sent_to_a_gap_that_other_programs_made() -> None:
    """On a busy machine waiting for messages is mostly that for cores."""
    study = gapwatch.load(RECORDED / "v1-1")._study
    profile = study.advice.profile
    taken = {OTHER_PROGRAMS: np.full(len(profile.processors), 0.9 * profile.actual_s)}
    busy = replace(
        study.advice, profile=replace(profile, outside=dict(profile.outside) | taken), recommendations=(),
        verdict="insufficient evidence",
    )  # fmt: skip
    answer = build_advice_answer(busy, study, 3)
    assert answer["gaps"][0]["doubtful_s"] == answer["gaps"][0]["seconds"]
    assert answer["meaning"].startswith("other programs may have made most of the largest gap, L: measure again")
    small = replace(study.advice.recommendations[0], ceiling_s=0.04 * profile.actual_s)
    advised = build_advice_answer(replace(busy, verdict="advice", recommendations=(small,)), study, 3)
    assert advised["meaning"] == "carry out the first item", "it is a large part of what the run takes by itself"
    quiet = build_advice_answer(replace(busy, profile=profile), study, 3)
    assert "doubtful_s" not in quiet["gaps"][0]
    assert "begin where the largest gap lies" in quiet["meaning"]


def test_a_change_is_measured_and_judged(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "cc", PROGRAM, "-O1", "-lm")

    async def use(agent: Agent) -> None:
        slow = await agent.call("measure", command=[f"./{program.name}", "60000000"], build="start", repeats=3)
        assert not slow.failed, slow.text
        assert [run["run"] for run in slow.value["runs"]] == [1, 2, 3]
        fast = await agent.call("measure", command=[f"./{program.name}", "6000000"], build="fewer", repeats=3)
        verdict = (await agent.call("compare", before="start", after="fewer")).value
        assert verdict["verdict"] in ("helped", "unsure"), "unsure where other work disturbs the machine"
        assert verdict["speedup"] > 2
        assert verdict["runs"] == [3, 3]
        same = (await agent.call("compare", before="1", after="2")).value
        assert 0.5 < same["speedup"] < 2
        listed = (await agent.call("list_runs")).value
        assert len(listed["runs"]) == 6
        advice = await agent.call("get_advice", run=f"{fast.value['runs'][-1]['run']}")
        assert not advice.failed, advice.text

    run_agent(use, tmp_path, tmp_path / "home", "--allow", f"./{program.name}")


def build_comparison(before_s: float, after_s: float, noise_s: float | None, beyond: bool | None) -> Comparison:
    change = Change("actual", before_s, after_s, noise_s, beyond)
    return Comparison("app", "a", "b", (5, 5), change, (replace(change, name="I"),))


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (build_comparison(2.0, 1.0, 0.01, True), "helped"),
        (build_comparison(1.0, 2.0, 0.01, True), "hurt"),
        (build_comparison(1.0, 1.001, 0.01, False), "noise"),
        (build_comparison(1.0, 0.5, 0.1, False), "unsure"),
        (build_comparison(1.0, 0.5, None, None), "unknown"),
    ],
)
def test_a_comparison_is_judged_by_the_run_time(found: Comparison, verdict: str) -> None:
    assert judge_change(found)[0] == verdict
    assert build_comparison_answer(found)["verdict"] == verdict


@pytest.mark.parametrize(("noise_s", "verdict"), [(0.43, "unsure"), (0.05, "noise")])
def test_a_gap_that_moved_is_no_noise_where_the_run_time_cannot_show_it(noise_s: float, verdict: str) -> None:
    found = build_comparison(4.67, 4.66, noise_s, False)
    found = replace(found, changes=(*found.changes, Change("L", 0.35, 0.04, 0.03, True)))
    judged, meaning = judge_change(found)
    assert judged == verdict
    if verdict == "unsure":
        assert meaning.startswith("L shrank by 0.31 s, beyond its noise, but the run time is too noisy to show it: ")
