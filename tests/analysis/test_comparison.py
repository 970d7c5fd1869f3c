"""What changed between builds: the changes add up, and noise is never called a change."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from native_documents import PROFILES
from profile_strategies import profiles

from advisor.analysis.bounds import compute_bounds
from advisor.analysis.comparison import Change, Comparison, check_comparable, compare_builds
from advisor.analysis.gaps import attribute_gaps
from advisor.analysis.loads import summarize_loads
from advisor.cli.compare import build_comparison_report
from advisor.extension.host import load_plugins
from advisor.formats import native
from advisor.model import policy
from advisor.model.errors import UsageError
from advisor.model.records import Advice, Gap, Phase, Processor, Profile, Region, Share
from advisor.model.reports import Text
from advisor.pipeline import Options, study_run

WHOLE = study_run(native.advisor_read(PROFILES / "fig4.json"), Options(), load_plugins()).advice


def advised(profile: Profile) -> Advice:
    """Advice with bounds and gaps only, which is what comparing looks at."""
    summary = summarize_loads(profile)
    levels = compute_bounds(profile, None, summary)
    return replace(WHOLE, profile=profile, bounds=levels, gaps=attribute_gaps(profile, levels, summary))


def run(chance: np.random.Generator, build: str, extra: float = 0.0, noise: float = 0.01) -> Advice:
    """A run of two phases on four ranks, 10 s, with ``extra`` seconds more in the second phase of rank 2."""
    phases = []
    for number in range(2):
        work = np.full((2, 4, 5), 0.5) * chance.normal(1.0, noise, (2, 4, 1))
        if number:
            work[1, 2] += extra / 5
        duration = work.sum(axis=0).max(axis=0)
        phases.append(Phase(f"phase {number}", "parallel", np.array([0, 1]), {"work_s": work}, duration_s=duration))
    total = sum(float(phase.duration_s.sum()) for phase in phases if phase.duration_s is not None)
    profile = Profile(
        program="heat", run=str(chance.integers(10**9)), reader="test", build=build, actual_s=total,
        processors=tuple(Processor(rank) for rank in range(4)), regions=(Region("main"), Region("solve")),
        phases=tuple(phases), status={"work_s": "measured"},
    )  # fmt: skip
    return advised(profile)


@given(st.lists(profiles(), min_size=2, max_size=4))
def test_the_changes_add_up_to_that_of_the_run_time(several: list[Profile]) -> None:
    runs = [advised(profile) for profile in several]
    found = compare_builds(runs[:1], runs[1:])
    assert sum(change.delta_s for change in found.changes) == pytest.approx(found.actual.delta_s, abs=1e-6)
    assert found.actual.before_s == pytest.approx(several[0].actual_s)


def test_with_one_run_of_each_nothing_is_more_than_noise() -> None:
    chance = np.random.default_rng(1)
    found = compare_builds([run(chance, "a")], [run(chance, "b", extra=5.0)])
    assert {change.beyond_noise for change in found.changes} == {None}
    assert found.largest_increase is None
    assert found.actual.delta_s > 4


def test_runs_between_which_nothing_was_changed_show_no_change() -> None:
    chance = np.random.default_rng(2)
    found = compare_builds([run(chance, "a") for _ in range(4)], [run(chance, "b", extra=5.0) for _ in range(4)])
    assert found.largest_increase is not None
    same = found.as_repeats()
    assert (same.repeats, same.largest_increase) == (True, None)
    assert {change.beyond_noise for change in (same.actual, *same.changes)} == {False}
    assert same.actual.delta_s == found.actual.delta_s


def test_each_side_needs_a_run() -> None:
    one = run(np.random.default_rng(4), "a")
    check_comparable(([one], [one]))
    with pytest.raises(UsageError, match="at least one run"):
        check_comparable(([one], []))


def test_builds_without_a_name_are_called_by_their_last_run() -> None:
    chance = np.random.default_rng(3)
    named, unnamed = run(chance, "first"), run(chance, "")
    found = compare_builds([named], [unnamed])
    assert (found.before, found.after) == ("first", f"run {unnamed.profile.run}")


def test_unchanged_builds_raise_no_alarm() -> None:
    chance = np.random.default_rng(2)
    builds = [[run(chance, f"b{number}") for _ in range(3)] for number in range(20)]
    for number in range(1, len(builds)):
        found = compare_builds(builds[number - 1], builds[number], builds[: number - 1])
        assert not [change for change in (found.actual, *found.changes) if change.beyond_noise]


def test_a_fault_of_five_per_cent_is_found_with_its_place() -> None:
    right = 0
    for trial in range(40):
        chance = np.random.default_rng(100 + trial)
        before = [run(chance, "good") for _ in range(3)]
        after = [run(chance, "bad", extra=0.5) for _ in range(3)]
        earlier = [[run(chance, f"old{n}") for _ in range(3)] for n in range(3)]
        worst = compare_builds(before, after, earlier).largest_increase
        right += worst is not None and worst.name in ("L", "M'") and worst.places[0][0] == "solve"
    assert right >= 38


def told(actual_s: float, waiting_s: float = 0.0) -> Advice:
    """Advice on a run of so many seconds, as much as a comparison looks at; all but ``waiting_s`` is work."""
    known = {"IPC": actual_s - waiting_s, "IPCOLMDSW": actual_s, "actual": actual_s}
    bounds = tuple(replace(one, seconds=known.get(one.name)) for one in WHOLE.bounds)
    return replace(WHOLE, profile=replace(WHOLE.profile, actual_s=actual_s), bounds=bounds, gaps=())


def repeats(chance: np.random.Generator, waiting_s: float = 0.0) -> list[Advice]:
    """Three runs of 10 s with 0.5 % noise; one in seven is disturbed, and takes up to twice as long."""
    found = []
    for _ in range(3):
        slower = chance.uniform(1.1, 2.0) if chance.random() < 1 / 7 else 1.0
        found.append(told(slower * chance.normal(10.0, 0.05) + waiting_s, waiting_s))
    return found


def test_disturbed_runs_neither_raise_alarms_nor_hide_faults() -> None:
    """A build raises an alarm only where all of its runs were disturbed: here one build in 343."""
    alarms, missed = 0, 0
    for trial in range(40):
        chance = np.random.default_rng(trial)
        builds = [repeats(chance) for _ in range(6)]
        alarms += any(one.beyond_noise for one in compare_builds(builds[-2], builds[-1], builds[:-2]).changes)
        worst = compare_builds(builds[-1], repeats(chance, waiting_s=0.5), builds[:-1]).largest_increase
        missed += worst is None or worst.delta_s > 0.6
    assert (alarms, missed) <= (2, 2)


def test_what_was_left_out_is_counted() -> None:
    found = compare_builds([told(10.0), told(10.1), told(14.0)], [told(10.0), told(10.1)])
    assert (found.runs, found.disturbed) == ((3, 2), (1, 0))
    assert found.actual.delta_s == pytest.approx(0.0)


def test_coarse_clocks_and_small_differences_disturb_nothing() -> None:
    coarse = [told(5.0), told(5.0), told(6.0)]
    assert compare_builds(coarse, [told(5.0), told(5.0), told(5.0)]).disturbed == (0, 0)
    alike = [told(5.0), told(5.0001), told(5.04)]
    assert compare_builds(alike, [told(5.0), told(5.0001), told(5.0001)]).disturbed == (0, 0)


def test_where_most_runs_were_disturbed_nobody_knows_which() -> None:
    found = compare_builds([told(10.0), told(14.0), told(19.0)], [told(10.1), told(12.0), told(17.0)])
    assert found.disturbed == (0, 0)
    assert not [one for one in found.changes if one.beyond_noise]


def test_bounds_that_one_run_does_not_know_are_merged() -> None:
    chance = np.random.default_rng(3)
    known, whole = run(chance, "a"), run(chance, "b")
    less = replace(
        whole, bounds=tuple(replace(b, seconds=None) if b.name in ("IPCOLM", "IPCOLMD") else b for b in whole.bounds)
    )
    names = [change.name for change in compare_builds([known], [less]).changes]
    assert "M'+D" in "".join(names)
    assert "M'" not in names


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_places_are_the_regions_that_grew_or_shrank_though_one_build_has_none_of_it(sign: float) -> None:
    chance = np.random.default_rng(1)
    even, uneven = run(chance, "even", noise=0.0), run(chance, "uneven", extra=2.0, noise=0.0)
    pair = ([even], [uneven]) if sign > 0 else ([uneven], [even])
    imbalance = next(change for change in compare_builds(*pair).changes if change.name == "L")
    assert imbalance.places == (("solve", pytest.approx(sign * 1.5, abs=1e-9)),)


@pytest.mark.parametrize(("after_s", "beyond_noise"), [(101.0, False), (101.5, True)])
def test_simulated_runs_differ_from_one_per_cent_on(after_s: float, beyond_noise: bool) -> None:
    simulated = [replace(one, profile=replace(one.profile, status={"wall_s": "modelled"})) for one in
                 (told(100.0), told(after_s))]  # fmt: skip
    assert compare_builds(simulated[:1], simulated[1:]).actual.beyond_noise is beyond_noise


@pytest.mark.parametrize(
    ("changed", "repeats", "undecided"),
    [
        ({}, False, True),
        ({"beyond_noise": True}, False, False),
        ({"beyond_noise": None}, False, False),
        ({"noise_s": None}, False, False),
        ({}, True, False),
        ({"after_s": 100.9}, False, False),
        ({"noise_s": 1.0}, False, False),
    ],
)
def test_a_change_is_undecided_where_more_repeats_could_show_it(
    changed: dict[str, object], repeats: bool, undecided: bool
) -> None:
    change = replace(Change("actual", 100.0, 102.0, 0.1, False), **changed)
    found = Comparison("p", "a", "b", (2, 2), Change("actual", 100.0, 102.0, 0.1, False), (), repeats=repeats)
    assert found.is_undecided(change) is undecided


def test_runs_on_other_numbers_of_processors_are_told_apart() -> None:
    found = compare_builds([WHOLE], [WHOLE])
    assert found.processors == ((2,), (2,))
    assert "processors" not in result_of(found)
    assert "fig4 ran on 2 processors and big on 3 or 4, which" in result_of(
        replace(found, before="fig4", after="big", processors=((2,), (3, 4)))
    )


def result_of(found: Comparison) -> str:
    text = build_comparison_report(found).parts[-1]
    assert isinstance(text, Text)
    return text.text


def test_the_three_regions_that_changed_most_are_named_in_mean_seconds() -> None:
    gap = compare_builds([told(10.0)], [told(10.0)]).changes[1].name

    def held(*seconds: tuple[str, float]) -> Advice:
        """A run whose gap lies in these regions, once or several times in each."""
        shares = tuple(Share(*one) for one in seconds)
        return replace(told(10.0), gaps=(Gap(gap, (), "IPC", "IPCOLMDSW", 0.0, 0.0, "measured", regions=shares),))

    before = [held(("a", 1.0), ("b", 2.0), ("c", 1.0), ("same", 3.0))]
    after = [held(("a", 2.0), ("a", 3.0), ("same", 3.0), ("d", 0.5)), held(("a", 3.0), ("same", 3.0), ("d", 0.5))]
    (change,) = (one for one in compare_builds(before, after).changes if one.name == gap)
    assert change.places == (("a", 3.0), ("b", -2.0), ("c", -1.0))
    (unchanged,) = (one for one in compare_builds(before, before).changes if one.name == gap)
    assert unchanged.places == ()


def test_the_noise_of_a_difference_is_that_of_two_means() -> None:
    found = compare_builds([told(10.0), told(10.2)], [told(10.0), told(10.1), told(10.2)])
    pooled_s = math.sqrt((2 * 0.1**2 + 2 * 0.1**2) / (1 + 2))
    assert found.actual.noise_s == pytest.approx(pooled_s * math.sqrt(1 / 2 + 1 / 3))


@pytest.mark.parametrize(("factor", "beyond"), [(0.99, False), (1.01, True)])
def test_a_change_beyond_noise_is_one_that_no_number_of_tests_explains(factor: float, beyond: bool) -> None:
    before = [told(10.0), told(10.2)]
    same = compare_builds(before, before)
    assert same.actual.noise_s is not None
    chance = policy.CHANGE_PROBABILITY / (1 + len(same.changes))
    delta_s = factor * same.actual.noise_s * float(scipy.stats.t.ppf(1 - chance / 2, df=2))
    found = compare_builds(before, [told(10.0 + delta_s), told(10.2 + delta_s)])
    assert found.actual.beyond_noise is beyond


def test_a_run_that_became_faster_is_no_increase() -> None:
    slower = Change("actual", 10.0, 12.0, 0.1, True, ())
    faster = replace(slower, after_s=8.0)
    assert Comparison("heat", "a", "b", (2, 2), slower, ()).significant_increases == (slower,)
    assert Comparison("heat", "a", "b", (2, 2), faster, ()).significant_increases == ()
