"""Each threshold of the policy at its boundary, in numbers that do not come from it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from ranked_cases import draft, rank_profile
from scipy import stats
from strategies import build

from advisor.advice import computation, verdict
from advisor.advice.facts.places import is_significant
from advisor.advice.ranking import drafts, effects, explained_drafts, history_gain, order
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import load_cases
from advisor.agents import advice_answers
from advisor.analysis import bounds, comparison, device_ladder, gaps, quality
from advisor.analysis.cpu_time import has_cpu_time_alone
from advisor.analysis.gaps import inner_waits
from advisor.formats.likwid.checks import find_separate_processes
from advisor.model import policy
from advisor.model.records import BOUND_NAMES, OTHER_PROGRAMS, Bound, Phase, Processor, Profile, Region, Share
from advisor.output.sarif import render_code_quality
from advisor.output.source_tree import SourcePlace, SourceTree
from advisor.trace import serial

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.advice.ranking.drafts import Draft
    from advisor.model.records import Advice

# The serial rule


def is_serial(work: float = 0.96, closing: float = 0.6, time: float = 0.95) -> bool:
    """Two processes: in the first instance one does ``work``, in the second both the same."""
    phase: Any = SimpleNamespace(duration_s=np.array([time, 1 - time]))
    waited = np.array([[0.0, 0.0], [1.0, 0.0]])
    return serial._is_serial(phase, np.array([[work, 0.5], [1 - work, 0.5]]), waited * closing, waited)


# Runs without a run time


def count_cpu_time(seconds: float) -> Profile:
    """A run of one function of which nothing but CPU time is known."""
    phase = Phase("run", "whole", np.arange(1), {"cpu_s": np.full((1, 1, 1), seconds)})
    return Profile(
        "program", "1", "gprof", math.nan, (Processor(0),), (Region("main"),), (phase,), status={"cpu_s": "measured"}
    )


# Significance


def run(actual_s: float, build: str = "a") -> Advice:
    profile = SimpleNamespace(
        actual_s=actual_s, build=build, run="1", program="p", devices=None, is_simulated=False, processors=()
    )  # fmt: skip
    levels = [
        SimpleNamespace(name=BOUND_NAMES[-2], seconds=50.0),
        SimpleNamespace(name=BOUND_NAMES[-1], seconds=actual_s),
    ]
    made: Any = SimpleNamespace(profile=profile, bounds=levels, gaps=(), findings=())
    return made


def is_beyond_noise(delta_s: float, spread_s: float) -> bool | None:
    before = [run(100.0), run(100.0 + spread_s)]
    after = [run(100.0 + delta_s, "b"), run(100.0 + spread_s + delta_s, "b")]
    return comparison.compare_builds(before, after).actual.beyond_noise


def limit_s(spread_s: float) -> float:
    """Student's t for one in a thousand, two-sided, shared by three: run time, first bound and gap; 2 + 2 runs."""
    return float(stats.t.ppf(1 - 1e-3 / 3 / 2, 2)) * spread_s / np.sqrt(2)


def is_left_out(longer_s: float) -> bool:
    group = [run(100.0), run(102.0), run(102.0), run(102.0), run(100.0 + longer_s)]
    return len(comparison.select_undisturbed([group])[0]) == 4


def is_undecided(delta_s: float) -> bool:
    change = comparison.Change("actual", 100.0, 100.0 + delta_s, 1.0, False)
    return comparison.Comparison("p", "a", "b", (2, 2), change, ()).is_undecided(change)


# Evidence


def sound(**more: object) -> Profile:
    """A run of 20 s without any doubt: two processors, two regions, four instances of 5 s."""
    arrays = {name: np.full((2, 2, 4), 0.5) for name in ("wait_s", "sync_s", "transfer_s", "io_s", "cpu_s")}
    arrays["wall_s"] = sum(arrays.values())
    lengths = {"start_s": np.arange(4.0) * 5, "duration_s": np.full(4, 5.0)}
    known = {"actual_s": 20.0, "cores": 2, "ranks_expected": 2, "clock_uncertainty_s": 1e-9, **more}
    return build([Phase("phase", "parallel", np.array([0, 1]), arrays, **lengths)], **known)


def with_phase(profile: Profile, arrays: dict[str, np.ndarray], **more: object) -> Profile:
    (phase,) = profile.phases
    return replace(profile, phases=(replace(phase, arrays={**phase.arrays, **arrays}, **more),))


def has_doubt(name: str, profile: Profile) -> bool:
    found = bounds.compute_bounds(profile)
    grade = quality.grade_profile(profile, found, gaps.attribute_gaps(profile, found))
    return name in {note.name for note in grade.notes}


def is_long_enough(seconds: float, counted: bool = False) -> bool:
    """A recording of devices of so many seconds."""
    profile: Any = SimpleNamespace(actual_s=seconds)
    use: Any = SimpleNamespace(facts={}, status={}, gains=(), counted=counted)
    return "too short" not in {note.name for note in device_ladder.find_device_doubts(profile, use)}


def with_instances(seconds: list[float]) -> Profile:
    return with_phase(sound(), {}, duration_s=np.array(seconds), start_s=np.r_[0.0, np.cumsum(seconds)[:-1]])


def with_ranks_apart(factor: float, status: str) -> Profile:
    wall = np.full((2, 2, 4), 2.5)
    wall[:, 1] /= factor
    profile = sound(
        status=dict.fromkeys(("wait_s", "sync_s", "transfer_s", "io_s", "cpu_s"), "measured") | {"wall_s": status}
    )
    return with_phase(profile, {"wall_s": wall})


def are_separate_processes(factor: float) -> str | None:
    """Two processes, one so many times as long as the other."""
    return find_separate_processes((Processor(0), Processor(1)), np.array([1.0, factor]))


def with_iterations(count: int) -> Profile:
    (phase,) = sound().phases
    cut = {name: array[..., :count] for name, array in phase.arrays.items()}
    return with_phase(sound(), cut, duration_s=np.full(count, 5.0), start_s=np.arange(count) * 5.0)


def with_waiting(seconds: float, uncertainty_s: float) -> Profile:
    """Each of two processors waits ``seconds`` in all, in two regions and four instances."""
    return with_phase(sound(clock_uncertainty_s=uncertainty_s), {"wait_s": np.full((2, 2, 4), seconds / 8)})


def with_one_region(share: float) -> Profile:
    zero = np.zeros((2, 2, 4))
    work = np.empty((2, 2, 4))
    work[0], work[1] = 5 * share, 5 * (1 - share)
    waits = dict.fromkeys(("wait_s", "sync_s", "transfer_s", "io_s"), zero)
    return with_phase(sound(), {**waits, "wall_s": work, "cpu_s": work})


def exceeds(seconds: float, actual_s: float) -> bool:
    """The first processor is there for ``seconds`` more than the run took."""
    wall = np.full((2, 2, 4), actual_s / 8)
    wall[0, 0, 0] += seconds
    nothing = {name: np.zeros((2, 2, 4)) for name in ("wait_s", "sync_s", "transfer_s", "io_s")}
    lengths = {"duration_s": np.full(4, actual_s / 4), "start_s": np.arange(4) * actual_s / 4}
    busy = with_phase(sound(actual_s=actual_s), {**nothing, "cpu_s": wall / 2, "wall_s": wall}, **lengths)
    return has_doubt("times exceed the run", busy)


def computes_beyond(seconds: float) -> bool:
    """The first processor computes for ``seconds`` more than the run of 1 s took, the second for none."""
    wall, computed = np.full((2, 2, 4), 1 / 8), np.zeros((2, 2, 4))
    computed[:, 0] = (1.0 + seconds) / 8
    nothing = {name: np.zeros((2, 2, 4)) for name in ("wait_s", "sync_s", "transfer_s", "io_s")}
    lengths = {"duration_s": np.full(4, 0.25), "start_s": np.arange(4) / 4}
    busy = with_phase(sound(actual_s=1.0), {**nothing, "cpu_s": computed, "wall_s": wall}, **lengths)
    return has_doubt("times exceed the run", busy)


# The score


def two_places(second_s: float) -> list[Draft]:
    """Items of one action at two places, of which the second comes first by its score."""
    one = draft()
    sites = [replace(one.match.site, place=replace(one.match.site.place, phases=(number,))) for number in (0, 1)]
    both = [
        replace(one, match=replace(one.match, site=site), recommendation=replace(one.recommendation, ceiling_s=seconds))
        for site, seconds in zip(sites, (10.0 * second_s, 10.0), strict=True)
    ]
    return sorted(both, key=lambda each: each.sort_key)


def comes_first_by_place(part: float) -> bool:
    return order._sort_near_equals(two_places(part))[0].position == (0,)


def compiles_first(part: float) -> bool:
    """Compiling with optimization wins a part of what another change does."""
    other = draft()
    action: Any = SimpleNamespace(change={"cpu": "optimized"}, typical_fraction=0.5)
    match: Any = SimpleNamespace(action=action)
    made = replace(other.recommendation, expected_s=part)
    best = replace(other, recommendation=replace(other.recommendation, expected_s=1.0))
    build_options = replace(other, match=match, recommendation=made)
    return explained_drafts.put_builds_first([best, build_options])[0] is build_options


def leads(part: float) -> bool:
    """The earlier of two phases is shown, although it has only a part of the later one's seconds."""
    (loop,) = load_cases()["skewed-load"].phases
    less = tuple(tuple(s * part for s in row) for row in loop.work_s)
    case = replace(load_cases()["skewed-load"], phases=(replace(loop, work_s=less), replace(loop, name="update")))
    found = rank_profile(build_profile(case))
    return next(item for item in found.recommendations if item.action in ("A-28", "A-34")).phase == "solve"


def is_named(part: float) -> bool:
    """A phase with a part of the imbalance of both is named beside the other."""
    book: Any = SimpleNamespace(
        sheet=SimpleNamespace(sites=[SimpleNamespace(place=SimpleNamespace(name=name)) for name in "ab"]),
        part_seconds=lambda _, site: (1 - part, part)[site], gap_seconds=lambda _: 1.0, imbalance_s=lambda _: 0.0,
    )  # fmt: skip
    main: Any = SimpleNamespace(site=book.sheet.sites[0])
    return drafts._more_phases(main, ((0, "X"), (1, "X")), book) == ("b",)


def is_dominant(part: float) -> bool:
    shares = [Share("a", part, phase="p"), Share("b", 1 - part - 1e-6, phase="p"), Share("c", 1e-6, phase="p")]
    split: Any = SimpleNamespace(regions=shares, causes=())
    found = effects.find_spot([split], ["p"])
    return found.region == "a" and found.dominant


def upper_gain(shares: tuple[float, ...]) -> float:
    return history_gain.compute_gain(shares, 1.0).high_s


def explains(part: float) -> bool:
    """A late sender inside of a phase, waited for a part of the phase's W."""
    profile = sound()
    (phase,) = profile.phases
    number = np.zeros(1, dtype=np.int64)
    causes: Any = SimpleNamespace(
        kinds=("late sender",), kind=number, phase=number, call=number, category=number + 1, seconds=np.array([part]),
    )  # fmt: skip
    assert isinstance(phase, Phase)
    loads: Any = SimpleNamespace(phases=[None])
    return bool(inner_waits.select_inner_waits(replace(profile, causes=causes), loads, np.array([1.0]))[0])


def is_spoken_of(part: float) -> bool:
    levels = [Bound("I", 20.0 * part, "measured")]
    return computation.describe_computation(sound(), levels) is not None


def names_kind(part: float) -> bool:
    counts = {f"code.{name}_s": np.full((9, 2), 1.0) for name in ("all", "known")}
    counts |= {"code.math_s": np.full((9, 2), part), "code.unoptimized_s": np.zeros((9, 2))}
    found = computation.describe_computation(sound(counts=counts), [Bound("I", 20.0, "measured")])
    return found is not None and "code.math_share" in found.measures


# The verdict


def hides_something(share: float) -> bool:
    """A gap of 1 s merges imbalance and waiting of a share of the run, and no rule decides."""
    gap: Any = SimpleNamespace(seconds=1.0, members=("D", "S'", "W"), share=share)
    profile = replace(sound(), actual_s=1.0 / share)
    matches: Any = SimpleNamespace(has_undecided_gap=False)
    grade: Any = SimpleNamespace(letter="A", notes=())
    nothing: Any = SimpleNamespace(recommendations=())
    return verdict.decide_verdict(profile, grade, [gap], matches, nothing) == "insufficient evidence"


def is_no_beginning(part: float) -> bool:
    """Other programs may have made a part of the largest gap."""
    gap: Any = SimpleNamespace(name="W", members=("W",), seconds=10.0)
    profile = replace(sound(), outside={OTHER_PROGRAMS: np.full(2, 10.0 * part)})
    grade: Any = SimpleNamespace(letter="B")
    advice: Any = SimpleNamespace(verdict="insufficient evidence", grade=grade, gaps=(gap,), profile=profile)
    return "only computation is sure" in advice_answers._explain_verdict(advice)


def is_a_warning(share: float) -> bool:
    """An item wins a share of a run of 20 s."""
    item = replace(draft().recommendation, ceiling_s=20.0 * share)
    advice: Any = SimpleNamespace(profile=SimpleNamespace(actual_s=20.0), recommendations=(item,))
    tree = SourceTree(None, SourcePlace(PurePosixPath("loop.c")))
    return json.loads(render_code_quality(advice, tree))[0]["severity"] == "major"


BRIEF = "instances near the clock's resolution"
#: Of each threshold what it decides, a value on the one side, and a value on the other.
BOUNDARIES: dict[str, tuple[Callable[[float], object], float, float]] = {
    "SERIAL_WORK": (lambda x: is_serial(work=x), 0.949, 0.95),
    "SERIAL_CLOSING_WAIT": (lambda x: is_serial(closing=x), 0.499, 0.5),
    "SERIAL_TIME": (lambda x: is_serial(time=x), 0.899, 0.9),
    "PLACE_SHARE": (lambda x: is_significant(x, 100.0), 0.999, 1.0),
    "PLACE_SECONDS": (lambda x: is_significant(x, 0.01), 0.99e-3, 1e-3),
    "CHANGE_PROBABILITY": (lambda x: is_beyond_noise(x * limit_s(2.0), 2.0), 0.999, 1.001),
    "CHANGE_SHARE": (lambda x: is_beyond_noise(x, 1e-4), 0.99, 1.01),
    "DISTURBED_RUN": (is_left_out, 8.0, 8.1),
    "UNDECIDED_CHANGE": (is_undecided, 3.0, 3.01),
    "SHORTEST_RUN_S": (lambda x: not has_doubt("too short", sound(actual_s=x)), 0.0999, 0.1),
    "SHORTEST_CPU_TIME_S": (lambda x: has_cpu_time_alone(count_cpu_time(x)), 0.1999, 0.2),
    "SHORTEST_DEVICE_RUN_S": (is_long_enough, 0.00999, 0.01),
    "SHORTEST_COUNTED_RUN_S": (lambda x: is_long_enough(x, counted=True), 0.000999, 0.001),
    "RANKS_UNLIKE": (lambda x: has_doubt("ranks unlike", with_ranks_apart(x, "measured")), 20.0, 20.1),
    "RANKS_UNLIKE_SAMPLED": (lambda x: has_doubt("ranks unlike", with_ranks_apart(x, "estimated")), 199.0, 201.0),
    "WHOLE_RANKS_UNLIKE": (lambda x: are_separate_processes(x) is not None, 1.24, 1.26),
    "CLOCK_RESOLUTION_S": (
        lambda x: has_doubt("negative times", with_phase(sound(), {"io_s": np.full((2, 2, 4), -x)})), 1e-6, 1.01e-6,
    ),
    "INSTANCE_RESOLUTIONS": (
        lambda x: not has_doubt(BRIEF, with_instances([x, x, x, x])), 0.99e-5, 1e-5,
    ),
    "SHORT_INSTANCES": (
        lambda x: has_doubt(BRIEF, with_instances([5e-6] * 2 + [10e-6 / x - 10e-6, 0])),
        0.49, 0.51,
    ),
    "FEWEST_ITERATIONS": (lambda x: not has_doubt("few iterations", with_iterations(int(x))), 2, 3),
    "WAITING_SHARE": (lambda x: has_doubt("clock uncertainty", with_waiting(x, 1.0)), 0.199, 0.2),
    "CLOCK_ERROR": (lambda x: has_doubt("clock uncertainty", with_waiting(4.0, x)), 0.25, 0.251),
    "ONE_REGION": (lambda x: has_doubt("one region", with_one_region(x)), 0.949, 0.95),
    "TIME_SLACK_S": (lambda x: exceeds(x, 0.1), 1.9e-3, 2.1e-3),
    "CPU_TICK_S": (computes_beyond, 0.0209, 0.0211),
    "TIME_SLACK": (lambda x: exceeds(x, 20.0), 0.200, 0.202),
    "MERGED_SHARE": (hides_something, 0.0999, 0.1),
    "DOUBTFUL_GAP": (is_no_beginning, 0.5, 0.501),
    "NOTABLE_GAIN": (is_a_warning, 0.0499, 0.05),
    "BUILD_FIRST": (compiles_first, 0.499, 0.501),
    "NEAR_EQUAL": (comes_first_by_place, 0.799, 0.8),
    "NAMED_PHASE": (is_named, 0.0499, 0.05),
    "DOMINANT_REGION": (is_dominant, 0.4999, 0.5),
    "INNER_WAIT": (explains, 0.499, 0.5),
    "COMPUTATION_SHARE": (is_spoken_of, 0.499, 0.5),
    "CODE_KIND": (names_kind, 0.099, 0.1),
}  # fmt: skip
#: Those that are no limits of anything: tables, and factors.
VALUES = {
    "PENALTIES", "LETTERS", "STATUS_CERTAINTY", "LIMIT_CERTAINTY", "GAIN_LEVEL", "WAITING_DOUBTS", "MOST_WAITING_DOUBT",
    "UNTRIED", "REPAIR_REACH", "REPAIR_SPREAD",
}  # fmt: skip


def test_each_threshold_of_the_policy_has_a_case() -> None:
    assert {name for name in vars(policy) if name.isupper() and name != "TYPE_CHECKING"} == set(BOUNDARIES) | VALUES


@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_threshold_decides_where_it_says(name: str) -> None:
    decides, below, above = BOUNDARIES[name]
    assert not decides(below)
    assert decides(above)


def test_the_leading_phase_is_the_first_that_comes_near_the_largest() -> None:
    assert [leads(part) for part in (0.78, 0.82)] == [False, True]


def test_seconds_are_believed_by_their_status() -> None:
    assert dict(policy.STATUS_CERTAINTY) == {"measured": 1.0, "estimated": 0.8, "modelled": 0.7, "unavailable": 0.5}


def test_the_interval_of_a_known_gain_holds_nine_in_ten() -> None:
    reach = stats.t.ppf(0.95, 2) * np.sqrt(1 + 1 / 3) * 0.1
    assert upper_gain((0.4, 0.5, 0.6)) == pytest.approx(0.5 + reach)
