"""The life of an item of advice: one line per cause, from the first run that shows it to what its remedy won."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import advice_samples
import pytest

from advisor.history.database import Writer
from advisor.history.items import Items, held_s
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from advisor.model.records import Advice

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SHOWING = replace(advice_samples.full(), recommendations=(replace(advice_samples.recommendation(), gaps=("L",)),))
SILENT = replace(SHOWING, recommendations=(), verdict="nothing significant")
(ITEM,) = SHOWING.recommendations


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path)
    yield made
    made.close()


def states(writer: Writer, *runs: Advice, first: int = 1) -> list[str]:
    """Take in runs one after the other; the state of the item after each."""
    found = []
    for number, advice in enumerate(runs, start=first):
        with writer.transaction() as connection:
            items = Items(connection)
            items.update(number, advice, (SHOWING,), NOW)
            found += [item.state for item in items.of("jacobi")]
    return found


def mark(writer: Writer, state: str, **more: str) -> None:
    with writer.transaction() as connection:
        items = Items(connection)
        items.mark(items.named(None, ITEM.action), state, NOW, **more)  # type: ignore[arg-type]


def test_an_item_is_new_then_open_then_resolved_then_back(writer: Writer) -> None:
    assert states(writer, SHOWING, SHOWING, SILENT, SILENT, SHOWING) == ["new", "open", "resolved", "resolved", "back"]
    (item,) = Items(writer.connection).of("jacobi")
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
        Items(connection).update(3, SHOWING, (), NOW + timedelta(days=3))
    (item,) = Items(writer.connection).of("jacobi")
    assert (item.state, item.reason) == ("open", "rewrite is under way")


def test_an_applied_item_gets_what_it_won_beside_what_was_promised(writer: Writer) -> None:
    states(writer, SHOWING)
    mark(writer, "applied")
    gaps = tuple(
        replace(gap, regions=tuple(replace(share, seconds=share.seconds / 4) for share in gap.regions))
        for gap in SILENT.gaps
    )
    states(writer, replace(SILENT, gaps=gaps), first=2)
    (item,) = Items(writer.connection).of("jacobi")
    before = held_s(SHOWING, item)
    assert before > 0
    assert item.state == "resolved"
    assert item.realised_s == pytest.approx(0.75 * before)
    assert item.promised_s == (ITEM.ceiling_s if ITEM.expected_s is None else ITEM.expected_s)


def test_a_name_that_fits_none_or_several_shows_the_choices(writer: Writer) -> None:
    other = replace(ITEM, fingerprint="f" * 16, region="smooth")
    states(writer, replace(SHOWING, recommendations=(ITEM, other)))
    items = Items(writer.connection)
    assert items.named("jacobi", "fff").region == "smooth"
    assert items.named(None, ITEM.action, region="smooth").fingerprint == other.fingerprint
    with pytest.raises(UsageError, match=rf"several items are called '{ITEM.action}'; name one by .* at smooth"):
        items.named(None, ITEM.action)
    with pytest.raises(UsageError, match="no item is called 'A-99'; those seen last: "):
        items.named(None, "A-99")
