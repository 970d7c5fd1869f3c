from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from profile_strategies import profiles
from strategies import build, phase

from advisor.analysis import bounds, gaps, quality
from advisor.formats import native
from advisor.model import policy
from advisor.model.records import SHARED_CORES, Grade, Note, Phase, Profile, Region

ROOT = Path(__file__).parents[2]


def grade(profile: Profile) -> Grade:
    found = bounds.compute_bounds(profile)
    return quality.grade_profile(profile, found, gaps.attribute_gaps(profile, found))


def notes(profile: Profile) -> dict[str, Note]:
    return {note.name: note for note in grade(profile).notes}


def sound(**more: object) -> Profile:
    """A run of 20 s without any doubt."""
    arrays = {name: np.full((2, 2, 4), 0.5) for name in ("wait_s", "sync_s", "transfer_s", "io_s", "cpu_s")}
    arrays["wall_s"] = sum(arrays.values())
    lengths = {"start_s": np.arange(4.0) * 5, "duration_s": np.full(4, 5.0)}
    known = {"actual_s": 20.0, "cores": 2, "ranks_expected": 2, "clock_uncertainty_s": 1e-6, **more}
    return build([Phase("phase", "parallel", np.array([0, 1]), arrays, **lengths)], **known)


def with_array(name: str, value: float) -> Profile:
    profile = sound()
    array = profile.phases[0].arrays[name].copy()
    array[0, 0, 0] = value
    return replace(profile, phases=(replace(profile.phases[0], arrays={**profile.phases[0].arrays, name: array}),))


def longer(factor: float) -> Profile:
    """The sound run with all times of its phase multiplied, but not that of the run."""
    profile = sound()
    arrays = {name: array * factor for name, array in profile.phases[0].arrays.items()}
    lengths = {"duration_s": np.full(4, 5.0 * factor), "start_s": np.arange(4.0) * 5 * factor}
    return replace(profile, phases=(replace(profile.phases[0], arrays=arrays, **lengths),))


def one_region() -> Profile:
    profile = sound()
    kept = {name: array[:1] for name, array in profile.phases[0].arrays.items()}
    return replace(profile, phases=(replace(profile.phases[0], arrays=kept, regions=np.array([0])),))


def unlike() -> Profile:
    """The sound run with the times of one rank in milliseconds."""
    profile = sound()
    arrays = {name: array.copy() for name, array in profile.phases[0].arrays.items()}
    for array in arrays.values():
        array[:, 1] *= 1e-3
    return replace(profile, phases=(replace(profile.phases[0], arrays=arrays),))


def alone() -> Profile:
    """One rank that receives messages, of a run without phases."""
    profile = build([WHOLE], actual_s=2.0)
    arrays = {name: array[:, :1] for name, array in WHOLE.arrays.items()}
    regions = (replace(profile.regions[0], name="MPI_Recv"), *profile.regions[1:])
    phases = (replace(profile.phases[0], arrays=arrays),)
    return replace(profile, processors=profile.processors[:1], regions=regions, phases=phases, outside={}, counts={})


WHOLE = Phase("run", "whole", np.array([0, 1]), {"wall_s": np.ones((2, 2, 1)), "cpu_s": np.ones((2, 2, 1))})
DOUBTS = {
    "no run time": replace(with_array("cpu_s", 0.0), actual_s=math.nan, phases=()),
    "CPU time alone": sound(actual_s=math.nan),
    "device time alone": replace(
        with_array("cpu_s", 0.0), actual_s=math.nan, phases=(), counts={"device_s": np.full((2, 2), 0.1)}
    ),
    "too short": sound(actual_s=0.05),
    "impossible values": with_array("cpu_s", np.nan),
    "most processors missing": sound(ranks_expected=5),
    "times exceed the run": with_array("wall_s", 30.0),
    "ranks unlike": unlike(),
    "partners missing": alone(),
    "processors missing": sound(ranks_expected=3),
    "processors share cores": sound(cores=1),
    "CPU time exceeds the cores": replace(with_array("cpu_s", 17.0), cores=1),
    "negative times": with_array("io_s", -0.1),
    "short phases": longer(1e-3),
    "instances near the clock's resolution": longer(1e-6),
    "clock uncertainty": sound(clock_uncertainty_s=0.3),
    "negative gap": longer(1.2),
    "waiting unknown": build([WHOLE], actual_s=4.0),
    "no phases": build([WHOLE], actual_s=4.0),
    "one region": one_region(),
    "few iterations": build([phase([[5.0, 5.0]])]),
    "cores unknown": sound(cores=None),
}


def test_a_bound_above_the_run_time_is_no_evidence() -> None:
    (whole,) = sound().phases
    found = grade(replace(sound(), phases=(replace(whole, duration_s=np.full(4, 7.5)),)))
    assert found.letter == "F"
    assert found.notes[0].text == "the bound IPCOLMDSW is 30.0 s, more than the run took"


def test_a_machine_that_is_too_slow_for_the_run_is_the_wrong_one() -> None:
    first, *others = bounds.compute_bounds(sound())
    levels = [replace(first, seconds=41.0, status="modelled"), *others]
    found = quality.grade_profile(sound(), levels, gaps.attribute_gaps(sound(), levels))
    assert found.letter == "F"
    assert found.notes[0].text.endswith(
        "M is 41.0 s, more than the run took; the machine model or the counts do not fit"
    )


def sharing(ranks: int, cores: int) -> Profile:
    arrays = {"wall_s": np.full((2, ranks, 4), 2.5)}
    lengths = {"start_s": np.arange(4.0) * 5, "duration_s": np.full(4, 5.0)}
    phases = [Phase("phase", "parallel", np.array([0, 1]), arrays, **lengths)]
    return build(phases, actual_s=20.0, cores=cores, paradigms=frozenset({"mpi"}))


@pytest.mark.parametrize(("ranks", "cores", "fewer"), [(4, 2, 2), (6, 4, 3), (5, 4, 4), (8, 6, 4)])
def test_ranks_that_share_cores_are_recorded_again_with_as_many_as_fit(ranks: int, cores: int, fewer: int) -> None:
    profile = sharing(ranks, cores)
    assert notes(profile)[SHARED_CORES].collect == f"gapwatch run -- mpirun -n {fewer} ./PROGRAM"
    threads = notes(replace(profile, paradigms=frozenset({"openmp"})))[SHARED_CORES].collect
    assert threads == f"run with at most {cores} processors, each on its own core"


@pytest.mark.parametrize(
    ("ranks", "cores", "command"),
    [
        (4, 2, "run with at most 2 processors, each on its own core"),
        (16, 6, "gapwatch run -- mpirun -n 4 ./PROGRAM"),
        (6, 4, "gapwatch run -- mpirun -n 3 ./PROGRAM"),
    ],
)
def test_rows_and_columns_of_ranks_stay_a_square(ranks: int, cores: int, command: str) -> None:
    profile = sharing(ranks, cores)
    for calls in (("MPI_Cart_sub",), ("MPI_Cart_create", "MPI_Comm_split")):
        made = replace(profile, regions=(*profile.regions, *map(Region, calls)))
        assert notes(made)[SHARED_CORES].collect == command


def test_more_cpu_time_than_the_cores_have_is_a_doubt_with_a_remedy() -> None:
    busy = with_array("cpu_s", 17.0)  # 8 s of CPU time of two processors, and 16.5 s more, in 20 s
    assert notes(replace(busy, cores=1)).keys() >= {"CPU time exceeds the cores", "processors share cores"}
    told = notes(replace(busy, cores=1))["CPU time exceeds the cores"]
    assert told.text.startswith("the processors used 24.5 s of CPU time, more than the 20.0 s that 1 core has")
    assert "hardware threads" in (told.collect or "")
    assert "CPU time exceeds the cores" not in notes(replace(busy, cores=2))
    estimated = replace(busy, cores=1, status={**busy.status, "cpu_s": "estimated"})
    assert "CPU time exceeds the cores" not in notes(estimated)


def test_a_processor_does_not_compute_longer_than_the_run() -> None:
    assert notes(with_array("cpu_s", 18.0))["times exceed the run"].text == (
        "a processor's CPU time exceeds the run by 1.50 s"
    )


def test_one_negative_gap_is_told_as_one() -> None:
    assert notes(longer(1.2))["negative gap"].text == "the gap X is negative; see its reason"


def test_a_sound_run_has_no_doubts() -> None:
    assert grade(sound()) == Grade("A", 1.0, ())


def test_every_doubt_has_an_example() -> None:
    assert DOUBTS.keys() == policy.PENALTIES.keys()


@pytest.mark.parametrize("name", policy.PENALTIES)
def test_each_doubt_is_noticed_and_lowers_the_score(name: str) -> None:
    found = grade(DOUBTS[name])
    note = next(note for note in found.notes if note.name == name)
    assert note.penalty == policy.PENALTIES[name]
    assert found.score == pytest.approx(max(1 - sum(note.penalty for note in found.notes), 0))


@pytest.mark.parametrize(
    ("penalty", "letter"), [(0.1, "A"), (0.11, "B"), (0.25, "B"), (0.26, "C"), (0.4, "C"), (0.5, "D"), (0.61, "F")]
)
def test_letters_follow_from_the_score(penalty: float, letter: str) -> None:
    assert grade(sound(notes=(Note("reader's", "a doubt", penalty),))).letter == letter


def test_a_fatal_doubt_is_insufficient_evidence_and_comes_first() -> None:
    found = grade(sound(actual_s=0.05, cores=None, notes=(Note("reader's", "a doubt", 0.1),)))
    assert (found.letter, found.score) == ("F", 0.0)
    assert found.notes[0].name == "too short"


def test_missing_ranks_are_counted() -> None:
    assert notes(sound(ranks_expected=3))["processors missing"].text == "the profile holds 2 of 3 ranks"


def test_without_a_stated_number_the_highest_rank_tells_how_many_there_were() -> None:
    first, second = sound().processors
    found = notes(sound(ranks_expected=None, processors=(first, replace(second, rank=2))))
    assert found["processors missing"].text == "the profile holds 2 of 3 ranks"
    assert "processors missing" not in notes(sound(ranks_expected=None))


def test_what_a_clock_cannot_resolve_is_no_impossible_value() -> None:
    assert not {"negative times", "negative gap"} & notes(with_array("io_s", -5e-7)).keys()
    assert "negative times" in notes(with_array("io_s", -5e-6))


def test_small_waits_need_no_exact_clock() -> None:
    profile = sound(clock_uncertainty_s=0.3)
    arrays = {**profile.phases[0].arrays, "wait_s": np.full((2, 2, 4), 1e-4)}
    calm = replace(profile, phases=(replace(profile.phases[0], arrays=arrays),))
    assert "clock uncertainty" not in notes(calm)


def test_doubts_that_a_measurement_would_settle_say_which() -> None:
    assert "gapwatch run -- " in (notes(DOUBTS["one region"])["one region"].collect or "")
    assert "gapwatch run -- " in (notes(DOUBTS["no phases"])["no phases"].collect or "")


@pytest.mark.parametrize("file", ["fig4.json", "fig5.json"])
def test_the_figures_of_the_source_can_be_advised_from(file: str) -> None:
    assert grade(native.advisor_read(ROOT / "tests" / "profiles" / file)).letter in "AB"


@given(profiles())
@settings(deadline=None, max_examples=50)
def test_any_profile_gets_a_grade_between_its_limits(profile: Profile) -> None:
    found = grade(profile)
    assert 0.0 <= found.score <= 1.0
    assert set(profile.notes) <= set(found.notes)
    fatal = any(note.penalty >= 1.0 for note in found.notes)
    assert (found.letter == "F") == (fatal or round(found.score, 9) < 0.4)


def test_a_region_that_several_phases_share_is_one_region() -> None:
    profile = build([phase([[5.0, 5.0]], name="first", regions=[2]), phase([[4.0, 4.0]], name="second", regions=[2])])
    assert "one region" in notes(replace(profile, regions=tuple(Region(f"region {r}") for r in range(9))))


def test_the_documented_penalties_are_those_that_count() -> None:
    text = (ROOT / "docs" / "quality.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (..+?) \| ([0-9.]+) \|", text, re.MULTILINE)
    assert {name: float(penalty) for name, penalty in rows} == policy.PENALTIES
    letters = re.findall(r"^\| ([A-F]) \| ([0-9.]+) ", text, re.MULTILINE)
    assert dict(policy.LETTERS) == {letter: float(least) for letter, least in letters}


def test_doubts_about_waiting_leave_computation_that_clocks_measured() -> None:
    doubts = tuple(Note(name, name, 0.3) for name in ("other programs", "threads share cores", "unmatched messages"))
    measured = {"cpu_s": "measured"}
    timed = replace(sound(), notes=doubts, status={**sound().status, **measured})
    assert grade(timed).score == pytest.approx(1.0 - policy.MOST_WAITING_DOUBT)
    assert grade(timed).letter == "C"
    one = Note("functions sampled", "few", 0.2)
    assert grade(replace(timed, notes=(*doubts, one))).score == pytest.approx(0.8 - policy.MOST_WAITING_DOUBT)
    guessed = replace(timed, status={**timed.status, "cpu_s": "estimated"})
    assert grade(guessed).letter == "F"
    fatal = replace(timed, notes=(*doubts, Note("broken", "broken", 1.0)))
    assert grade(fatal).letter == "F"


def test_the_longest_and_the_shortest_rank_are_named() -> None:
    assert re.match(r"rank 0 was there for .*, rank 1 for ", notes(unlike())["ranks unlike"].text)


def test_a_call_without_time_misses_no_partner() -> None:
    lone = alone()
    (whole,) = lone.phases
    idle = {name: np.where([[[True]], [[False]]], 0.0, array) for name, array in whole.arrays.items()}
    assert "partners missing" not in notes(replace(lone, phases=(replace(whole, arrays=idle),)))


def test_instances_as_long_as_the_clock_can_resolve_are_long_enough() -> None:
    shortest_s = policy.INSTANCE_RESOLUTIONS * policy.CLOCK_RESOLUTION_S
    (whole,) = longer(1e-6).phases
    assert "instances near the clock's resolution" in notes(longer(1e-6))
    profile = replace(longer(1e-6), phases=(replace(whole, duration_s=np.full(4, shortest_s)),))
    assert "instances near the clock's resolution" not in notes(profile)


def test_one_region_is_noticed_in_a_run_of_less_than_a_second_of_work() -> None:
    profile = one_region()
    (whole,) = profile.phases
    small = {name: array * 0.05 for name, array in whole.arrays.items()}
    assert "one region" in notes(replace(profile, phases=(replace(whole, arrays=small),)))
