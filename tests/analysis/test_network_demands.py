"""What a build asks of a network tells builds apart whose times are too noisy to."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
from build_pairs import make_pair

from advisor.advice.earlier_runs import ComparisonBase
from advisor.analysis.comparison import compare_builds
from advisor.analysis.network_demands import compare_network_demands
from advisor.cli import gates
from advisor.model.errors import GateCrossed

if TYPE_CHECKING:
    from advisor.model.records import Advice

GATE = gates.parse_gate("network")


@cache
def pair(number: int) -> tuple[tuple[Advice, ...], tuple[Advice, ...], bool]:
    return make_pair(number)


def is_crossed(before: tuple[Advice, ...], after: tuple[Advice, ...]) -> bool:
    base = ComparisonBase(before, compare_builds(before, after))
    try:
        gates.check_gates([GATE], after[-1], lambda: base)
    except GateCrossed:
        return True
    return False


def test_forty_pairs_of_builds() -> None:
    """20 send more messages or bytes, without a change of time beyond noise: all are named, and none of the others."""
    judged = [(is_crossed(before, after), more) for before, after, more in map(pair, range(40))]
    assert [crossed for crossed, more in judged if more] == [True] * 20
    assert [crossed for crossed, more in judged if not more] == [False] * 20


def test_the_times_of_these_builds_do_not_tell() -> None:
    told = [compare_builds(before, after).significant_increases for before, after, more in map(pair, range(40)) if more]
    assert sum(map(bool, told)) <= 1


def test_what_was_added_is_said_for_each_step() -> None:
    before, after, _ = pair(2)
    with pytest.raises(
        GateCrossed, match=r"adds \d+ more latencies that nothing hides \(\d+ a step\) since build base-2"
    ):
        gates.check_gates([GATE], after[-1], lambda: ComparisonBase(before, compare_builds(before, after)))


def test_without_repeats_nothing_is_beyond_noise() -> None:
    before, after, _ = pair(2)
    (first, *_) = compare_network_demands(before[:1], after[:1])
    assert first.delta > 0
    assert first.beyond_noise is None
    assert compare_builds(before[:1], after[:1]).added_traffic == ()
    told = compare_network_demands(before[:1], after[:1], [before])
    assert told[2].beyond_noise


def test_runs_without_events_or_on_other_networks_are_not_compared() -> None:
    before, after, _ = pair(2)
    blind = [replace(one, findings=()) for one in before]
    assert compare_network_demands(blind, after) == ()
    other = [
        replace(one, findings=tuple(
            replace(found, measures={**found.measures, "latency_s": 1e-6}) for found in one.findings))
        for one in before
    ]  # fmt: skip
    assert compare_network_demands(other, after) == ()
