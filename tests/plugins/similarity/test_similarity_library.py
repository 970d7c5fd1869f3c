"""Known workloads: nearest ones, what was tried there, suites, and findings that come of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from similar_advice import advice, item, profile

from advisor import pipeline
from advisor.advice.earlier_runs import AppliedAction
from advisor.extension import host
from advisor.history.run_packing import strip_arrays
from advisor.model.errors import InputError, UsageError
from advisor_similarity import library, measures
from advisor_similarity.features import advice_features, compute_distances, compute_features
from advisor_similarity.library import LibraryEntry, TriedActions, find_experience
from advisor_similarity.neighbours import build_findings, compute_pairwise_distances, find_nearest
from advisor_similarity.suite_command import choose_representatives, compute_coverage, find_redundant

EVEN = [[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]]
SKEWED = [[4.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]]


def features_distance(first: dict[str, float], second: dict[str, float]) -> float:
    return float(compute_distances(first, [second])[0])


def test_the_starter_set_is_sound_and_has_every_kernel() -> None:
    entries = library.load_starter()
    assert len({entry.name for entry in entries}) == len(entries) >= 50
    assert set(Counter(entry.program for entry in entries)) == {
        "triad", "matmul", "cg", "spmv", "fft", "quicksort", "mergesort", "stencil", "montecarlo", "bucketsort",
    }  # fmt: skip
    for entry in entries:
        assert sum(entry.fine.values()) == pytest.approx(sum(entry.centroid), rel=1e-5)
        assert entry.operations / entry.cycles == pytest.approx(sum(entry.centroid), rel=1e-3)
        assert entry.smoothability is not None
        assert 0.3 < entry.smoothability <= 1


@pytest.mark.parametrize(("by", "least"), [("mix", 0.98), ("centroid", 0.95), ("tanimoto", 0.95), ("matrix", 0.9)])
def test_precision_at_one_of_the_labelled_set(by: str, least: float) -> None:
    entries = library.load_starter()
    hits = sum(
        find_nearest(entry, [other for other in entries if other is not entry], by, 1)[0].entry.program == entry.program
        for entry in entries
    )
    assert hits / len(entries) >= least


def test_another_compilation_is_recognised_by_its_mix() -> None:
    entries = library.load_starter()
    build = {entry.name: entry.about.split(", ")[1] for entry in entries}
    hits = [
        find_nearest(entry, [other for other in entries if build[other.name] != build[entry.name]], "mix", 1)[
            0
        ].entry.program
        == entry.program
        for entry in entries
    ]
    assert np.mean(hits) >= 0.9


def test_sizes_of_one_kernel_are_nearer_than_other_kernels() -> None:
    known = {entry.name: entry for entry in library.load_starter()}
    small, large = known["triad 10000 10, gcc -O2"], known["triad 40000 10, gcc -O2"]
    quick, merge = known["quicksort 20000, gcc -O2"], known["mergesort 20000, gcc -O2"]
    apart = compute_pairwise_distances([small, large, quick, merge], "mix")
    assert apart[0, 1] < 0.05
    assert apart[0, 2] > 0.5
    assert apart[2, 3] < 0.5 < apart[0, 3]


def test_what_differs_is_named_with_both_values() -> None:
    here = LibraryEntry("a", "a", centroid=(1, 2, 3, 0, 1))
    there = LibraryEntry("b", "b", centroid=(1, 2, 9, 0, 2))
    [found] = find_nearest(here, [there], "centroid")
    assert found.differences == (("fp", 3, 9), ("branch", 1, 2))
    assert found.distance == pytest.approx(
        float(measures.compute_distance(np.array([1.0, 2, 3, 0, 1]), np.array([1.0, 2, 9, 0, 2])))
    )


def test_comparing_what_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no profile"):
        find_nearest(LibraryEntry("a", "a", centroid=(1, 2, 3, 0, 1)), [], "profile")


# -- profiles ----------------------------------------------------------------------------------------------------


@given(st.floats(1e-3, 1e3), st.lists(st.lists(st.floats(0.1, 9), min_size=3, max_size=3), min_size=1, max_size=5))
def test_a_profile_is_at_distance_zero_of_itself_however_long_it_ran(scale: float, work: list[list[float]]) -> None:
    once = advice_features(advice(profile(work)))
    longer = advice_features(advice(profile(work, scale=scale)))
    assert features_distance(once, longer) == pytest.approx(0, abs=1e-9)


def test_profiles_that_lose_time_elsewhere_are_apart() -> None:
    even, skewed = advice_features(advice(profile(EVEN))), advice_features(advice(profile(SKEWED)))
    renamed = advice_features(advice(profile([EVEN[1], EVEN[0]])))
    assert 0.2 < features_distance(even, skewed) <= 1
    assert features_distance(even, renamed) == pytest.approx(0, abs=1e-12)
    assert features_distance({"gap L": 1.0}, {"gap M'": 1.0}) == 1


def test_runs_are_compared_by_what_is_known_of_both() -> None:
    run = advice(profile(SKEWED))
    kept = advice_features(strip_arrays(run))
    assert set(kept) == {name for name in advice_features(run) if name.startswith("gap ")}
    assert features_distance(advice_features(run), kept) == pytest.approx(0, abs=1e-12)
    assert features_distance(kept, advice_features(advice(profile(EVEN)))) > 0.2
    assert features_distance({"gap L": 0.5}, {"region 1": 1.0}) == 1
    both = compute_distances({"gap L": 0.5, "region 1": 1.0}, [{"gap L": 0.5}, {"gap L": 0.5, "region 1": 0.5}])
    assert both[0] == 0 < both[1]


def test_a_run_without_times_has_no_features() -> None:
    with pytest.raises(InputError, match="no times"):
        compute_features(replace(profile(EVEN), actual_s=float("nan")), ())


# -- experience --------------------------------------------------------------------------------------------------


def builds() -> list:
    before = advice(profile(SKEWED, build="1", started="2026-01-01"), item("A-24", 2.0), item("A-30", 0.1))
    after = advice(profile(EVEN, build="2", started="2026-01-02"), item("A-30", 0.1))
    return [before, after]


def test_advice_that_went_away_with_time_was_tried() -> None:
    [tried] = find_experience(builds())
    assert tried.actions == ("A-24",)
    assert tried.won == pytest.approx(3 / 6)
    assert tried.of_ceiling == pytest.approx(3 / 2)
    assert tried.description == "A-24 won 50 %"


def test_runs_of_one_build_and_other_numbers_of_processors_teach_nothing() -> None:
    before, _ = builds()
    fewer = advice(profile([[1.0, 1.0]], build="2"))
    assert find_experience([before, before]) == ()
    assert find_experience([before, fewer]) == ()
    assert find_experience([]) == ()


def test_actions_tried_together_are_told_together() -> None:
    assert TriedActions(("A-1", "A-2"), -0.051, 0.2).description == "A-1 and A-2 lost 5 %"


def known_profile(name: str, work: list[list[float]], *tried: TriedActions) -> LibraryEntry:
    return LibraryEntry(name, name, profile=advice_features(advice(profile(work, program=name))), tried=tried)


def test_findings_tell_of_near_programs_only_and_how_sure_that_is() -> None:
    known = [
        known_profile("near", [[4.1, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]], TriedActions(("A-24",), 0.11, 0.5)),
        known_profile("nearer", SKEWED, TriedActions(("A-24",), 0.2, 0.7), TriedActions(("A-1", "A-2"), 0.1, 0.2)),
        known_profile("untried", SKEWED),
        known_profile("far", EVEN, TriedActions(("A-9",), 0.4, 0.9)),
    ]
    run = advice(profile(SKEWED, program="mine"))
    found = build_findings(run.profile, run.gaps, known)
    assert [(one.kind, one.subject) for one in found] == [
        ("similar", "nearer"), ("similar", "near"), ("expectation", "A-24"),
    ]  # fmt: skip
    assert "there A-24 won 11 %" in found[1].text
    expected = found[2].measures
    assert expected["share"] == pytest.approx(0.6)
    assert expected["share_low"] < 0.6 < expected["share_high"] <= 1
    assert expected["times"] == 2
    own = [known_profile("mine", SKEWED, TriedActions(("A-24",), 0.2, 0.7))]
    assert build_findings(run.profile, run.gaps, own) == []


def test_a_run_of_which_nothing_is_known_resembles_nothing() -> None:
    run = advice(profile(SKEWED))
    bare = replace(run.profile, phases=())
    assert build_findings(bare, (), [known_profile("near", SKEWED, TriedActions(("A-24",), 0.11, 0.5))]) == []


def test_what_was_applied_to_other_programs_is_known_from_the_history() -> None:
    before = strip_arrays(advice(profile(SKEWED, program="other")))
    known = library.build_experienced([AppliedAction("A-24", before, 0.66, 1.5)])
    assert [entry.name for entry in known] == ["other before A-24"]
    assert known[0].tried[0].description == "A-24 won 11 %"
    run = advice(profile(SKEWED, program="mine", scale=7.0))
    near, expected = build_findings(run.profile, run.gaps, known)
    assert near.text == "behaves like other before A-24 (distance 0.00): there A-24 won 11 %"
    assert expected.measures["share"] == pytest.approx(0.44)
    assert (expected.measures["share_low"], expected.measures["share_high"]) == (0, 1)


def test_what_was_won_in_a_similar_program_is_expected_in_the_advice() -> None:
    class Told:
        problems = ()

        def load_advice(self, program: str) -> tuple[()]:
            return ()

        load_summaries = load_advice

        def load_won_shares(self, program: str) -> dict[str, tuple[float, ...]]:
            return {}

        def load_run_times(self, program: str, ranks: int) -> tuple[()]:
            return ()

        def find_applied_actions(self) -> tuple[AppliedAction, ...]:
            return known

    known: tuple[AppliedAction, ...] = ()
    loaded, run = host.load_plugins(), [Path(__file__).parents[2] / "profiles" / "fig5.json"]
    first = pipeline.advise(run, pipeline.Options(), loaded, Told())
    action = next(one.action for one in first.recommendations if one.basis is None)
    other = strip_arrays(replace(first, profile=replace(first.profile, program="other")))
    known = (AppliedAction(action, other, 0.9, 1.0),)
    found = pipeline.advise(run, pipeline.Options(), loaded, Told())
    items = [one for one in found.recommendations if one.action == action]
    assert [(one.basis, one.expected_s) for one in items] == [("similar", 0.9 * one.ceiling_s) for one in items]
    assert any(f"there {action} won" in one.text for one in found.findings)


def test_an_action_that_lost_is_expected_to_lose() -> None:
    known = [known_profile("other", SKEWED, TriedActions(("A-24",), -0.1, -0.2))]
    run = advice(profile(SKEWED))
    expected = build_findings(run.profile, run.gaps, known)[1].measures
    assert expected["share_low"] == expected["share"] == pytest.approx(-0.2)


# -- the user's library --------------------------------------------------------------------------------------------


def test_what_is_kept_is_read_again_and_united(tmp_path: Path) -> None:
    assert library.load_own(tmp_path) == ()
    library.store_entry(tmp_path, LibraryEntry("a", "a", centroid=(1, 2, 3, 0, 1), fine={"load": 2.0}))
    library.store_entry(tmp_path, LibraryEntry("b", "b", profile={"gap L": 0.5}))
    library.store_entry(
        tmp_path, LibraryEntry("a", "a", profile={"gap L": 0.25}, tried=(TriedActions(("A-1",), 0.1, 0.2),))
    )
    found = {entry.name: entry for entry in library.load_own(tmp_path)}
    assert found["a"].centroid == (1, 2, 3, 0, 1)
    assert found["a"].profile == {"gap L": 0.25}
    assert found["a"].tried[0].description == "A-1 won 10 %"
    assert found["b"].centroid == ()


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '[{"name": "a"}]', '[{"name": "a", "program": "a", "centroid": [1, 2]}]',
             '[{"name": "a", "program": "a", "centroid": [1, 2, 3, -4, 5]}]',
             '[{"name": "a", "program": "a", "centroid": [1, 2, 3, 4, 5], "seconds": {"epyc": 0}}]'],
)  # fmt: skip
def test_a_damaged_library_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / library.OWN).write_text(text)
    with pytest.raises(InputError, match=library.OWN):
        library.load_own(tmp_path)


# -- suites --------------------------------------------------------------------------------------------------------

LINE = np.abs(np.subtract.outer([0.0, 0.01, 0.5, 0.51, 1.0], [0.0, 0.01, 0.5, 0.51, 1.0]))


def test_coverage_is_the_way_to_the_nearest_member() -> None:
    found = compute_coverage(LINE, [0, 2], np.ones(5))
    assert found.largest == pytest.approx(0.5)
    assert found.farthest == 4
    assert found.mean == pytest.approx((0 + 0.01 + 0 + 0.01 + 0.5) / 5)


def test_coverage_counts_workloads_by_their_weight_in_the_mix() -> None:
    found = compute_coverage(LINE, [0, 2], np.array([0.0, 3.0, 0.0, 1.0, 0.0]))
    assert found.mean == pytest.approx(0.01)
    assert found.largest == pytest.approx(0.01)
    assert choose_representatives(LINE, 1, np.array([0.0, 0.0, 0.0, 1.0, 5.0])) == [4]
    assert choose_representatives(LINE, 1, np.array([9.0, 0.0, 0.0, 1.0, 5.0])) == [0]


def test_redundant_members_name_who_stands_for_them() -> None:
    assert [(gone, stays) for gone, stays, _ in find_redundant(LINE, [0, 1, 2, 3, 4], 0.1)] in (
        [(1, 0), (3, 2)], [(3, 2), (1, 0)],
    )  # fmt: skip
    assert find_redundant(LINE, [0, 2, 4], 0.1) == []


@given(st.integers(2, 7), st.lists(st.floats(0, 1), min_size=7, max_size=7))
def test_representatives_are_as_good_as_trying_all_pairs(n: int, places: list[float]) -> None:
    from itertools import combinations

    points = np.array(places[:n])
    distances = np.abs(np.subtract.outer(points, points))
    best = min(distances[:, list(pair)].min(axis=1).mean() for pair in combinations(range(n), 2))
    chosen = choose_representatives(distances, 2, np.ones(n))
    assert len(set(chosen)) == 2
    assert distances[:, chosen].min(axis=1).mean() <= 1.5 * best + 1e-9
