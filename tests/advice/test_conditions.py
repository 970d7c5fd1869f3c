"""Conditions: read with every mistake at its place, and three-valued where something is unknown."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.advice.facts.fact_records import Fact, Value
from advisor.advice.facts.source import GapSpan
from advisor.advice.facts.vocabulary import facts_by_name
from advisor.advice.rules.comparisons import parse_comparison
from advisor.advice.rules.conditions import (
    AllOf,
    AnyOf,
    FactIs,
    GapSeconds,
    GapShare,
    Not,
    When,
    compute_truth,
    evaluate_condition,
    iterate_comparisons,
)
from advisor.advice.rules.names import FactName, GapName, RuleNames, use_names
from advisor.model.errors import DocumentError
from advisor.model.recommendations import Need
from advisor.support import documents
from advisor.support.documents import Mark

if TYPE_CHECKING:
    from pathlib import Path

MARK = Mark("rules.yaml", 1, 1)


@dataclass(frozen=True)
class Somewhere:
    """A place with these facts and gaps (seconds, or limits), everything else unknown; the run takes 100 s."""

    facts: dict[str, Value] = field(default_factory=dict)
    gaps: dict[str, tuple[float, float]] = field(default_factory=dict)
    run_s: float = 100.0

    def find_fact(self, name: str) -> tuple[Fact, Value | None, Need]:
        return facts_by_name()[name], self.facts.get(name), Need(name, f"measure {name}")

    def gap_span(self, name: str) -> GapSpan:
        low, high = self.gaps.get(name, (0.0, 100.0))
        return GapSpan(low, high, f"formula of {name}", None if low == high else Need(f"gap {name}", "measure more"))


def fact(name: str, text: str) -> FactIs:
    return FactIs(FactName(name), text, MARK)


def share(gap: str, text: str) -> GapShare:
    return GapShare(GapName(gap), text, MARK)


def all_of(*parts: When) -> AllOf:
    return AllOf(parts, MARK)


def any_of(*parts: When) -> AnyOf:
    return AnyOf(parts, MARK)


def not_(part: When) -> Not:
    return Not(part, MARK)


BALANCED = Somewhere({"phase.imbalance": 1.2, "phase.closed_by": "MPI_Barrier", "phase.is_serial": False})


# ---- one comparison


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        (">= 1.2", True),
        ("> 1.2", False),
        ("<= 1.2", True),
        ("< 1.2", False),
        ("== 1.2", True),
        ("!= 1.2", False),
        (">=1.19", True),
        ("  <  1.3 ", True),
    ],
)
def test_numbers(text: str, truth: bool) -> None:
    assert evaluate_condition(fact("phase.imbalance", text), BALANCED).truth is truth


@pytest.mark.parametrize(
    ("text", "truth"),
    [("MPI_Barrier", True), ("== MPI_Barrier", True), ("!= MPI_Barrier", False), ("MPI_Allreduce", False)],
)
def test_names(text: str, truth: bool) -> None:
    assert evaluate_condition(fact("phase.closed_by", text), BALANCED).truth is truth


@pytest.mark.parametrize(
    ("text", "truth"), [("true", False), ("false", True), ("!= true", True), ("no", True), ("== yes", False)]
)
def test_truth_values(text: str, truth: bool) -> None:
    assert evaluate_condition(fact("phase.is_serial", text), BALANCED).truth is truth


def test_units_are_those_of_the_fact() -> None:
    place = Somewhere({"comm.mean_message_B": 4096.0, "sync.work_between_s": 0.01, "comm.share": 0.031})
    assert evaluate_condition(fact("comm.mean_message_B", ">= 4 KiB"), place).truth
    assert evaluate_condition(fact("sync.work_between_s", "< 11 ms"), place).truth
    assert evaluate_condition(fact("comm.share", ">= 3 %"), place).truth
    assert not evaluate_condition(fact("comm.share", ">= 0.032"), place).truth


@pytest.mark.parametrize(("low", "high", "truth"), [(3.0, 3.0, True), (2.9, 2.9, False), (0.0, 2.9, False)])
def test_gaps_as_share_of_the_run(low: float, high: float, truth: bool) -> None:
    assert evaluate_condition(share("L", ">= 3 %"), Somewhere(gaps={"L": (low, high)})).truth is truth


def test_gaps_in_seconds() -> None:
    place = Somewhere(gaps={"X": (12.0, 12.0)}, run_s=1e6)
    assert evaluate_condition(GapSeconds(GapName("X"), ">= 10 s", MARK), place).truth is True


@pytest.mark.parametrize(
    ("text", "low", "high", "truth"),
    [
        (">= 3 %", 0, 5, None),
        (">= 3 %", 4, 5, True),
        (">= 3 %", 0, 2, False),
        ("< 3 %", 0, 2, True),
        ("== 3 %", 0, 5, None),
        ("== 3 %", 4, 5, False),
        ("!= 3 %", 0, 5, None),
        ("!= 3 %", 4, 5, True),
        (">= 3 %", -5, 0, False),
    ],
)
def test_limits_of_merged_gaps(text: str, low: float, high: float, truth: bool | None) -> None:
    outcome = evaluate_condition(share("M'", text), Somewhere(gaps={"M'": (low, high)}))
    assert outcome.truth is truth
    assert bool(outcome.needs) is (truth is None)


# ---- evidence and needs


def test_evidence_names_value_threshold_and_formula() -> None:
    (piece,) = evaluate_condition(fact("phase.imbalance", ">= 1.10"), BALANCED).evidence
    assert (piece.fact, piece.value, piece.unit, piece.condition) == ("phase.imbalance", 1.2, "", ">= 1.10")
    assert piece.formula == facts_by_name()["phase.imbalance"].formula
    (piece,) = evaluate_condition(share("L", ">= 3 %"), Somewhere(gaps={"L": (5.0, 5.0)})).evidence
    assert (piece.fact, piece.value, piece.unit, piece.condition) == ("L", 0.05, "share", ">= 3 %")
    assert piece.formula == "(formula of L) / run time"
    (piece,) = evaluate_condition(fact("phase.closed_by", "MPI_Barrier"), BALANCED).evidence
    assert piece.condition == "== MPI_Barrier"
    (piece,) = evaluate_condition(not_(fact("phase.is_serial", "true")), BALANCED).evidence
    assert piece.condition == "not == true"


@pytest.mark.parametrize(("text", "value", "relation"), [(">= 3 %", 0.05, ">="), ("< 80 %", 0.70, "<=")])
def test_evidence_of_a_gap_between_limits_says_which_of_them_it_is(text: str, value: float, relation: str) -> None:
    (piece,) = evaluate_condition(share("L", text), Somewhere(gaps={"L": (5.0, 70.0)})).evidence
    assert (piece.value, piece.relation) == (pytest.approx(value), relation)
    (negated,) = evaluate_condition(not_(share("L", text)), Somewhere(gaps={"L": (5.0, 70.0)})).evidence
    assert negated.relation == relation


def test_evidence_of_alternatives_is_what_was_met() -> None:
    both = any_of(fact("phase.imbalance", ">= 1.10"), fact("phase.is_serial", "true"))
    assert [piece.fact for piece in evaluate_condition(both, BALANCED).evidence] == ["phase.imbalance"]


def test_needs_are_what_could_decide() -> None:
    unknown = fact("wait.share", ">= 2 %")
    known, false = fact("phase.imbalance", ">= 1.10"), fact("phase.is_serial", "true")
    assert evaluate_condition(all_of(known, unknown), BALANCED).needs == (Need("wait.share", "measure wait.share"),)
    assert evaluate_condition(all_of(false, unknown), BALANCED).needs == ()
    assert evaluate_condition(any_of(known, unknown), BALANCED).needs == ()
    assert [need.fact for need in evaluate_condition(any_of(false, unknown), BALANCED).needs] == ["wait.share"]
    twice = all_of(unknown, not_(unknown), fact("io.share", "< 1 %"))
    assert [need.fact for need in evaluate_condition(twice, BALANCED).needs] == ["wait.share", "io.share"]


# ---- Kleene's logic

PARTS: dict[bool | None, When] = {
    True: fact("phase.imbalance", ">= 1.10"),
    False: fact("phase.imbalance", ">= 1.30"),
    None: fact("wait.share", ">= 2 %"),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.product((True, False, None), repeat=2)))
def test_truth_tables(first: bool | None, second: bool | None) -> None:
    truths = {first, second}
    conjunction = False if False in truths else None if None in truths else True
    disjunction = True if True in truths else None if None in truths else False
    assert evaluate_condition(all_of(PARTS[first], PARTS[second]), BALANCED).truth is conjunction
    assert evaluate_condition(any_of(PARTS[first], PARTS[second]), BALANCED).truth is disjunction
    assert evaluate_condition(not_(PARTS[first]), BALANCED).truth is (None if first is None else not first)


FACTS = ("phase.imbalance", "wait.share", "io.share")

conditions = st.recursive(
    st.builds(fact, st.just("phase.imbalance"), st.sampled_from((">= 1.1", "< 1.5", "!= 1.2")))
    | st.builds(fact, st.sampled_from(FACTS[1:]), st.sampled_from((">= 10 %", "<= 50 %", "> 0 %")))
    | st.builds(share, st.sampled_from(("L", "D")), st.sampled_from((">= 3 %", "< 10 %"))),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: all_of(*parts))
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: any_of(*parts))
        | st.builds(not_, inner)
    ),
    max_leaves=8,
)
values = {"phase.imbalance": st.floats(1, 2), "wait.share": st.floats(0, 1), "io.share": st.floats(0, 1)}
places = st.builds(
    Somewhere,
    st.fixed_dictionaries({}, optional=values),
    st.dictionaries(st.sampled_from(("L", "D")), st.floats(-5, 20).map(lambda s: (s, s))),
)


@given(conditions, places, st.fixed_dictionaries(values), st.floats(0, 20))
def test_what_is_decided_stays_so_when_more_is_known(
    when: When, place: Somewhere, more: dict[str, float], gap: float
) -> None:
    """No value of an unknown fact changes a decided condition, and with all facts every condition is decided."""
    full = Somewhere({**more, **place.facts}, {"L": (gap, gap), "D": (gap, gap)} | place.gaps)
    before, after = evaluate_condition(when, place), evaluate_condition(when, full)
    assert after.truth is not None
    assert before.truth in (None, after.truth)
    assert bool(before.needs) is (before.truth is None)


@given(conditions, places)
def test_a_condition_is_as_sure_as_half_to_fully(when: When, place: Somewhere) -> None:
    assert 0.5 <= evaluate_condition(when, place).surety <= 1


@given(conditions, places)
def test_truth_without_reasons_is_that_with_reasons(when: When, place: Somewhere) -> None:
    assert compute_truth(when, place) is evaluate_condition(when, place).truth


@given(conditions, places)
def test_de_morgan(when: When, place: Somewhere) -> None:
    if isinstance(when, AllOf):
        assert (
            evaluate_condition(not_(when), place).truth == evaluate_condition(any_of(*map(not_, when.all)), place).truth
        )


# ---- how clear


def test_far_beyond_the_threshold_is_surer() -> None:
    def surety(value: float, text: str = ">= 10 %") -> float:
        return evaluate_condition(fact("wait.share", text), Somewhere({"wait.share": value})).surety

    assert surety(0.1) == 0.5
    assert surety(0.1) < surety(0.12) < surety(0.2) == surety(0.9) == 1.0
    assert surety(0.0, "< 10 %") == 1.0


def test_ratios_begin_at_one_and_whole_numbers_are_exact() -> None:
    def surety(name: str, value: Value, text: str) -> float:
        return evaluate_condition(fact(name, text), Somewhere({name: value})).surety

    assert surety("phase.imbalance", 1.2, ">= 1.10") == pytest.approx(1.0)
    assert surety("phase.imbalance", 1.11, ">= 1.10") == pytest.approx(0.55)
    assert surety("phase.iterations", 3.0, ">= 3") == 1.0
    assert surety("run.oversubscription", 1.0, "<= 1.0") == 1.0
    assert surety("phase.closed_by", "MPI_Barrier", "MPI_Barrier") == 1.0


def test_all_is_as_sure_as_its_weakest_part_and_any_as_its_strongest() -> None:
    place = Somewhere({"wait.share": 0.1, "io.share": 0.5})
    weak, strong = fact("wait.share", ">= 10 %"), fact("io.share", ">= 10 %")
    assert evaluate_condition(all_of(weak, strong), place).surety == 0.5
    assert evaluate_condition(any_of(weak, strong), place).surety == 1.0


# ---- reading


@dataclass(frozen=True, slots=True)
class Rule:
    when: When


def read(tmp_path: Path, text: str) -> When:
    path = tmp_path / "rules.yaml"
    path.write_text(f"when: {text}\n")
    return documents.load_document(path, Rule).when


def mistakes(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, text)
    return [f"{problem.line}:{problem.column} {problem.message}" for problem in caught.value.problems]


def test_nested_conditions_are_read(tmp_path: Path) -> None:
    when = read(
        tmp_path,
        "{all: [{gap: L, share: '>= 3 %'}, {any: [{fact: io.share, is: '> 1 %'}, {not: {gap: X, seconds: '< 1 s'}}]}]}",
    )
    assert isinstance(when, AllOf)
    assert [type(leaf) for leaf in iterate_comparisons(when)] == [GapShare, FactIs, GapSeconds]
    assert [leaf.mark.column for leaf in iterate_comparisons(when)] == [14, 48, 85]


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("{fact: phase.imbalanc, is: '>= 1'}", 14, "no such fact (did you mean 'phase.imbalance'?)"),
        ("{gap: M, share: '>= 3 %'}", 13, """no such gap (did you mean "M'"?)"""),
        ("{gap: Q, share: '>= 3 %'}", 13, "expected one of A, C, S, $, P, C', O, L, M', D, S', W, X"),
        ("{fact: phase.imbalance, is: '1.1'}", 35, "the operator is missing; expected a comparison such as '>= 1.10'"),
        ("{fact: phase.imbalance, is: '=> 1.1'}", 35, "there is no operator '=>'"),
        ("{fact: phase.imbalance, is: '>= 10 %'}", 35, "this fact is a ratio and has no unit"),
        ("{fact: phase.imbalance, is: '>= 1,1'}", 35, "expected a number"),
        ("{fact: comm.share, is: '>= 3 s'}", 30, "expected a share such as '3 %'"),
        ("{fact: comm.share, is: '>= 3'}", 30, "a share without % is between 0 and 1"),
        ("{fact: comm.mean_message_B, is: '>= 4 KB'}", 39, "write kB for 1000 or KiB for 1024 bytes"),
        ("{fact: phase.is_serial, is: '>= true'}", 35, "truth values have no order"),
        ("{fact: phase.is_serial, is: maybe}", 35, "expected true or false"),
        ("{fact: phase.closed_by, is: '> MPI_Barrier'}", 35, "names have no order"),
        ("{fact: phase.closed_by, is: '=='}", 35, "the value to compare with is missing"),
        ("{gap: L, share: '>= 3 s'}", 23, "expected a share"),
        ("{gap: L, seconds: '>= 3 %'}", 25, "expected a time"),
        ("{gap: L, shore: '>= 3 %'}", 16, "did you mean 'share'?"),
        ("{all: []}", 13, "at least one condition"),
        ("{any: []}", 13, "at least one condition"),
        ("{fact: phase.imbalance, is: [1]}", 35, "found a list, expected text"),
    ],
)
def test_mistakes_have_a_place_and_a_hint(tmp_path: Path, text: str, column: int, words: str) -> None:
    (found,) = mistakes(tmp_path, text)
    assert found.startswith(f"1:{column} ")
    assert words in found


def test_all_mistakes_are_found_at_once(tmp_path: Path) -> None:
    text = "{all: [{fact: x.y, is: '> 1'}, {gap: Z, share: '> 1 %'}, {not: {fact: io.share, is: '> 1 s'}}]}"
    assert [found.split()[0] for found in mistakes(tmp_path, text)] == ["1:21", "1:44", "1:91"]


def test_words_of_plugins_are_known_while_they_are_read(tmp_path: Path) -> None:
    extra = Fact("site.load", "s", "phase", ("x",), "measure", "formula", lambda *_: 1.0)
    text = "{fact: site.load, is: '>= 2 ms'}"
    with use_names(RuleNames(facts_by_name([extra]))):
        assert isinstance(read(tmp_path, text), FactIs)
    assert "no such fact" in mistakes(tmp_path, text)[0]


@given(st.text(max_size=30), st.sampled_from(("s", "B", "share", "ratio", "count", "name", "yes/no")))
def test_any_text_is_a_comparison_or_a_clear_error(text: str, unit: str) -> None:
    try:
        found = parse_comparison(text, unit)
    except ValueError as caught:
        words = str(caught)
    else:
        words = found.op
        assert found.op in (">=", "<=", "==", "!=", ">", "<")
    assert words
