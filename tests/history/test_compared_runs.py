"""Comparisons read a part of each run, and say what they would say of the whole."""

from __future__ import annotations

import math
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from stored_runs import ADVICE, unit

from advisor.history.build_comparison import compare_stored_builds
from advisor.history.database import HistoryWriter
from advisor.history.runs import RunStore
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[RunStore]:
    writer = HistoryWriter(tmp_path / "state")
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
    part, whole = compare_stored_builds(runs, "a", "b"), compare_stored_builds(runs, "a", "b", whole=True)
    assert part.comparison == whole.comparison
    assert any(change.places for change in part.comparison.changes)
    assert part.after[-1].recommendations == whole.after[-1].recommendations != ()
    assert part.before[-1].recommendations == ()
    assert whole.before[-1].recommendations != ()


def test_numbers_that_json_lacks_are_read(runs: RunStore) -> None:
    without_times = replace(ADVICE, profile=replace(ADVICE.profile, actual_s=math.nan))
    number = runs.add_run(without_times, [unit("other")], NOW)
    assert not runs.load_compared([number])[0].profile.has_run_time


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"7", b"{}", b'{"gaps": 1}', b'{"gaps": [], "profile": []}', b'{"gaps": [3]}']
)
def test_damaged_advice_is_named(runs: RunStore, content: bytes) -> None:
    runs._connection.execute("UPDATE runs SET advice = ? WHERE id = 2", (zlib.compress(content),))
    with pytest.raises(StoreError, match="the advice on run 2 is damaged"):
        runs.load_compared([1, 2])


def test_a_run_that_is_not_there_is_named(runs: RunStore) -> None:
    with pytest.raises(StoreError, match="no run 99"):
        runs.load_compared([99])
