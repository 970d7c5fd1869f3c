"""Comparisons read a part of each run, and say what they would say of the whole."""

from __future__ import annotations

import math
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from stored_runs import ADVICE, unit

from advisor.advice.earlier_runs import find_new_recommendations
from advisor.analysis.comparison import compare_builds
from advisor.history.access import open_writer
from advisor.history.build_comparison import compare_stored_builds
from advisor.history.runs import RunStore
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.history.location import HistoryLocation

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def runs(place: HistoryLocation) -> Iterator[RunStore]:
    writer = open_writer(place)
    with writer.transaction() as connection:
        for number in range(9):
            longer = 1.0 + 0.01 * (number % 3) + 0.2 * (number // 3)
            profile = replace(ADVICE.profile, run=str(number), build="abc"[number // 3], actual_s=47.0 * longer)
            gaps = tuple(
                replace(gap, regions=tuple(replace(share, seconds=share.seconds * longer) for share in gap.regions))
                for gap in ADVICE.gaps
            )
            RunStore(connection).add_run(replace(ADVICE, profile=profile, gaps=gaps), [unit(str(number))], NOW)
    yield RunStore(writer.connection)
    writer.close()


def test_a_comparison_is_that_of_the_whole_advice(runs: RunStore) -> None:
    found = compare_stored_builds(runs, "a", "b")
    before, after = ([runs.load_advice(number) for number in side] for side in ((1, 2, 3), (4, 5, 6)))
    whole = compare_builds(before, after, [[runs.load_advice(number) for number in (7, 8, 9)]])
    assert found.comparison == replace(whole, before="a", after="b")
    assert any(change.places for change in found.comparison.changes)
    assert found.after[-1].recommendations == after[-1].recommendations
    assert find_new_recommendations(after[-1], found.before) == find_new_recommendations(after[-1], before)
    assert not any(one.how for one in found.before[-1].recommendations)


def test_a_summary_is_a_fraction_of_the_advice_and_needs_nothing_else(runs: RunStore) -> None:
    asked = "SELECT length(advice), length(content) FROM runs JOIN summaries ON summaries.run = id WHERE id = 2"
    whole, part = runs._connection.execute(asked).fetchone()
    assert part < whole / 2
    summary, advice = runs.load_summary(2), runs.load_advice(2)
    assert (summary.bounds, summary.grade, summary.verdict) == (advice.bounds, advice.grade, advice.verdict)
    assert [gap.regions for gap in summary.gaps] == [gap.regions for gap in advice.gaps]
    runs._connection.execute("UPDATE runs SET advice = ? WHERE id = 3", (b"\0",))
    assert runs.load_summary(3).profile.run == "2"


def test_without_a_summary_the_advice_tells_it(runs: RunStore) -> None:
    expected = runs.load_summary(1)
    runs._connection.execute("DELETE FROM summaries WHERE run = 1")
    runs._connection.execute("UPDATE summaries SET content = ? WHERE run = 2", (b"\0",))
    runs._connection.execute("UPDATE runs SET stamp = stamp + 1")
    assert runs.load_summary(1) == expected
    assert runs.load_summary(2).profile.run == "1"


def test_a_run_that_is_stored_anew_is_read_anew(runs: RunStore) -> None:
    assert runs.load_summary(1).profile.build == "a"
    anew = replace(ADVICE, profile=replace(ADVICE.profile, run="0", build="other"))
    assert runs.add_run(anew, [unit("0")], NOW) == 1
    assert runs.load_summary(1).profile.build == "other"


def test_numbers_that_json_lacks_are_read(runs: RunStore) -> None:
    without_times = replace(ADVICE, profile=replace(ADVICE.profile, actual_s=math.nan))
    number = runs.add_run(without_times, [unit("other")], NOW)
    assert not runs.load_summary(number).profile.has_run_time


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"7", b"{}", b'{"gaps": 1}', b'{"gaps": [], "profile": []}', b'{"gaps": [3]}']
)
def test_damaged_advice_is_named(runs: RunStore, content: bytes) -> None:
    runs._connection.execute("UPDATE runs SET advice = ? WHERE id = 2", (zlib.compress(content),))
    runs._connection.execute("UPDATE summaries SET content = ? WHERE run = 2", (zlib.compress(content),))
    for load in (runs.load_summary, runs.load_advice):
        with pytest.raises(StoreError, match="the advice on run 2 is damaged"):
            load(2)
    for latest in (runs.load_latest_summaries, runs.load_latest_advice):
        found = latest("fig4", 5, (), 4)
        assert [one.profile.run for one in found.advice] == ["0", "2", "3"], "the others are given"
        assert found.problem is not None
        assert found.problem.startswith("the advice on run 2 is damaged: ")
        assert found.problem.endswith("; it is left out")


def test_a_run_that_is_not_there_is_named(runs: RunStore) -> None:
    with pytest.raises(StoreError, match="no run 99"):
        runs.load_summary(99)
