"""The life of an item of advice: one line per cause, from the first run that shows it to what its remedy won."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import advice_samples
import pytest

from advisor.history.access import open_writer
from advisor.history.items import ItemStore, _compute_gain, sum_gap_seconds
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.history.access import Writer
    from advisor.history.location import HistoryLocation
    from advisor.model.records import Advice, Bound

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SHOWING = replace(advice_samples.full(), recommendations=(replace(advice_samples.recommendation(), gaps=("L",)),))
SILENT = replace(SHOWING, recommendations=(), verdict="nothing significant")
(ITEM,) = SHOWING.recommendations


@pytest.fixture
def writer(place: HistoryLocation) -> Iterator[Writer]:
    made = open_writer(place)
    yield made
    made.close()


def states(writer: Writer, *runs: Advice, first: int = 1) -> list[str]:
    """Take in runs one after the other; the state of the item after each."""
    found = []
    for number, advice in enumerate(runs, start=first):
        with writer.transaction() as connection:
            items = ItemStore(connection)
            items.update_items(number, advice, (SHOWING,), NOW)
            found += [item.state for item in items.items_of_program("jacobi")]
    return found


def mark(writer: Writer, state: str, **more: str) -> None:
    with writer.transaction() as connection:
        items = ItemStore(connection)
        items.mark_item(items.find_item(None, ITEM.action), state, NOW, **more)  # type: ignore[arg-type]


def test_an_item_is_new_then_open_then_resolved_then_back(writer: Writer) -> None:
    assert states(writer, SHOWING, SHOWING, SILENT, SILENT, SHOWING) == ["new", "open", "resolved", "resolved", "back"]
    (item,) = ItemStore(writer.connection).items_of_program("jacobi")
    assert (item.first_run, item.last_run, item.gaps) == (1, 5, ("L",))
    steps = writer.connection.execute("SELECT run, state FROM steps ORDER BY id").fetchall()
    assert steps == [(1, "new"), (2, "open"), (3, "resolved"), (5, "back")]


def test_a_run_without_evidence_changes_nothing(writer: Writer) -> None:
    blind = replace(SILENT, verdict="insufficient evidence")
    assert states(writer, SHOWING, blind, SHOWING) == ["new", "new", "open"]


def test_what_is_acknowledged_stays_so_while_it_shows(writer: Writer) -> None:
    states(writer, SHOWING)
    mark(writer, "acknowledged")
    assert states(writer, SHOWING, SILENT, SHOWING, first=2) == ["acknowledged", "resolved", "back"]


def test_what_is_suppressed_comes_back_after_its_day(writer: Writer) -> None:
    states(writer, SHOWING)
    mark(writer, "suppressed", until=(NOW + timedelta(days=1)).date().isoformat(), reason="rewrite is under way")
    assert states(writer, SHOWING, first=2) == ["suppressed"]
    with writer.transaction() as connection:
        ItemStore(connection).update_items(3, SHOWING, (), NOW + timedelta(days=3))
    (item,) = ItemStore(writer.connection).items_of_program("jacobi")
    assert (item.state, item.reason) == ("open", "rewrite is under way")


def test_an_applied_item_gets_what_it_won_beside_what_was_promised(writer: Writer) -> None:
    states(writer, SHOWING)
    mark(writer, "applied")
    gaps = tuple(
        replace(gap, regions=tuple(replace(share, seconds=share.seconds / 4) for share in gap.regions))
        for gap in SILENT.gaps
    )
    states(writer, replace(SILENT, gaps=gaps), first=2)
    (item,) = ItemStore(writer.connection).items_of_program("jacobi")
    before = sum_gap_seconds(SHOWING, item)
    assert before is not None
    assert before > 0
    assert item.state == "resolved"
    assert item.realised_s == pytest.approx(0.75 * before)
    assert item.promised_s == (ITEM.ceiling_s if ITEM.expected_s is None else ITEM.expected_s)


def test_what_an_item_of_computation_won_is_that_of_the_lowest_bound(writer: Writer) -> None:
    """Without operation counts the gaps of computation are part of the first known bound; none is not zero."""
    item = replace(ITEM, gaps=("A", "C", "S", "$"))
    gaps = tuple(gap for gap in SHOWING.gaps if gap.name not in item.gaps)

    def state_bounds(i_s: float) -> tuple[Bound, ...]:
        kept = [one for one in SHOWING.bounds if not one.name.startswith("M")]
        return tuple(replace(one, seconds=i_s) if one.name == "I" else one for one in kept)

    before = replace(SHOWING, gaps=gaps, recommendations=(item,), bounds=state_bounds(0.5))
    with writer.transaction() as connection:
        items = ItemStore(connection)
        items.update_items(1, before, (), NOW)
        items.mark_item(items.find_item(None, item.action), "applied", NOW)
        items.update_items(2, replace(before, recommendations=(), bounds=state_bounds(0.2)), (before,), NOW)
    (won,) = ItemStore(writer.connection).items_of_program("jacobi")
    assert won.realised_s == pytest.approx(0.3)
    assert sum_gap_seconds(replace(before, bounds=()), won) is None
    assert sum_gap_seconds(before, replace(won, gaps=("no such gap",))) is None
    told = replace(before, gaps=(replace(SHOWING.gaps[0], name="C"),))
    assert _compute_gain([before], [told, before], won) is None


def test_a_name_that_fits_none_or_several_shows_the_choices(writer: Writer) -> None:
    other = replace(ITEM, fingerprint="f" * 16, region="smooth")
    states(writer, replace(SHOWING, recommendations=(ITEM, other)))
    items = ItemStore(writer.connection)
    assert items.find_item("jacobi", "fff").region == "smooth"
    assert items.find_item(None, ITEM.action, region="smooth").fingerprint == other.fingerprint
    with pytest.raises(UsageError, match=rf"several items match '{ITEM.action}'; choose one by .* at smooth"):
        items.find_item(None, ITEM.action)
    with pytest.raises(UsageError, match="no item named 'A-99'; most recent: "):
        items.find_item(None, "A-99")
