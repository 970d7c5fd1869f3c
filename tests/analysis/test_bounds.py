from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_strategies import profiles
from slow_bounds import slow_bounds
from strategies import build, phase, runs

from advisor.analysis import bounds
from advisor.analysis.loads import summarize_loads
from advisor.formats import native
from advisor.model.records import BOUND_NAMES, Bound, Phase, Processor, Profile, Region

PROFILES = Path(__file__).parents[1] / "profiles"
RISING = (("I", "IP"), ("IP", "IPC"), ("IPCO", "IPCOL"), ("IPCOL", "IPCOLM"), ("IPCOLM", "IPCOLMD"))


def by_name(profile: Profile) -> dict[str, Bound]:
    return {bound.name: bound for bound in bounds.compute_bounds(profile)}


def values(profile: Profile) -> dict[str, float]:
    return {name: bound.seconds for name, bound in by_name(profile).items() if bound.seconds is not None}


@pytest.mark.parametrize(
    ("file", "expected"), [("fig4.json", (41.0, 42.0, 46.0, 47.0)), ("fig5.json", (40.0, 40.0, 40.0, 60.0))]
)
def test_the_figures_of_the_source_come_out_exactly(file: str, expected: tuple[float, ...]) -> None:
    found = values(native.advisor_read(PROFILES / file))
    assert tuple(found[name] for name in ("IPCO", "IPCOL", "IPCOLM", "IPCOLMD")) == expected


@given(runs())
@settings(deadline=None)
def test_every_bound_is_that_of_the_plain_loops(profile: Profile) -> None:
    found = values(profile)
    for name, expected in slow_bounds(profile).items():
        assert found[name] == pytest.approx(expected, rel=1e-12, abs=1e-12), name


@given(runs())
@settings(deadline=None)
def test_each_constraint_only_adds_time(profile: Profile) -> None:
    found = values(profile)
    for lower, upper in RISING:
        assert found[lower] <= found[upper] * (1 + 1e-12)


@given(runs(), st.sampled_from((0.25, 3.0, 1024.0)))
@settings(deadline=None)
def test_scaling_all_times_scales_all_bounds(profile: Profile, factor: float) -> None:
    longer = tuple(
        replace(
            each,
            arrays={name: array * factor for name, array in each.arrays.items()},
            duration_s=None if each.duration_s is None else each.duration_s * factor,
        )
        for each in profile.phases
    )
    scaled = values(replace(profile, phases=longer, actual_s=profile.actual_s * factor))
    for name, seconds in values(profile).items():
        assert scaled[name] == pytest.approx(seconds * factor, rel=1e-12, abs=1e-12), name


@given(runs(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_processors_and_regions_changes_nothing(profile: Profile, random: object) -> None:
    processors = list(range(len(profile.processors)))
    regions = list(range(len(profile.regions)))
    random.shuffle(processors)
    random.shuffle(regions)
    other = shuffled(profile, processors, regions)
    expected = values(profile)
    for name, seconds in values(other).items():
        if name != "IPCOLMDS":  # of several processors with the same load the first decides
            assert seconds == pytest.approx(expected[name], rel=1e-12, abs=1e-12), name


def shuffled(profile: Profile, processors: list[int], regions: list[int]) -> Profile:
    """The same run with its processors and regions in another order."""
    place = {region: number for number, region in enumerate(regions)}
    return replace(
        profile,
        processors=tuple(profile.processors[q] for q in processors),
        regions=tuple(profile.regions[r] for r in regions),
        phases=tuple(
            replace(
                each,
                regions=np.array([place[int(region)] for region in each.regions][::-1]),
                arrays={name: array[::-1][:, processors] for name, array in each.arrays.items()},
            )
            for each in profile.phases
        ),
        causes=None,
    )


@given(profiles())
@settings(deadline=None)
def test_any_profile_has_all_bounds_and_those_without_a_value_say_why(profile: Profile) -> None:
    found = bounds.compute_bounds(profile)
    assert tuple(bound.name for bound in found) == BOUND_NAMES
    for bound in found:
        assert (bound.seconds is None) == (bound.status == "unavailable")
        if bound.seconds is None:
            assert bound.reason
            assert bound.collect


def test_blocks_of_iterations_and_regions_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(7)
    regions = tuple(Region(f"region {number}", threaded=number % 2 == 1) for number in range(9))
    processors = tuple(Processor(rank, thread) for rank in range(3) for thread in range(2))
    profile = build(
        [phase(generator.random((9, 6, 100))), phase(generator.random((3, 6, 50)), "serial", regions=[0, 4, 5])],
        processors=processors,
        regions=regions,
    )
    expected = summarize_loads(profile)
    monkeypatch.setattr("advisor.analysis.loads.arrays.BLOCK", 64)
    monkeypatch.setattr("advisor.analysis.loads.arrays.FEWEST", 7)
    found = summarize_loads(profile)
    for name, spread in expected.spreads.items():
        for part in ("regions", "processors", "iterations"):
            assert getattr(found.spreads[name], part) == pytest.approx(getattr(spread, part), rel=1e-12), (name, part)


def test_idle_threads_count_as_parallelization_not_as_imbalance() -> None:
    regions = (Region("outside"), Region("inside", threaded=True))
    work = [[[4.0], [0.0]], [[3.0], [3.0]]]
    profile = build(
        [phase(work, regions=[0, 1], arrays={"cpu_s": np.array(work)})],
        processors=(Processor(0), Processor(0, 1)),
        regions=regions,
    )
    found = values(profile)
    assert (found["I"], found["IP"], found["IPCO"], found["IPCOL"]) == (5.0, 7.0, 7.0, 7.0)


def test_a_serial_phase_counts_in_full_and_what_others_do_beside_it_does_not() -> None:
    work = [[8.0, 6.0], [0.2, 0.1]]
    found = values(build([phase(work, "serial", arrays={"cpu_s": np.array([work])})], actual_s=15.0))
    assert found["I"] == pytest.approx(7.15)
    assert found["IP"] == found["IPCOLMD"] == 14.0


def test_without_cpu_times_computation_is_estimated_and_work_is_measured() -> None:
    arrays = {name: np.full((1, 2, 3), 1.0) for name in ("wait_s", "sync_s", "transfer_s", "io_s")}
    arrays["wall_s"] = np.full((1, 2, 3), 10.0)
    found = by_name(build([Phase("phase", "parallel", np.array([0]), arrays)], actual_s=40.0))
    assert [found[name].seconds for name in ("I", "IPC", "IPCO")] == [18.0, 21.0, 24.0]
    assert [found[name].status for name in ("I", "IP", "IPC", "IPCO")] == ["estimated"] * 3 + ["measured"]
    assert "operating-system time" in (found["I"].reason or "")
    assert "gapwatch run -- mpirun -n 2" in (found["I"].collect or "")


def test_a_bound_is_as_sure_as_what_it_is_made_of() -> None:
    arrays = {name: np.full((1, 2, 3), 1.0) for name in ("wall_s", "wait_s", "sync_s")}
    profile = build([Phase("phase", "parallel", np.array([0]), arrays)])
    guessed = replace(profile, status={"wall_s": "measured", "wait_s": "estimated", "sync_s": "modelled"})
    assert by_name(profile)["IPCO"].status == "measured"
    assert by_name(guessed)["IPCO"].status == "modelled"
    assert by_name(guessed)["IPCO"].reason == "waiting is estimated; time of synchronizing is modelled"


def test_more_processors_than_cores_make_communication_and_synchronization_estimated() -> None:
    arrays = {name: np.ones((1, 2, 3)) for name in ("cpu_s", "transfer_s", "wall_s", "wait_s", "sync_s")}
    profile = build([Phase("phase", "parallel", np.array([0]), arrays, duration_s=np.ones(3))], cores=1)
    doubtful = [name for name, bound in by_name(profile).items() if bound.status == "estimated"]
    assert doubtful == ["IPC", "IPCOLMDS"]
    assert "2 processors share 1 core," in (by_name(profile)["IPC"].reason or "")
    assert not [bound for bound in by_name(replace(profile, cores=2)).values() if bound.status == "estimated"]


def test_without_phases_what_needs_them_is_unavailable_and_imbalance_estimated() -> None:
    arrays = {name: np.ones((1, 2, 1)) for name in ("cpu_s", "transfer_s", "wall_s", "wait_s", "sync_s")}
    found = by_name(build([Phase("run", "whole", np.array([0]), arrays)]))
    unavailable = [name for name, bound in found.items() if bound.status == "unavailable"][4:]
    assert unavailable == ["IP", "IPCOLM", "IPCOLMD", "IPCOLMDS", "IPCOLMDSW"]
    assert found["IPCOL"].status == "estimated"
    assert "gapwatch run -- mpirun -n 2" in (found["IPCOLM"].collect or "")


def test_one_processor_alone_has_nobody_to_wait_for() -> None:
    profile = build([Phase("run", "whole", np.array([0]), {"wall_s": np.full((1, 1, 1), 5.0)})], actual_s=6.0)
    found = values(profile)
    assert found["IPCO"] == found["IPCOLMD"] == found["IPCOLMDS"] == 5.0
    assert "IPCO" not in values(replace(profile, paradigms=("mpi",)))


def test_one_iteration_per_phase_says_that_changes_cannot_show() -> None:
    assert "one iteration" in (by_name(build([phase([[1.0], [2.0]])]))["IPCOLMD"].reason or "")
    assert by_name(build([phase([[1.0, 1.0], [2.0, 2.0]])]))["IPCOLMD"].reason is None
