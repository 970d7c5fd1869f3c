"""What earlier runs bring to the advice on this one: their history for plugins, and what applied actions have won."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import advice_samples
import pytest
from daemon_runs import BALANCED, CONFIG, Watch, profile
from site_folder import beside_readers, plugin

from advisor import cli, pipeline
from advisor.advice.earlier_runs import AppliedAction, EarlierRuns, pooled_deviation_s
from advisor.advice.ranking import similar_program_gain
from advisor.history.database import NAME, HistoryWriter, open_read_only
from advisor.history.history_queries import StoredHistory
from advisor.history.items import ItemStore
from advisor.history.runs import ProfileUnit, RunStore
from advisor.model.errors import StoreError
from advisor.model.records import Finding
from advisor.pipeline import Options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.history.items import Item
    from advisor.model.records import Advice


FIGURE = Path(__file__).parents[1] / "profiles" / "fig4.json"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
REMEMBERING = """
    @hookimpl
    def advisor_findings(profile, history):
        return [Finding("", "past", one.profile.run, one.verdict) for one in history]
"""


class Told:
    """A past made by hand; counts how often it is looked into."""

    def __init__(self, *runs: Advice, won: Mapping[str, Sequence[float]] | None = None) -> None:
        self.runs, self.shares, self.looks = runs, won or {}, 0
        self.elsewhere: tuple[AppliedAction, ...] = ()
        self.problems: list[str] = []

    def load_advice(self, program: str) -> Sequence[Advice]:
        self.looks += 1
        return self.runs

    load_summaries = load_advice

    def load_won_shares(self, program: str) -> Mapping[str, Sequence[float]]:
        return self.shares

    def load_run_times(self, program: str, ranks: int) -> Sequence[tuple[str, float]]:
        return [(one.profile.build, one.profile.actual_s) for one in self.runs if one.profile.build is not None]

    def find_applied_actions(self) -> Sequence[AppliedAction]:
        return self.elsewhere


def run(name: str, started: str | None = None, actual_s: float = 47.0) -> Advice:
    made = advice_samples.full()
    return replace(made, profile=replace(made.profile, run=name, started=started, actual_s=actual_s))


def names(found: Sequence[Advice]) -> list[str]:
    return [one.profile.run for one in found]


# Which runs are earlier ones


def test_a_run_is_not_its_own_past() -> None:
    told = Told(run("a"), run("b"))
    assert names(EarlierRuns(run("b").profile, (), told).earlier_advice()) == ["a"]
    again = EarlierRuns(run("b", actual_s=46.0).profile, (), told)
    assert names(again.earlier_advice()) == ["a", "b"]


def test_later_runs_are_no_past() -> None:
    told = Told(run("a", "2026-01-01T00:00:00Z"), run("c", "2026-01-03T00:00:00Z"))
    assert names(EarlierRuns(run("b", "2026-01-02T00:00:00Z").profile, (), told).earlier_advice()) == ["a"]


def test_runs_at_hand_are_not_remembered_twice() -> None:
    beside = (run("a", "2026-01-01T00:00:00Z"), run("c", "2026-01-03T00:00:00Z"))
    told = Told(run("b", "2026-01-02T00:00:00Z"), run("a", "2026-01-01T00:00:00Z"))
    earlier = EarlierRuns(run("d", "2026-01-04T00:00:00Z").profile, beside, told)
    assert names(earlier.earlier_advice()) == ["a", "b", "c"]
    assert earlier.earlier_advice()[0] is beside[0]
    assert told.looks == 1


def test_without_times_of_their_own_runs_stay_in_order() -> None:
    earlier = EarlierRuns(run("z").profile, (run("b"),), Told(run("y"), run("x", "2026-01-02T00:00:00Z")))
    assert names(earlier.earlier_advice()) == ["y", "x", "b"]


def test_a_damaged_past_is_a_problem_and_no_end() -> None:
    class Damaged:
        problems: Sequence[str] = ()

        def load_advice(self, program: str) -> Sequence[Advice]:
            raise StoreError("it is torn")

        load_summaries = load_advice

        def load_won_shares(self, program: str) -> Mapping[str, Sequence[float]]:
            raise StoreError("it is torn")

        def load_run_times(self, program: str, ranks: int) -> Sequence[tuple[str, float]]:
            raise StoreError("it is torn")

    advice = pipeline.advise([FIGURE], Options(), beside_readers(Path("/nonexistent")), Damaged())
    assert "the history tells nothing: it is torn" in advice.problems
    assert advice.recommendations


# How noisy its runs are


def test_the_noise_is_the_spread_of_one_build() -> None:
    """By hand: squares of 0.5 and 0.5 around 10.5, none around 20, one degree of freedom."""
    assert pooled_deviation_s([("a", 10.0), ("a", 11.0), ("b", 20.0)]) == pytest.approx(0.5**0.5)
    assert pooled_deviation_s([("a", 10.0), ("b", 20.0)]) == 0.0
    assert pooled_deviation_s([]) == 0.0


def test_repeats_of_a_build_tell_how_far_a_promise_can_be_believed(tmp_path: Path) -> None:
    once = pipeline.advise([FIGURE], Options(), beside_readers(tmp_path)).recommendations
    noisy = [replace(one, profile=replace(one.profile, build="v1")) for one in (run("a"), run("b", actual_s=49.0))]
    told = pipeline.advise([FIGURE], Options(), beside_readers(tmp_path), Told(*noisy)).recommendations
    believed = {one.fingerprint: one for one in told}
    for one in once:
        after = believed[one.fingerprint]
        assert after.ceiling_s == one.ceiling_s
        assert after.confidence == pytest.approx(one.confidence * one.ceiling_s / (one.ceiling_s + 2**0.5), abs=2e-3)


def test_the_history_knows_the_times_of_builds(tmp_path: Path) -> None:
    daemon = Watch(tmp_path)
    for number, build in enumerate(("v1", "v1", "v2")):
        profile(daemon.root / f"{number}.json", build=build, actual_s=47.0 + number)
    profile(daemon.root / "none.json")
    daemon.once()
    past = StoredHistory(daemon.state)
    assert past.load_run_times("fig4", 2) == (("v1", 47.0), ("v1", 48.0), ("v2", 49.0))
    assert past.load_run_times("fig4", 64) == ()
    early = StoredHistory(daemon.state, until=2)
    assert early.load_run_times("fig4", 2) == (("v1", 47.0), ("v1", 48.0)), "what was known when run 2 was told of"
    assert [one.profile.actual_s for one in early.load_advice("fig4")] == [47.0, 48.0]
    assert StoredHistory(tmp_path / "none").load_run_times("fig4", 2) == ()


def test_what_an_action_has_won_is_expected_again(tmp_path: Path) -> None:
    plugin(tmp_path, "sim", "@hookimpl\ndef advisor_expected_gain(): return (0.5, 0.1, 0.9)")
    loaded = beside_readers(tmp_path)
    first = pipeline.advise([FIGURE], Options(), loaded).recommendations[0]
    assert (first.basis, first.expected_s) == ("simulation", 0.5)
    advice = pipeline.advise([FIGURE], Options(), loaded, Told(won={first.action: (0.25, 0.75)}))
    for one in advice.recommendations:
        if one.action == first.action:
            assert (one.basis, one.expected_s) == ("history", pytest.approx(one.ceiling_s / 2))
            assert one.interval_s is not None
            assert one.interval_s[1] == one.ceiling_s
        else:
            assert one.basis == "simulation"
    assert any(one.basis == "history" for one in advice.recommendations)


def store(folder: Path, advice: Advice, number: int) -> None:
    writer = HistoryWriter(folder)
    with writer.transaction() as connection:
        run = RunStore(connection).add_run(advice, (ProfileUnit(folder / f"{number}", "native", f"{number}"),), NOW)
        items = ItemStore(connection)
        before = [RunStore(connection).load_advice(run - 1)] if run > 1 else []
        items.update_items(run, advice, before, NOW)
        if run == 1:
            items.mark_item(items.items_of_program(advice.profile.program)[0], "applied", NOW)
    writer.close()


def test_the_history_knows_what_an_applied_item_has_won(tmp_path: Path) -> None:
    shown = advice_samples.full()
    item = replace(shown.recommendations[0], gaps=("L",), region=None, ceiling_s=2.0)
    gap = next(one for one in shown.gaps if one.name == "L")
    before = replace(shown, recommendations=(item,))
    after = replace(
        before,
        recommendations=(),
        gaps=tuple(replace(one, seconds=gap.seconds - 1.5) if one is gap else one for one in before.gaps),
        verdict="nothing significant",
    )
    store(tmp_path, before, 1)
    past = StoredHistory(tmp_path)
    assert past.load_won_shares("jacobi") == {}
    store(tmp_path, after, 2)
    assert past.load_won_shares("jacobi") == {item.action: (pytest.approx(0.75),)}
    assert past.load_won_shares("another") == {}
    assert len(past.load_advice("jacobi")) == 2
    assert past.load_advice("jacobi", most=1)[0].verdict == "nothing significant"


def test_without_a_history_there_is_no_past(tmp_path: Path) -> None:
    assert StoredHistory(tmp_path).load_advice("jacobi") == ()
    assert StoredHistory(tmp_path / "none").load_won_shares("jacobi") == {}


def test_a_history_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"no database")
    with pytest.raises(StoreError):
        StoredHistory(tmp_path).load_advice("jacobi")


TELLING = """
    @hookimpl
    def advisor_findings(applied):
        return [
            Finding("", "expectation", one.action, "", {"share": one.won_s / one.ceiling_s, **RANGE}) for one in applied
        ]

    RANGE = {"share_low": 0.0, "share_high": 1.0}
"""


def test_what_an_action_has_won_elsewhere_is_expected_where_nothing_else_is_known(tmp_path: Path) -> None:
    plugin(tmp_path, "telling", TELLING)
    loaded = beside_readers(tmp_path)
    first = pipeline.advise([FIGURE], Options(), loaded).recommendations[0]
    told = Told()
    told.elsewhere = (AppliedAction(first.action, run("other"), 3.6, 4.0),)
    found = next(
        one for one in pipeline.advise([FIGURE], Options(), loaded, told).recommendations if one.action == first.action
    )
    assert (found.basis, found.expected_s) == ("similar", pytest.approx(0.9 * found.ceiling_s))
    assert found.interval_s == (0.0, pytest.approx(found.ceiling_s))
    won = Told(won={first.action: (0.5,)})
    won.elsewhere = told.elsewhere
    bases = {one.action: one.basis for one in pipeline.advise([FIGURE], Options(), loaded, won).recommendations}
    assert bases[first.action] == "history"


@pytest.mark.parametrize(
    "measures",
    [
        {},
        {"share": 0.5},
        {"share": 0.5, "share_low": 0.6, "share_high": 1},
        {"share": 2, "share_low": 0, "share_high": 3},
    ],
)
def test_expectations_that_make_no_sense_are_passed_over(measures: dict[str, float]) -> None:
    assert similar_program_gain.collect_won_shares([Finding("", "expectation", "A-1", "", measures)]) == {}
    assert (
        similar_program_gain.collect_won_shares(
            [Finding("", "other", "A-1", "", {"share": 0.5, "share_low": 0, "share_high": 1})]
        )
        == {}
    )


def test_what_was_applied_to_a_program_is_remembered_for_others(tmp_path: Path) -> None:
    before, after = advice_samples.full(), advice_samples.full()
    store(tmp_path, before, 1)
    assert StoredHistory(tmp_path).find_applied_actions() == ()
    faster = tuple(replace(gap, seconds=gap.seconds / 2) for gap in after.gaps)
    profile = replace(after.profile, run="later", build="2")
    store(tmp_path, replace(after, profile=profile, gaps=faster, recommendations=()), 2)
    [one] = StoredHistory(tmp_path).find_applied_actions()
    assert one.before.profile.run == before.profile.run
    assert 0 < one.won_s <= one.ceiling_s
    assert EarlierRuns(before.profile, (), StoredHistory(tmp_path)).applied_actions() == ()
    other = replace(before.profile, program="another")
    assert [entry.action for entry in EarlierRuns(other, (), StoredHistory(tmp_path)).applied_actions()] == [one.action]
    assert StoredHistory(tmp_path / "none").find_applied_actions() == ()


# Who hands it over


def test_plugins_get_the_history_in_the_daemon(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "remembering", REMEMBERING)
    daemon = Watch(tmp_path, replace(CONFIG, plugins=(folder,)))
    for day in (1, 2, 3):
        profile(daemon.root / f"{day}.json", run=f"run {day}", started=f"2026-01-0{day}T00:00:00Z")
        daemon.once()
    past = [[one.subject for one in taken.advice.findings if one.kind == "past"] for taken in daemon.runs]
    assert past == [[], ["run 1"], ["run 1", "run 2"]]


def test_what_is_read_again_is_not_its_own_past(tmp_path: Path) -> None:
    """A file that changed, also the name of its build: its run is replaced, and what it said before is forgotten."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "remembering", REMEMBERING)
    daemon = Watch(tmp_path, replace(CONFIG, plugins=(folder,)))
    for text in ({"build": "v1"}, {"build": "v2", "actual_s": 48.0}):
        profile(daemon.root / "1.json", **text)
        daemon.once()
    past = [[one.subject for one in taken.advice.findings if one.kind == "past"] for taken in daemon.runs]
    assert past == [[], []]
    assert [taken.number for taken in daemon.runs] == [1, 1]
    assert [(entry.number, entry.build) for entry in daemon.entries()] == [(1, "v2")]


def test_a_run_that_is_read_again_does_not_set_the_clock_of_advice_back(tmp_path: Path) -> None:
    daemon = Watch(tmp_path)
    profile(daemon.root / "1.json", build="v1")
    daemon.once()
    action = items_of(daemon)[0].action
    profile(daemon.root / "2.json", build="v2", **BALANCED)
    daemon.once()
    [before] = [one for one in items_of(daemon) if one.action == action]
    assert before.state == "resolved"
    profile(daemon.root / "1.json", build="v1", actual_s=47.5)
    daemon.once()
    assert [entry.actual_s for entry in daemon.entries()] == [47.5, 41.0]
    assert [one for one in items_of(daemon) if one.action == action] == [before]


def items_of(daemon: Watch) -> tuple[Item, ...]:
    connection = open_read_only(daemon.state)
    try:
        return ItemStore(connection).items_of_program("fig4")
    finally:
        connection.close()


def test_the_demo_shows_the_same_whatever_the_history_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "remembering", REMEMBERING)
    monkeypatch.setenv("GAPWATCH_PLUGINS", str(folder))
    daemon = Watch(tmp_path)
    profile(daemon.root / "1.json", program="stencil")
    daemon.once()
    monkeypatch.setenv("GAPWATCH_STATE", str(daemon.state))
    assert cli.main(["demo", "--format", "json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [one for one in findings if one["kind"] == "past"] == []


def test_advise_knows_what_the_daemon_has_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "remembering", REMEMBERING)
    monkeypatch.setenv("GAPWATCH_PLUGINS", str(folder))
    daemon = Watch(tmp_path)
    profile(daemon.root / "1.json", run="run 1")
    daemon.once()
    asked = ["advise", str(FIGURE), "--format", "json"]
    assert cli.main([*asked, "--state", str(daemon.state)]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [one["subject"] for one in findings if one["kind"] == "past"] == ["run 1"]
    assert cli.main(asked) == 0
    assert [one for one in json.loads(capsys.readouterr().out)["findings"] if one["kind"] == "past"] == []
