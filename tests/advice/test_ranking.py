"""Ranking: one item for each cause, no promise above its gap, an order that no listing changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gap_ceilings import compute_gap_ceiling
from ranked_cases import (
    BOOK,
    find_gaps,
    first_item_of,
    keep_rules,
    match_profile,
    rank_case,
    rank_profile,
    two_skewed_phases,
)

from advisor.advice import ranking, rules
from advisor.advice.ranking import ExpectedGain
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import build_case_sheet, load_cases
from advisor.analysis import bounds
from advisor.model.recommendations import HowTo, Recommendation
from advisor.model.records import Grade, Note, Profile, Region

GOOD = Grade("A", 1.0, ())


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
    assert first_item_of(case).action in accepted


def test_a_stated_target_decides_the_order() -> None:
    """Imbalance is worth more today, and takes less of the run that is meant than output."""
    profile = build_profile(load_cases()["io-one-slow"])
    matches = rules.match_rules(BOOK, build_case_sheet("io-one-slow"))
    today = rank_case("io-one-slow").recommendations
    assert [one.gaps for one in today] == [("L",), ("O",)]
    meant = {"seconds": {"L": 0.5, "O": 500.0}, "point": "P=64"}
    for stated, order in ((False, ["A-28", "G-46"]), (True, ["G-46", "A-28"])):
        outlook = ranking.Outlook(stated=stated, **meant)
        found = ranking.rank_matches(matches, profile, find_gaps(profile), outlook=outlook).recommendations
        assert [one.action for one in found] == order
        assert [one.rank for one in found] == [1, 2]
        slow = next(one for one in found if one.gaps == ("O",))
        part = slow.ceiling_s / next(gap.seconds for gap in find_gaps(profile) if gap.name == "O")
        assert slow.target is not None
        assert slow.target.seconds == pytest.approx(500 * part)


@pytest.mark.parametrize("case", ["clean"])
def test_a_clean_run_gets_no_advice(case: str) -> None:
    found = rank_case(case)
    assert found.recommendations == ()
    assert found.total.ceiling_s == 0
    assert found.steps_to_revisit == ()


def test_a_recommendation_says_where_what_and_why() -> None:
    found = first_item_of("skewed-load")
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
    found = rank_case("skewed-load").recommendations
    named = {found[0].action, *found[0].alternatives}
    assert {"A-28", "A-29"} <= named
    assert len(found) == 1


def test_what_is_multiphase_is_one_item() -> None:
    found = [item for item in rank_case("multiphase").recommendations if item.gaps == ("M'",)]
    assert len(found) == 1
    profile = build_profile(load_cases()["multiphase"])
    total = next(gap.seconds for gap in find_gaps(profile) if gap.name == "M'")
    assert found[0].ceiling_s == pytest.approx(total)


def test_a_decomposition_is_one_item_and_a_loop_is_one_each() -> None:
    profile = two_skewed_phases()
    ranks = rank_profile(profile, keep_rules("A-28")).recommendations
    assert [(item.action, item.ceiling_s) for item in ranks] == [("A-28", pytest.approx(6.0))]
    assert (ranks[0].phase, ranks[0].more_phases) == ("solve", ("update",))
    loops = rank_profile(profile, keep_rules("A-29")).recommendations
    assert [(item.action, item.phase) for item in loops] == [("A-29", "solve"), ("A-29", "update")]
    assert len({item.fingerprint for item in loops}) == 2
    assert [item.more_phases for item in loops] == [(), ()]


def test_an_action_promises_only_gaps_that_its_conditions_found() -> None:
    found = first_item_of("many-reductions")
    action = BOOK.find_action("G-8")
    assert action is not None
    assert set(action.targets) == {"C'", "S'"}
    assert found.gaps == ("C'",)


@pytest.mark.parametrize(("waiting_s", "aims"), [(2.0, {"W", "L"}), (-0.5, {"L"})])
def test_an_action_does_not_aim_at_a_gap_that_is_negative(waiting_s: float, aims: set[str]) -> None:
    profile, sheet = build_profile(load_cases()["skewed-load"]), build_case_sheet("skewed-load")
    seen = {"wait.late_sender_share": 0.6, "wait.share": 0.5, "comm.messages_per_iteration": 4.0}
    sheet = replace(sheet, sites=tuple(site.with_values(seen, {"W": 0.1}) for site in sheet.sites))
    found = [replace(gap, seconds=waiting_s) if gap.name == "W" else gap for gap in find_gaps(profile)]
    (item,) = ranking.rank_matches(rules.match_rules(keep_rules("G-4"), sheet), profile, found).recommendations
    assert {*item.gaps} == aims


def test_a_place_and_gap_that_a_better_item_is_about_is_not_shown_again() -> None:
    update = next(phase for phase in load_cases()["neighbour-barriers"].phases if phase.name == "update")
    solve = next(phase for phase in load_cases()["oversubscribed"].phases if phase.name == "solve")
    phases = (replace(update, iterations=1), replace(solve, iterations=5))
    found = rank_profile(build_profile(replace(load_cases()["clean"], phases=phases))).recommendations
    shown = [(item.phase, name) for item in found for name in item.gaps]
    assert len(shown) == len(set(shown)), shown
    assert "A-36" in {other for item in found for other in item.alternatives}


def test_gaps_below_the_lowest_bound_are_limited_by_it() -> None:
    found = first_item_of("memory-bound")
    profile = build_profile(load_cases()["memory-bound"])
    lowest = next(bound.seconds for bound in bounds.compute_bounds(profile) if bound.seconds is not None)
    assert set(found.gaps) <= {"A", "C", "S", "$"}
    assert found.ceiling_s <= lowest + 1e-9
    assert found.confidence <= 0.5
    assert rank_case("memory-bound").total.ceiling_s <= profile.actual_s


# ---- side effects, how-to


def test_side_effects_are_gaps_with_their_seconds() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    seconds = {gap.name: gap.seconds for gap in find_gaps(profile)}
    (found,) = rank_profile(profile, keep_rules("A-29")).recommendations
    assert {effect.gap for effect in found.may_hurt} == {"C'", "S'"}  # I-2 and I-17
    assert "L" not in {effect.gap for effect in (*found.may_help, *found.may_hurt)}
    assert all(effect.seconds == seconds[effect.gap] for effect in (*found.may_help, *found.may_hurt))
    assert all(effect.seconds > 0 for effect in found.may_help)


def test_conflicts_are_those_that_fire_too() -> None:
    fired = {
        match.action.id for case in load_cases() for match in match_profile(build_profile(load_cases()[case])).fired
    }
    assert fired
    for case in load_cases():
        mine = {match.action.id for match in match_profile(build_profile(load_cases()[case])).fired}
        for item in rank_case(case).recommendations:
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
    told = select_instructions(action, replace(created, language="rust", paradigms=()), "openmp")
    assert [(how.model, how.language) for how in told] == [("threads", None)], "threads are the same in any language"
    both = replace(created, regions=(*created.regions, Region("omp parallel")))
    assert {how.model for how in select_instructions(action, both, "openmp")} == {"openmp"}


# ---- confidence


def test_a_better_profile_and_a_clearer_value_are_surer() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    sure = rank_profile(profile, grade=GOOD).recommendations[0].confidence
    doubtful = rank_profile(profile, grade=Grade("C", 0.6, (Note("short", "short"),))).recommendations[0].confidence
    noisy = rank_profile(profile, grade=GOOD, noise_s=3.0).recommendations[0].confidence
    assert doubtful == pytest.approx(0.6 * sure, abs=1e-3)
    assert noisy == pytest.approx(0.5 * sure, abs=1e-3)
    assert 0 < noisy < sure <= 1


def test_estimated_seconds_are_less_sure() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    guessed = replace(profile, status={**profile.status, "wait_s": "estimated"})
    assert rank_profile(guessed).recommendations[0].confidence == pytest.approx(
        0.8 * rank_profile(profile).recommendations[0].confidence, abs=1e-3
    )


# ---- expected gains


def test_expected_gains_order_and_stay_below_the_ceiling() -> None:
    profile = build_profile(load_cases()["skewed-load"])

    def gain(draft: Recommendation) -> ExpectedGain | None:
        return ExpectedGain(9.0, 1.0, 12.0, "history") if draft.action == "A-29" else None

    found = rank_profile(profile, gain=gain)
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
    plain = rank_profile(profile).recommendations[0]
    found = rank_profile(profile, gain=lambda draft: ExpectedGain(draft.ceiling_s, 0.0, draft.ceiling_s, "simulation"))
    assert found.recommendations[0].action == plain.action
    assert found.recommendations[0].expected_s == plain.ceiling_s
    other = rank_profile(
        profile, gain=lambda draft: ExpectedGain(1e-3, 0, 2e-3, "simulation") if draft.action == plain.action else None
    )
    assert other.recommendations[0].action != plain.action


def test_small_expected_gains_lose_their_place() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    leader = rank_profile(profile).recommendations[0].action
    found = rank_profile(
        profile, gain=lambda draft: ExpectedGain(1e-3, 0, 2e-3, "history") if draft.action == leader else None
    )
    assert found.recommendations[0].action != leader
    assert leader in found.recommendations[0].alternatives


# ---- order and steps


def test_order_of_the_steps() -> None:
    profile = late_and_uneven()
    by_seconds, by_steps = rank_profile(profile).recommendations, rank_profile(profile, order="steps").recommendations
    assert {item.action for item in by_seconds} == {item.action for item in by_steps}
    assert [item.step for item in by_steps] == sorted(item.step for item in by_seconds)
    assert len({item.step for item in by_steps}) > 1
    assert [item.rank for item in by_steps] == list(range(1, len(by_steps) + 1))


def test_steps_to_revisit_follow_the_arrows() -> None:
    assert rank_case("skewed-load").steps_to_revisit == (1,)
    assert first_item_of("small-messages").step == 2
    assert rank_case("small-messages").steps_to_revisit == (3, 4, 6, 7)
    assert 2 in rank_case("memory-bound").steps_to_revisit


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
    found = rank_profile(profile)
    assert {("P",), ("C'",)} <= {item.gaps for item in found.recommendations}
    known = {gap.name: gap.seconds for gap in find_gaps(profile)}
    claimed = {name for item in found.recommendations for name in item.gaps}
    assert found.total.ceiling_s <= sum(known[name] for name in claimed) + 1e-9
    assert found.total.ceiling_s >= max(item.ceiling_s for item in found.recommendations)


# ---- ceilings agree with the gaps


@pytest.mark.parametrize("case", sorted(load_cases()))
def test_ceilings_are_those_of_the_gaps(case: str) -> None:
    """For an item about one known gap in one phase the ceiling is that of the gap, or the part that it names."""
    profile = build_profile(load_cases()[case])
    found = find_gaps(profile)
    names = {gap.name for gap in found}
    phases = {phase.name: number for number, phase in enumerate(profile.phases)}
    for item in rank_case(case).recommendations:
        if len(item.gaps) == 1 and item.gaps[0] in names and item.phase in phases and len(profile.phases) == 1:
            most = compute_gap_ceiling(profile, found, item.gaps[0], phases[item.phase])
            (action,) = (each for each in BOOK.actions if each.id == item.action)
            if action.gain is None:
                assert item.ceiling_s == pytest.approx(most)
            else:  # it is about a part of the gap
                assert 0 < item.ceiling_s <= most * (1 + 1e-12)


def test_instructions_for_cuda_are_told_in_hip_where_there_are_none() -> None:
    from advisor.advice.ranking.effects import select_instructions

    action = BOOK.find_action("D-44")
    assert action is not None
    profile = build_profile(load_cases()["skewed-load"])
    on_amd, on_nvidia = (replace(profile, paradigms=(model,), language="c++") for model in ("hip", "cuda"))
    told = select_instructions(action, on_amd, "device")
    assert {how.model for how in told} == {"hip"}
    assert "hipMemcpyAsync(d_table, table, bytes, hipMemcpyHostToDevice, stream);" in (told[0].after or "")
    assert {how.model for how in select_instructions(action, on_nvidia, "device")} == {"cuda"}
    own = BOOK.find_action("D-14")
    assert own is not None
    listed = tuple(how for how in own.instructions if how.model == "hip")
    assert select_instructions(own, on_amd, "device") == listed != ()
