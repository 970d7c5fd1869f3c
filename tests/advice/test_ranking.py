"""Ranking: one item for each cause, no promise above its gap, an order that no listing changes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from gap_ceilings import compute_gap_ceiling
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_strategies import profiles

from advisor.advice import facts, ranking, rules
from advisor.advice.ranking import ExpectedGain
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import build_case_sheet, load_cases
from advisor.analysis import bounds, gaps
from advisor.analysis.loads import summarize_loads
from advisor.model import policy
from advisor.model.recommendations import HowTo, Recommendation
from advisor.model.records import Gap, Grade, Note, Profile, Region

if TYPE_CHECKING:
    from advisor.advice.ranking import Ranking
    from advisor.advice.rules.case_records import CasePhase

BOOK = rules.load_default()
GOOD = Grade("A", 1.0, ())


def gaps_of(profile: Profile) -> tuple[Gap, ...]:
    return gaps.attribute_gaps(profile, bounds.compute_bounds(profile))


def matches_of(profile: Profile, book: rules.RuleBook = BOOK) -> rules.RuleMatches:
    found = bounds.compute_bounds(profile)
    return rules.match_rules(book, facts.collect_facts(profile, found, gaps.attribute_gaps(profile, found)))


def ranked(profile: Profile, book: rules.RuleBook = BOOK, **more: object) -> Ranking:
    return ranking.rank_matches(matches_of(profile, book), profile, gaps_of(profile), **more)


@cache
def of(case: str) -> Ranking:
    """The ranking of a case, with the facts that it is given."""
    profile = build_profile(load_cases()[case])
    return ranking.rank_matches(rules.match_rules(BOOK, build_case_sheet(case)), profile, gaps_of(profile))


def first(case: str) -> Recommendation:
    return of(case).recommendations[0]


# ---- what is recommended


@pytest.mark.parametrize(
    ("case", "accepted"),
    [
        ("skewed-load", {"A-28", "A-29"}),
        ("omp-skew", {"A-29", "A-32"}),
        ("omp-skew-4", {"A-29", "A-32"}),
        ("multiphase", {"A-34", "A-35", "A-36"}),
        ("critical-phase", {"A-33", "A-35", "A-36"}),
        ("dynamic", {"A-38", "A-39", "A-40"}),
        ("drifting-load", {"A-37", "A-38"}),
        ("passing-front", {"A-38", "A-39"}),
        ("serial-part", {"G-1", "G-2"}),
        ("mostly-serial", {"A-1", "G-1", "G-2"}),
        ("idle-threads", {"G-3"}),
        ("late-sender", {"G-4"}),
        ("late-receiver", {"G-5"}),
        ("pipeline", {"G-6"}),
        ("small-messages", {"A-16"}),
        ("large-messages", {"A-4", "A-14"}),
        ("many-reductions", {"G-8"}),
        ("many-collectives", {"G-9"}),
        ("alltoall", {"G-11"}),
        ("many-barriers", {"G-13", "G-14"}),
        ("many-forks", {"G-16"}),
        ("io-all", {"G-17"}),
        ("fsync", {"G-19"}),
        ("io-large", {"G-20"}),
        ("oversubscribed", {"G-24"}),
        ("slow-start", {"G-27"}),
        ("slow-end", {"G-28"}),
    ],
)
def test_a_known_fault_comes_first(case: str, accepted: set[str]) -> None:
    assert first(case).action in accepted


def test_a_stated_target_decides_the_order() -> None:
    """Imbalance is worth more today, and takes less of the run that is meant than output."""
    profile = build_profile(load_cases()["io-one-slow"])
    matches = rules.match_rules(BOOK, build_case_sheet("io-one-slow"))
    today = of("io-one-slow").recommendations
    assert [one.gaps for one in today] == [("L",), ("O",)]
    meant = {"seconds": {"L": 0.5, "O": 500.0}, "point": "P=64"}
    for stated, order in ((False, ["A-28", "G-20"]), (True, ["G-20", "A-28"])):
        outlook = ranking.Outlook(stated=stated, **meant)
        found = ranking.rank_matches(matches, profile, gaps_of(profile), outlook=outlook).recommendations
        assert [one.action for one in found] == order
        assert [one.rank for one in found] == [1, 2]
        slow = next(one for one in found if one.gaps == ("O",))
        part = slow.ceiling_s / next(gap.seconds for gap in gaps_of(profile) if gap.name == "O")
        assert slow.target is not None
        assert slow.target.seconds == pytest.approx(500 * part)


@pytest.mark.parametrize("case", ["clean"])
def test_a_clean_run_gets_no_advice(case: str) -> None:
    found = of(case)
    assert found.recommendations == ()
    assert found.total.ceiling_s == 0
    assert found.steps_to_revisit == ()


def test_a_recommendation_says_where_what_and_why() -> None:
    found = first("skewed-load")
    assert found.rank == 1
    assert found.gaps == ("L",)
    assert found.phase == "solve"
    assert (found.region, found.file, found.line) == ("solve", "case.c", 1)
    assert found.processors == ("rank 3",)
    assert found.ceiling_s == pytest.approx(3.0)
    assert {piece.fact for piece in found.evidence} >= {"L", "phase.rank_imbalance"}
    assert all(piece.formula and piece.condition for piece in found.evidence)
    assert found.rule_place.rpartition(":")[0].endswith("4-load-per-phase.yaml")
    assert found.expected_s is found.interval_s is found.basis is None


def test_other_actions_for_a_cause_are_its_alternatives() -> None:
    found = of("skewed-load").recommendations
    named = {found[0].action, *found[0].alternatives}
    assert {"A-28", "A-29"} <= named
    assert len(found) == 1


def test_what_is_multiphase_is_one_item() -> None:
    found = [item for item in of("multiphase").recommendations if item.gaps == ("M'",)]
    assert len(found) == 1
    profile = build_profile(load_cases()["multiphase"])
    total = next(gap.seconds for gap in gaps_of(profile) if gap.name == "M'")
    assert found[0].ceiling_s == pytest.approx(total)


def two_skewed_phases() -> Profile:
    """Two loops in which the same rank has more work than the others."""
    (loop,) = load_cases()["skewed-load"].phases
    return build_profile(replace(load_cases()["skewed-load"], phases=(loop, replace(loop, name="update"))))


def only(*numbers: str) -> rules.RuleBook:
    """The bundled book with these actions alone."""
    return replace(BOOK, actions=tuple(action for action in BOOK.actions if action.id in numbers), off=BOOK.actions)


def test_a_decomposition_is_one_item_and_a_loop_is_one_each() -> None:
    profile = two_skewed_phases()
    ranks = ranked(profile, only("A-28")).recommendations
    assert [(item.action, item.ceiling_s) for item in ranks] == [("A-28", pytest.approx(6.0))]
    assert (ranks[0].phase, ranks[0].more_phases) == ("solve", ("update",))
    loops = ranked(profile, only("A-29")).recommendations
    assert [(item.action, item.phase) for item in loops] == [("A-29", "solve"), ("A-29", "update")]
    assert len({item.fingerprint for item in loops}) == 2
    assert [item.more_phases for item in loops] == [(), ()]


def test_an_action_promises_only_gaps_that_its_conditions_found() -> None:
    found = first("many-reductions")
    action = BOOK.find_action("G-8")
    assert action is not None
    assert set(action.targets) == {"C'", "S'"}
    assert found.gaps == ("C'",)


@pytest.mark.parametrize(("waiting_s", "aims"), [(2.0, {"W", "L"}), (-0.5, {"L"})])
def test_an_action_does_not_aim_at_a_gap_that_is_negative(waiting_s: float, aims: set[str]) -> None:
    profile, sheet = build_profile(load_cases()["skewed-load"]), build_case_sheet("skewed-load")
    seen = {"wait.late_sender_share": 0.6, "wait.share": 0.5, "comm.messages_per_iteration": 4.0}
    sheet = replace(sheet, sites=tuple(site.with_values(seen, {"W": 0.1}) for site in sheet.sites))
    found = [replace(gap, seconds=waiting_s) if gap.name == "W" else gap for gap in gaps_of(profile)]
    (item,) = ranking.rank_matches(rules.match_rules(only("G-4"), sheet), profile, found).recommendations
    assert {*item.gaps} == aims


def test_a_place_and_gap_that_a_better_item_is_about_is_not_shown_again() -> None:
    update = next(phase for phase in load_cases()["neighbour-barriers"].phases if phase.name == "update")
    solve = next(phase for phase in load_cases()["oversubscribed"].phases if phase.name == "solve")
    phases = (replace(update, iterations=1), replace(solve, iterations=5))
    found = ranked(build_profile(replace(load_cases()["clean"], phases=phases))).recommendations
    shown = [(item.phase, name) for item in found for name in item.gaps]
    assert len(shown) == len(set(shown)), shown
    assert "A-36" in {other for item in found for other in item.alternatives}


def test_gaps_below_the_lowest_bound_are_limited_by_it() -> None:
    found = first("memory-bound")
    profile = build_profile(load_cases()["memory-bound"])
    lowest = next(bound.seconds for bound in bounds.compute_bounds(profile) if bound.seconds is not None)
    assert set(found.gaps) <= {"A", "C", "S", "$"}
    assert found.ceiling_s <= lowest + 1e-9
    assert found.confidence <= 0.5
    assert of("memory-bound").total.ceiling_s <= profile.actual_s


# ---- side effects, how-to


def test_side_effects_are_gaps_with_their_seconds() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    seconds = {gap.name: gap.seconds for gap in gaps_of(profile)}
    (found,) = ranked(profile, only("A-29")).recommendations
    assert {effect.gap for effect in found.may_hurt} == {"C'", "S'"}  # I-2 and I-17
    assert "L" not in {effect.gap for effect in (*found.may_help, *found.may_hurt)}
    assert all(effect.seconds == seconds[effect.gap] for effect in (*found.may_help, *found.may_hurt))
    assert all(effect.seconds > 0 for effect in found.may_help)


def test_conflicts_are_those_that_fire_too() -> None:
    fired = {match.action.id for case in load_cases() for match in matches_of(build_profile(load_cases()[case])).fired}
    assert fired
    for case in load_cases():
        mine = {match.action.id for match in matches_of(build_profile(load_cases()[case])).fired}
        for item in of(case).recommendations:
            assert set(item.conflicts) <= mine


@pytest.mark.parametrize(
    ("paradigms", "language", "models", "languages"),
    [
        (("mpi",), "Fortran", {"mpi"}, {"fortran"}),
        (("openmp",), "C", {"openmp"}, {"c"}),
        (("mpi", "openmp"), None, {"mpi", "openmp"}, {"c", "cxx", "fortran"}),
        (("mpi",), "C++", {"mpi"}, None),
    ],
)
def test_how_to_speaks_the_programs_language(
    paradigms: tuple[str, ...], language: str | None, models: set[str], languages: set[str] | None
) -> None:
    from advisor.advice.facts.sheet import find_programming_model
    from advisor.advice.ranking.effects import select_instructions

    profile = replace(build_profile(load_cases()["skewed-load"]), paradigms=paradigms, language=language)
    for action in BOOK.actions:
        found = select_instructions(action, profile, find_programming_model(profile))
        assert found
        offered = {how.model for how in action.instructions}
        if offered & (models | {"any"}):
            assert {how.model for how in found} <= models | {"any"}
        written = {how.language for how in found if how.language}
        spoken = {how.language for how in action.instructions if how.model in {h.model for h in found}}
        if languages is not None and languages & spoken:
            assert written <= languages


def test_languages_are_chosen_from_what_there_is() -> None:
    from advisor.advice.ranking.effects import select_instructions

    action = BOOK.find_action("A-28")
    assert action is not None
    assert [how.language for how in action.instructions] == ["c", "fortran"]
    profile = build_profile(load_cases()["skewed-load"])
    main, addition = action.instructions
    assert select_instructions(action, replace(profile, language="c"), "mpi") == (main,)
    told = select_instructions(action, replace(profile, language="fortran"), "mpi")
    assert told == (HowTo("mpi", main.text), addition), "what is to be done comes first, without code in C"
    assert select_instructions(action, profile, "mpi") == (main, addition)


def test_programs_in_languages_without_openmp_are_not_told_to_use_it() -> None:
    from advisor.advice.ranking.effects import select_instructions

    action = BOOK.find_action("A-29")
    assert action is not None
    assert {how.model for how in action.instructions} >= {"mpi", "openmp"}
    profile = replace(build_profile(load_cases()["skewed-load"]), language="java", paradigms=())
    assert select_instructions(action, profile, None) == ()
    told = select_instructions(action, replace(profile, language="python", paradigms=("mpi", "openmp")), "hybrid")
    assert [how.model for how in told] == ["mpi", "any"], "what is special comes first"
    assert [how.language for how in told] == [None, "python"], "no code in C"


def test_threads_of_a_program_without_openmp_are_not_told_of_schedules() -> None:
    from advisor.advice.ranking.effects import select_instructions

    action = BOOK.find_action("A-29")
    assert action is not None
    profile = build_profile(load_cases()["skewed-load"])
    created = replace(profile, regions=(*profile.regions, Region("pthread_create")))
    assert {how.model for how in select_instructions(action, profile, "openmp")} == {"openmp"}
    assert {how.model for how in select_instructions(action, created, "openmp")} == {"threads"}
    both = replace(created, regions=(*created.regions, Region("omp parallel")))
    assert {how.model for how in select_instructions(action, both, "openmp")} == {"openmp"}


# ---- confidence


def test_a_better_profile_and_a_clearer_value_are_surer() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    sure = ranked(profile, grade=GOOD).recommendations[0].confidence
    doubtful = ranked(profile, grade=Grade("C", 0.6, (Note("short", "short"),))).recommendations[0].confidence
    noisy = ranked(profile, grade=GOOD, noise_s=3.0).recommendations[0].confidence
    assert doubtful == pytest.approx(0.6 * sure, abs=1e-3)
    assert noisy == pytest.approx(0.5 * sure, abs=1e-3)
    assert 0 < noisy < sure <= 1


def test_estimated_seconds_are_less_sure() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    guessed = replace(profile, status={**profile.status, "wait_s": "estimated"})
    assert ranked(guessed).recommendations[0].confidence == pytest.approx(
        0.8 * ranked(profile).recommendations[0].confidence, abs=1e-3
    )


# ---- expected gains


def test_expected_gains_order_and_stay_below_the_ceiling() -> None:
    profile = build_profile(load_cases()["skewed-load"])

    def gain(draft: Recommendation) -> ExpectedGain | None:
        return ExpectedGain(9.0, 1.0, 12.0, "history") if draft.action == "A-29" else None

    found = ranked(profile, gain=gain)
    item = found.recommendations[0]
    assert item.action == "A-29"
    assert item.expected_s == item.ceiling_s == pytest.approx(3.0)
    assert item.interval_s == pytest.approx((3.0 / 9.0, 3.0))  # as unsure as before
    assert item.basis == "history"
    assert found.total.expected_s == pytest.approx(3.0)
    assert found.total.interval_s == pytest.approx((3.0 / 9.0, 3.0))


def test_what_a_simulation_promises_counts_by_the_prior() -> None:
    """It carries changes out to perfection: promising no more than the ceiling it leaves the order as it was."""
    profile = build_profile(load_cases()["skewed-load"])
    plain = ranked(profile).recommendations[0]
    found = ranked(profile, gain=lambda draft: ExpectedGain(draft.ceiling_s, 0.0, draft.ceiling_s, "simulation"))
    assert found.recommendations[0].action == plain.action
    assert found.recommendations[0].expected_s == plain.ceiling_s
    other = ranked(
        profile, gain=lambda draft: ExpectedGain(1e-3, 0, 2e-3, "simulation") if draft.action == plain.action else None
    )
    assert other.recommendations[0].action != plain.action


def test_small_expected_gains_lose_their_place() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    leader = ranked(profile).recommendations[0].action
    found = ranked(
        profile, gain=lambda draft: ExpectedGain(1e-3, 0, 2e-3, "history") if draft.action == leader else None
    )
    assert found.recommendations[0].action != leader
    assert leader in found.recommendations[0].alternatives


# ---- order and steps


def test_order_of_the_steps() -> None:
    profile = late_and_uneven()
    by_seconds, by_steps = ranked(profile).recommendations, ranked(profile, order="steps").recommendations
    assert {item.action for item in by_seconds} == {item.action for item in by_steps}
    assert [item.step for item in by_steps] == sorted(item.step for item in by_seconds)
    assert len({item.step for item in by_steps}) > 1
    assert [item.rank for item in by_steps] == list(range(1, len(by_steps) + 1))


def test_steps_to_revisit_follow_the_arrows() -> None:
    assert of("skewed-load").steps_to_revisit == (1,)
    assert first("small-messages").step == 2
    assert of("small-messages").steps_to_revisit == (3, 4, 6, 7)
    assert 2 in of("memory-bound").steps_to_revisit


def late_and_uneven() -> Profile:
    """Two faults in one run: a serial part and small messages, and uneven work in another phase."""
    chosen = (
        *load_cases()["serial-part"].phases,
        *load_cases()["small-messages"].phases,
        *load_cases()["skewed-load"].phases,
    )
    named = tuple(replace(phase, name=f"{phase.name} {n}") for n, phase in enumerate(chosen))
    return build_profile(replace(load_cases()["clean"], phases=named))


def test_two_faults_are_two_items_and_a_joint_total() -> None:
    profile = late_and_uneven()
    found = ranked(profile)
    assert {("P",), ("C'",)} <= {item.gaps for item in found.recommendations}
    known = {gap.name: gap.seconds for gap in gaps_of(profile)}
    claimed = {name for item in found.recommendations for name in item.gaps}
    assert found.total.ceiling_s <= sum(known[name] for name in claimed) + 1e-9
    assert found.total.ceiling_s >= max(item.ceiling_s for item in found.recommendations)


# ---- ceilings agree with the gaps


@pytest.mark.parametrize("case", sorted(load_cases()))
def test_ceilings_are_those_of_the_gaps(case: str) -> None:
    """For an item about one known gap in one phase the ceiling is that of the gap, or the part that it names."""
    profile = build_profile(load_cases()[case])
    found = gaps_of(profile)
    names = {gap.name for gap in found}
    phases = {phase.name: number for number, phase in enumerate(profile.phases)}
    for item in of(case).recommendations:
        if len(item.gaps) == 1 and item.gaps[0] in names and item.phase in phases and len(profile.phases) == 1:
            most = compute_gap_ceiling(profile, found, item.gaps[0], phases[item.phase])
            (action,) = (each for each in BOOK.actions if each.id == item.action)
            if action.gain is None:
                assert item.ceiling_s == pytest.approx(most)
            else:  # it is about a part of the gap
                assert 0 < item.ceiling_s <= most * (1 + 1e-12)


def assert_sound(profile: Profile, result: Ranking) -> None:
    """Promises hold: none above its gaps, none twice, and all together below the time above the lowest bound."""
    known = {gap.name: gap.seconds for gap in gaps_of(profile)}
    for item in result.recommendations:
        held = sum(max(known[name], 0.0) for name in item.gaps) if set(item.gaps) <= set(known) else profile.actual_s
        assert 0 < item.ceiling_s <= held * (1 + 1e-9) + 1e-12
        assert 0 <= item.confidence <= 1
        assert item.action not in item.alternatives
        assert result.total.ceiling_s >= item.ceiling_s * (1 - 1e-9)
    total = sum(item.ceiling_s for item in result.recommendations)
    assert result.total.ceiling_s <= total * (1 + 1e-9) + 1e-12
    assert result.total.ceiling_s <= profile.actual_s * (1 + 1e-9)
    assert [item.rank for item in result.recommendations] == list(range(1, len(result.recommendations) + 1))
    for phase in {item.phase for item in result.recommendations}:
        claimed = [name for item in result.recommendations if item.phase == phase for name in item.gaps]
        assert len(set(claimed)) == len(claimed), "two items for the same seconds"
    prints = [item.fingerprint for item in result.recommendations]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("case", sorted(load_cases()))
def test_promises_of_the_cases_hold(case: str) -> None:
    assert_sound(build_profile(load_cases()[case]), of(case))


@cache
def _traced_phases() -> list[CasePhase]:
    return [
        phase for case in load_cases().values() if case.ranks == 4 and case.knows == "trace" for phase in case.phases
    ]


def mix_run(chosen: list[tuple[int, int]]) -> Profile:
    """Return a run of phases of the cases, each by its number and with so many iterations."""
    named = tuple(
        replace(_traced_phases()[index], name=f"{_traced_phases()[index].name} {n}", iterations=iterations)
        for n, (index, iterations) in enumerate(chosen)
    )
    return build_profile(replace(load_cases()["clean"], phases=named))


def mixed_runs() -> st.SearchStrategy[Profile]:
    """Runs of several phases of the cases, with other numbers of iterations, in any order."""
    entry = st.tuples(st.integers(0, len(_traced_phases()) - 1), st.integers(1, 12))
    return st.lists(entry, min_size=1, max_size=4).map(mix_run)


@settings(deadline=None, max_examples=60)
@given(mixed_runs())
def test_promises_hold(profile: Profile) -> None:
    result = ranked(profile)
    assert_sound(profile, result)
    assert {item.action for item in ranked(profile, order="steps").recommendations} <= {
        item.action for item in result.recommendations
    }


@settings(deadline=None, max_examples=60)
@given(profiles())
def test_no_profile_is_too_strange_to_rank(profile: Profile) -> None:
    result = ranked(profile)
    assert all(np.isfinite(item.ceiling_s) for item in result.recommendations)
    assert np.isfinite(result.total.ceiling_s)


def comparable(result: Ranking) -> list[tuple[object, ...]]:
    return [
        (item.action, item.gaps, item.phase, round(item.ceiling_s, 6), item.fingerprint, item.alternatives)
        for item in result.recommendations
    ]


@settings(deadline=None, max_examples=40)
@given(mixed_runs(), st.randoms(use_true_random=False))
def test_the_order_of_rules_changes_nothing(profile: Profile, random: object) -> None:
    shuffled = list(BOOK.actions)
    random.shuffle(shuffled)
    assert comparable(ranked(profile, replace(BOOK, actions=tuple(shuffled)))) == comparable(ranked(profile))


@settings(deadline=None, max_examples=40)
@given(mixed_runs(), st.randoms(use_true_random=False))
def test_the_order_of_phases_changes_nothing(profile: Profile, random: object) -> None:
    """Up to ties, which go to the earlier phase."""
    order = random.sample(range(len(profile.phases)), len(profile.phases))
    places = np.argsort(order)
    assert profile.causes is not None
    causes = replace(profile.causes, phase=places[profile.causes.phase])
    moved = replace(profile, phases=tuple(profile.phases[p] for p in order), causes=causes)
    mine, other = ranked(profile), ranked(moved)
    assert mine.total.ceiling_s == pytest.approx(other.total.ceiling_s)
    assert sorted(item.gaps for item in mine.recommendations) == sorted(item.gaps for item in other.recommendations)
    uneven = sorted(load.steady_s + load.dynamic_s for load in summarize_loads(profile).phases)
    if all(less < policy.NEAR_EQUAL * more for less, more in pairwise(uneven) if more > 0):
        assert [item.action for item in mine.recommendations] == [item.action for item in other.recommendations]


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(sorted(name for name, case in load_cases().items() if not case.device_seconds)),
    st.floats(0.95, 1.05),
)
def test_fingerprints_survive_faster_and_slower_runs(case: str, factor: float) -> None:
    profile = build_profile(load_cases()[case])
    phases = tuple(
        replace(
            phase,
            arrays={name: array * factor for name, array in phase.arrays.items()},
            duration_s=None if phase.duration_s is None else phase.duration_s * factor,
            start_s=None if phase.start_s is None else phase.start_s * factor,
        )
        for phase in profile.phases
    )
    causes = profile.causes and replace(profile.causes, seconds=profile.causes.seconds * factor)
    outside = {name: array * factor for name, array in profile.outside.items()}
    scaled = replace(profile, phases=phases, causes=causes, outside=outside, actual_s=profile.actual_s * factor)
    mine, other = ranked(profile).recommendations, ranked(scaled).recommendations
    assert [item.fingerprint for item in mine] == [item.fingerprint for item in other]


@pytest.mark.parametrize(("factor", "first"), [(0.95, "solve"), (1.05, "solve"), (1.2, "solve"), (2.0, "update")])
def test_noise_does_not_choose_between_phases_that_are_alike(factor: float, first: str) -> None:
    profile = two_skewed_phases()
    one, two = profile.phases
    louder = replace(two, arrays={name: array * factor for name, array in two.arrays.items()})
    items = ranked(replace(profile, phases=(one, louder)), only("A-29")).recommendations
    assert [item.phase for item in items] == [first, *({"solve", "update"} - {first})]
    assert [item.rank for item in items] == [1, 2]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(("skewed-load", "serial-part", "small-messages", "io-all", "multiphase")), st.data())
def test_fingerprints_survive_noise(case: str, data: st.DataObject) -> None:
    """Every value of the work changes by up to 5 %, each by another amount."""
    written = load_cases()[case]
    noise = st.floats(0.95, 1.05)
    phases = tuple(
        replace(
            phase,
            work_s=tuple(
                tuple(s * data.draw(noise) for s in (row * (4 // len(row)))) for row in phase.work_s for _ in range(3)
            ),
        )
        for phase in written.phases
    )
    noisy = ranked(build_profile(replace(written, phases=phases))).recommendations
    assert noisy[0].fingerprint == first(case).fingerprint


def test_fingerprints_do_not_depend_on_lines() -> None:
    profile = build_profile(load_cases()["small-messages"])
    moved = replace(profile, regions=tuple(replace(r, line=(r.line or 0) + 7) for r in profile.regions))
    assert [i.fingerprint for i in ranked(moved).recommendations] == [
        i.fingerprint for i in ranked(profile).recommendations
    ]
    renamed = replace(profile, program="other")
    assert ranked(renamed).recommendations[0].fingerprint != ranked(profile).recommendations[0].fingerprint


def test_what_two_items_win_is_not_more_than_their_sum() -> None:
    """A serial part, uneven work that is even over all, and a load that moves: found by the test of all promises."""
    pool = [
        phase for case in load_cases().values() if case.ranks == 4 and case.knows == "trace" for phase in case.phases
    ]
    by_name = {phase.name: phase for phase in pool}
    chosen = (by_name["prepare"], load_cases()["critical-phase"].phases[0], load_cases()["drifting-load"].phases[0])
    named = tuple(replace(phase, name=f"{phase.name} {n}", iterations=5) for n, phase in enumerate(chosen))
    profile = build_profile(replace(load_cases()["clean"], phases=named))
    assert_sound(profile, ranked(profile))
