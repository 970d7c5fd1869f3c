"""Runs of one build at several sizes and numbers of ranks are a study: nothing is resolved or back because of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import advice_samples

from advisor.advice.earlier_runs import EarlierRuns, find_base
from advisor.history.access import open_writer, read_history
from advisor.history.build_comparison import compare_stored_builds
from advisor.history.items import ItemStore
from advisor.history.run_storage import store_run
from advisor.history.runs import ProfileUnit, RunStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.history.location import HistoryLocation
    from advisor.model.records import Advice

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def run(build: str, size: float, shown: bool, seconds: float = 47.0) -> Advice:
    """A run at one size, which shows its item of advice or none."""
    made = advice_samples.full()
    stated = {"N": size, "target": "N=9"}
    profile = replace(made.profile, run=f"{build}-{size:g}", build=build, actual_s=seconds, parameters=stated)
    items = made.recommendations[:1] if shown else ()
    return replace(made, profile=profile, recommendations=items, verdict="advice" if shown else "nothing significant")


def store(place: HistoryLocation, *runs: Advice) -> list[str]:
    """Store the runs in turn, and return the state of the item after each."""
    writer = open_writer(place)
    states: list[str] = []
    for number, one in enumerate(runs):
        unit = ProfileUnit(Path(f"/data/{number}.json"), "test", f"{one.profile.run}-{number}")
        with writer.transaction() as connection:
            store_run(connection, one, [unit], NOW)
            states += [item.state for item in ItemStore(connection).items_of_program(one.profile.program)][:1]
    writer.close()
    return states


def test_a_study_resolves_nothing(place: HistoryLocation) -> None:
    states = store(place, *(run("v1", size, shown=size > 2) for size in (4, 1, 8, 2, 4, 1)))
    assert set(states) <= {"new", "open"}


def test_the_next_build_resolves_at_the_point_where_the_item_was_seen(place: HistoryLocation) -> None:
    old = [run("v1", size, shown=size > 2) for size in (1, 4, 8)]
    new = [run("v2", size, shown=False) for size in (1, 4, 8)]
    assert store(place, *old, *new)[-3:] == ["open", "open", "resolved"]


def test_what_another_point_shows_is_not_back(new_history: Callable[[], HistoryLocation]) -> None:
    order = [run("v1", 8, shown=True), run("v2", 8, shown=False), run("v2", 4, shown=True), run("v3", 8, shown=False)]
    assert store(new_history(), *order) == ["new", "resolved", "open", "open"]
    again = [run("v1", 8, shown=True), run("v2", 8, shown=False), run("v3", 8, shown=True)]
    assert store(new_history(), *again) == ["new", "resolved", "back"]


def test_sizes_are_no_noise() -> None:
    study = [run("v1", size, shown=False, seconds=10.0 * size) for size in (1, 2, 4, 8)]
    repeats = [run("v1", 8, shown=False, seconds=seconds) for seconds in (80.5, 81.0)]
    now = run("v2", 8, shown=False, seconds=90.0)
    assert EarlierRuns(now.profile, [*study, *repeats], None).noise_s() < 1.0
    base = find_base(now, [*study, *repeats])
    assert base is not None
    assert base.change.runs == (3, 1)
    assert {one.profile.parameters["N"] for one in base.runs} == {8}


def test_builds_are_compared_at_one_point(place: HistoryLocation) -> None:
    old = [run("v1", size, shown=False, seconds=10.0 * size) for size in (1, 2, 8)]
    new = [run("v2", size, shown=False, seconds=11.0 * size) for size in (2, 8, 16)]
    store(place, *old, *new)
    with read_history(place) as connection:
        found = compare_stored_builds(RunStore(connection), "v1", "v2")
    assert [one.profile.run for one in (*found.before, *found.after)] == ["v1-8", "v2-8"]
