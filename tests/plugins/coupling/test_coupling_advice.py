"""From an experiment to advice: findings, facts, rules and expected gains; and orders of kernels in a trace."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from command_line import run
from coupling_data import RECORDED

import advisor_coupling
from advisor.advice import rules
from advisor.advice.rules import cases
from advisor.extension import host
from advisor.model.records import Bound, Phase, Processor, Profile, Region
from advisor.trace.events import Kind, Location, Role, Trace, TraceRegion
from advisor_coupling import coupling_facts, losses, orders, result_files, results

if TYPE_CHECKING:
    from pathlib import Path

MEASURED = RECORDED / "measured"
ACTIONS = ("K-1", "K-2", "K-3", "K-4", "K-5", "K-6", "K-7", "K-8")


def profile(program: str, actual_s: float = 1.0, **parameters: float) -> Profile:
    work = np.full((1, 1, 1), 0.9 * actual_s)
    phase = Phase("run", "whole", np.array([0]), {"work_s": work})
    return Profile(
        program, "1", "test", actual_s, (Processor(0),), (Region("solve"),), (phase,), {"work_s": "measured"},
        parameters=parameters,
    )  # fmt: skip


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data directory with the recorded experiments in it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "gapwatch" / result_files.FOLDER
    folder.mkdir(parents=True)
    for name in ("adi", "pair"):
        shutil.copy(MEASURED / f"{name}.coupling.json", folder)
    return folder


def test_findings_name_the_pair_and_its_seconds(kept: Path) -> None:
    found = advisor_coupling.advisor_findings(profile("/opt/bin/pair", N=60000.0), (), None)
    (pair,) = [one for one in found if one.kind == "coupling"]
    assert pair.subject == "react_a,react_b"
    assert pair.measures["low"] < pair.measures["coupling"] < pair.measures["high"]
    document = results.read_results(kept / "pair.coupling.json")
    seconds = {(run.kind, run.chain): run.values["seconds"] for run in document.runs if run.case == 2}
    apart = seconds["chain", "react_a"] + seconds["chain", "react_b"]
    assert pair.measures["lost_s"] == pytest.approx(seconds["chain", "react_a,react_b"] - apart, rel=0.1)
    assert "measured at N=60000, P=1)" in pair.text
    (whole,) = [one for one in found if one.kind == "coupling of the loop"]
    assert whole.measures["predicted_1_s"] < 0.5 * whole.measures["measured_s"]
    assert "A run: measured" in whole.text


def test_what_other_programs_took_of_a_run_is_no_part_of_its_loop(kept: Path) -> None:
    """The run was held up: of 10 s it computed 1 s, and the coupling costs its share of that."""
    run = profile("pair", 10.0, N=60000.0)
    computed = (Bound("I", 1.0, "measured"), Bound("actual", 10.0, "measured"))
    (pair,) = [one for one in advisor_coupling.advisor_findings(run, computed, None) if one.kind == "coupling"]
    assert pair.explains[0].seconds == pytest.approx(0.675, rel=0.05)


def test_where_nothing_is_beyond_noise_nothing_is_claimed(kept: Path) -> None:
    found = advisor_coupling.advisor_findings(profile("pair", N=1000.0), (), None)
    assert [one.kind for one in found] == ["coupling of the loop"]
    assert "no coupling beyond noise" in found[0].text
    assert advisor_coupling.advisor_findings(profile("other"), (), None) == []


def test_another_size_is_said_to_be_another(kept: Path) -> None:
    found = advisor_coupling.advisor_findings(profile("adi", N=42.0), (), None)
    assert all("the measured case nearest to this run" in one.text for one in found)


def test_a_file_that_is_damaged_is_as_good_as_none(kept: Path) -> None:
    (kept / "pair.coupling.json").write_text("{")
    assert advisor_coupling.advisor_findings(profile("pair"), (), None) == []


def test_names_of_programs_make_safe_names_of_files() -> None:
    assert result_files.file_name("../../etc/passwd") == "_.._etc_passwd.coupling.json"
    assert result_files.file_name("a b\n") == "a_b_.coupling.json"
    assert result_files.file_name("..") == "program.coupling.json"


def facts_of(run: Profile) -> dict[str, Any]:
    return {fact.name: fact.compute(run, None) for fact in coupling_facts.build_facts() if fact.compute}


def test_facts_without_an_experiment_are_unknown_but_that_there_is_none(kept: Path) -> None:
    found = facts_of(profile("other"))
    assert found.pop("run.coupling_measured") is False
    assert set(found.values()) == {None}


def test_facts_of_the_pair(kept: Path) -> None:
    found = facts_of(profile("pair", N=60000.0))
    assert found["run.coupling_kernels"] == "react_a,react_b"
    assert found["run.coupling_worst"] == pytest.approx(3.1, abs=0.2)
    assert 0.6 < found["run.coupling_lost_share"] < 0.75
    assert found["run.coupling_evicts"] is True
    assert found["run.coupling_shares"] is False
    assert found["run.coupling_communicates"] is False
    assert found["run.coupling_apart"] is False


def test_the_action_names_the_kernels_and_wins_what_their_chain_costs_of_the_run(kept: Path) -> None:
    run = profile("pair", 10.0, N=60000.0)
    known = losses.find_losses(run)
    assert known is not None
    assert known.exact
    (made,) = [one for one in _recommended(run) if one.action == "K-2"]
    assert made.region == "react_a and react_b"
    assert made.basis == "experiment"
    assert made.expected_s == pytest.approx(9 * known.share)  # of the work, nine tenths of the run
    low, high = made.interval_s
    assert low < made.expected_s < high == made.ceiling_s
    assert "Coupling of react_a and react_b costs" in made.why
    (other,) = [one for one in _recommended(profile("pair", 10.0)) if one.action == "K-2"]
    assert other.interval_s[1] - other.interval_s[0] > 1.5 * (high - low)
    assert [one for one in _recommended(profile("other", 10.0)) if one.action in ACTIONS] == []


def _recommended(run: Profile) -> tuple[Any, ...]:
    from advisor.advice import facts, ranking
    from advisor.analysis import bounds, gaps

    found = bounds.compute_bounds(run, None)
    attributed = gaps.attribute_gaps(run, found)
    accounts = gaps.build_accounts(attributed, found, advisor_coupling.advisor_findings(run, found, None))
    extra = coupling_facts.build_facts()
    book = rules.load_default(tuple(advisor_coupling.advisor_rules()), extra)
    sheet = facts.collect_facts(run, found, attributed, None, extra=extra)
    return ranking.rank_matches(rules.match_rules(book, sheet), run, attributed, accounts=accounts).recommendations


def test_the_rules_pass_their_examples_and_are_known_to_the_host() -> None:
    loaded = host.load_plugins()
    extra = loaded.collect_facts()
    book = rules.load_default(tuple(advisor_coupling.advisor_rules()), extra)
    tried = cases.run_examples(book, extra, ACTIONS)
    assert len(tried) >= 20
    assert [one for one in tried if not one.has_passed] == []
    assert {action.id for action in book.actions} >= set(ACTIONS)
    assert [one.problem for one in loaded.plugins if one.name == "coupling"] == [None]


def test_advice_on_the_command_line_shows_the_finding(tmp_path: Path) -> None:
    folder = tmp_path / ".local" / "share" / "gapwatch" / result_files.FOLDER
    folder.mkdir(parents=True)
    shutil.copy(MEASURED / "pair.coupling.json", folder)
    document = {
        "schema": "gapwatch/profile/1", "program": "pair", "run": "1", "reader": "test", "actual_s": 0.15,
        "processors": [{"rank": 0}], "regions": [{"name": "loop"}], "parameters": {"N": 60000},
        "phases": [{"name": "run", "kind": "whole", "regions": [0], "wall_s": [[[0.15]]]}], "status": {},
    }  # fmt: skip
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document))
    done = run("advise", str(path), "--format", "json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    advised = json.loads(done.stdout)
    assert [one["kind"] for one in advised["findings"] if one["plugin"] == "coupling"] == [
        "coupling of the loop", "coupling"
    ]  # fmt: skip
    (made,) = [one for one in advised["recommendations"] if one["action"] == "K-2"]
    assert made["basis"] == "experiment"
    assert made["region"]["name"] == "react_a and react_b"
    assert [part["cause"] for account in advised["explained"] for part in account["parts"]] == ["coupling"]
    assert 0.08 < made["expected_s"] < 0.12


def trace_of(pattern: str, seconds: dict[str, float], repeats: int, noise: float = 0.02) -> Trace:
    """Calls of one-letter kernels on two locations; ``seconds`` by kernel, or by predecessor and kernel."""
    random = np.random.default_rng(3)
    letters = sorted(set(pattern))
    times, kinds, regions, first = [], [], [], [0]
    for _ in range(2):
        now, before = 0.0, ""
        for letter in pattern * repeats:
            took = seconds.get(before + letter, seconds[letter]) * np.exp(noise * random.standard_normal())
            times += [now, now + took]
            kinds += [Kind.ENTER, Kind.LEAVE]
            regions += [letters.index(letter)] * 2
            now, before = now + took + 1e-6, letter
        first.append(len(times))
    empty = np.full(len(times), -1)
    return Trace(
        "toy", "test", (Location("a", 0), Location("b", 1)),
        tuple(TraceRegion(letter, Role.USER) for letter in letters), (), (), np.array(first), np.array(times),
        np.array(kinds, dtype=np.uint8), np.array(regions, dtype=np.int32), empty.astype(np.int32),
        empty.astype(np.int32), empty.astype(np.int32), empty.astype(np.int64), np.zeros(len(times), dtype=np.uint64),
    )  # fmt: skip


def test_a_kernel_that_is_slower_behind_another_one_is_found_in_a_trace() -> None:
    trace = trace_of("abcab" + "cb", {"a": 0.01, "b": 0.01, "c": 0.01, "cb": 0.015}, 30)
    (one,) = orders.estimate_orders(trace)
    assert (one.kernel, one.after, one.instead) == ("b", "c", "a")
    assert one.ratio.low < 1.5 < one.ratio.high
    assert one.seconds == pytest.approx(2 * 30 * 0.005, rel=0.05)
    (found,) = advisor_coupling.advisor_findings(profile("unknown program"), (), trace)
    assert found.kind == "order of kernels"
    assert "estimated from the order in the trace" in found.text


@pytest.mark.parametrize(("noise", "repeats"), [(0.02, 30), (0.5, 30), (0.02, 3)])
def test_no_order_is_blamed_for_noise(noise: float, repeats: int) -> None:
    """Equal times, wide times, or too few calls."""
    slow = {"cb": 0.015} if repeats == 3 else {}
    trace = trace_of("abcabcb", {"a": 0.01, "b": 0.01, "c": 0.01, **slow}, repeats, noise)
    assert orders.estimate_orders(trace) == []


def test_a_single_order_tells_nothing() -> None:
    assert orders.estimate_orders(trace_of("abc", {"a": 0.01, "b": 0.02, "c": 0.01}, 40)) == []
