"""Attribution by cause: parts are added up beside the gap, each second once, in whatever order they come."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.gaps import build_accounts
from advisor.model.gap_parts import BASES_BY_CERTAINTY, GapAccount, GapPart
from advisor.model.records import Bound, Finding, Gap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.gap_parts import PartBasis

BOUNDS = (Bound("MACS", 0.5, "measured"), Bound("I", 0.62, "measured"), Bound("actual", 1.0, "measured"))
GAPS = (
    Gap("$", ("$",), "MACS", "I", 0.12, 0.12, "measured"),
    Gap("P+C'", ("P", "C'"), "I", "actual", 0.38, 0.38, "measured"),
)


def part(
    cause: str,
    seconds: float,
    *regions: str,
    gap: str = "$",
    basis: PartBasis = "measured",
    interval_s: tuple[float, float] | None = None,
    general: bool = False,
) -> GapPart:
    return GapPart(gap, cause, seconds, "a test", basis, interval_s, regions, general=general)


def accounts_of(*parts: GapPart) -> dict[str, GapAccount]:
    findings = [Finding("p", "k", str(number), "", explains=(one,)) for number, one in enumerate(parts)]
    return {one.gap: one for one in build_accounts(GAPS, BOUNDS, findings)}


def seconds_of(account: GapAccount) -> list[tuple[str, float]]:
    return [(one.cause, round(one.seconds, 9)) for one in account.parts]


def test_parts_of_different_causes_add_up_and_the_rest_is_unexplained() -> None:
    found = accounts_of(part("coupling", 0.044, "flux", "update"), part("stride", 0.031, "flux"))["$"]
    assert seconds_of(found) == [("stride", 0.031), ("coupling", 0.044)]
    assert found.unexplained_s == pytest.approx(0.045)


def test_a_longer_chain_counts_for_what_it_loses_beyond_the_shorter_one() -> None:
    found = accounts_of(part("coupling", 0.060, "a", "b", "c"), part("coupling", 0.044, "a", "b"))["$"]
    assert seconds_of(found) == [("coupling", 0.044), ("coupling", 0.016)]


def test_the_surer_of_two_that_explain_the_same_seconds_counts_first() -> None:
    guess = part("coupling", 0.05, "a", basis="estimated")
    known = part("coupling", 0.04, "a", interval_s=(0.03, 0.05))
    found = accounts_of(guess, known)["$"]
    assert [(one.basis, round(one.seconds, 9)) for one in found.parts] == [("measured", 0.04), ("estimated", 0.01)]


def test_a_general_part_counts_for_what_no_specific_one_explains() -> None:
    misses = part("cache misses", 0.09, general=True)
    found = accounts_of(misses, part("coupling", 0.044, "a", "b"), part("stride", 0.03, "c"))["$"]
    assert seconds_of(found)[-1] == ("cache misses", 0.016)
    assert accounts_of(misses)["$"].unexplained_s == pytest.approx(0.03)


def test_no_more_is_explained_than_there_is_and_the_interval_shrinks_with_the_part() -> None:
    found = accounts_of(part("coupling", 0.1, "a", interval_s=(0.08, 0.16)), part("stride", 0.1, "b"))["$"]
    assert found.unexplained_s == pytest.approx(0.0)
    assert found.parts[0].interval_s == (0.08, 0.12)
    assert sum(one.seconds for one in found.parts) == pytest.approx(0.12)


def test_parts_below_the_lowest_bound_are_accounted_for_there_and_of_merged_gaps_in_these() -> None:
    found = accounts_of(part("division", 0.2, gap="S"), part("latency", 0.1, gap="C'"))
    assert list(found) == ["MACS", "P+C'"]
    assert found["MACS"].seconds == 0.5
    assert accounts_of(part("no such", 0.1, gap="nothing")) == {}


def test_a_part_of_all_computation_counts_beyond_what_the_gaps_below_explain() -> None:
    found = accounts_of(part("strided loops", 0.6, gap="I"), part("coupling", 0.1, "a"))
    assert [(name, round(account.parts[0].seconds, 9)) for name, account in found.items()] == [("$", 0.1), ("I", 0.52)]


def test_a_run_with_devices_has_a_ladder_of_its_own() -> None:
    bounds = (Bound("K", 0.4, "measured"), Bound("KT", 0.5, "measured"), Bound("actual", 1.0, "measured"))
    copies = Gap("copies", ("copies",), "K", "KT", 0.1, 0.1, "measured")
    parts = (part("pageable memory", 0.06, gap="copies"), part("coupling", 0.1, "a"))
    (account,) = build_accounts((copies,), bounds, [Finding("p", "k", "s", "", explains=parts)])
    assert (account.gap, seconds_of(account)) == ("copies", [("pageable memory", 0.06)])


PARTS = st.builds(
    GapPart,
    st.sampled_from(["$", "C'", "I", "S"]),
    st.sampled_from(["coupling", "stride", "cache misses"]),
    st.floats(0.0, 0.4),
    st.just("a test"),
    st.sampled_from(BASES_BY_CERTAINTY),
    st.none(),
    st.sampled_from([(), ("a",), ("b",), ("a", "b"), ("a", "b", "c")]),
    general=st.booleans(),
)


@given(st.lists(PARTS, max_size=4))
def test_no_order_changes_the_accounts_and_no_second_counts_twice(parts: Sequence[GapPart]) -> None:
    found = accounts_of(*parts)
    assert all(accounts_of(*other) == found for other in permutations(parts))
    for account in found.values():
        assert account.unexplained_s >= -1e-9
    below = sum(one.seconds for name in ("MACS", "$") for one in (found[name].parts if name in found else ()))
    assert below + sum(one.seconds for one in (found["I"].parts if "I" in found else ())) <= 0.62 + 1e-9


@given(st.lists(PARTS, max_size=4), PARTS)
def test_more_evidence_never_explains_less(parts: Sequence[GapPart], more: GapPart) -> None:
    before, after = accounts_of(*parts), accounts_of(*parts, more)
    for name in ("$", "P+C'"):
        explained = [sum(one.seconds for one in (each[name].parts if name in each else ())) for each in (before, after)]
        assert explained[1] >= explained[0] - 1e-9
