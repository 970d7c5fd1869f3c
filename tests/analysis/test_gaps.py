from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gap_ceilings import compute_gap_ceiling
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_strategies import profiles
from strategies import build, phase, runs

from advisor.analysis import bounds, gaps
from advisor.analysis.gaps.gap_causes import format_size_class
from advisor.formats import native
from advisor.model.records import Gap, Phase, Processor, Profile, Region, Share

PROFILES = Path(__file__).parents[1] / "profiles"
LAYOUTS = ("regions", "processors", "iterations")


def by_name(profile: Profile) -> dict[str, Gap]:
    return {gap.name: gap for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile))}


def seconds(shares: tuple[Share, ...]) -> dict[tuple[str | None, str], float]:
    return {(share.phase, share.name): pytest.approx(share.seconds, abs=1e-12) for share in shares}


def everything(profile: Profile) -> dict[str, np.ndarray]:
    return {name: array for each in profile.phases for name, array in each.arrays.items()}


@given(runs())
@settings(deadline=None)
def test_the_accounts_close_and_every_layout_adds_up_to_its_gap(profile: Profile) -> None:
    found = bounds.compute_bounds(profile)
    of_gaps = gaps.attribute_gaps(profile, found)
    first = next(bound.seconds for bound in found if bound.seconds is not None)
    assert first + sum(gap.seconds for gap in of_gaps) == pytest.approx(profile.actual_s, rel=1e-9)
    for gap in of_gaps:
        for layout in LAYOUTS:
            total = sum(share.seconds for share in getattr(gap, layout))
            assert total == pytest.approx(gap.seconds, rel=1e-9, abs=1e-11), (gap.name, layout)


@given(profiles())
@settings(deadline=None)
def test_whatever_is_missing_the_layouts_add_up(profile: Profile) -> None:
    found = bounds.compute_bounds(profile)
    scale = max([1.0, profile.actual_s, *(abs(bound.seconds) for bound in found if bound.seconds is not None)])
    for gap in gaps.attribute_gaps(profile, found):
        for layout in LAYOUTS:
            total = sum(share.seconds for share in getattr(gap, layout))
            assert total == pytest.approx(gap.seconds, abs=1e-9 * scale), (gap.name, layout)


@given(runs())
@settings(deadline=None)
def test_causes_never_claim_more_than_the_gap(profile: Profile) -> None:
    for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile)):
        assert all(cause.seconds > 0 for cause in gap.causes)
        assert sum(cause.seconds for cause in gap.causes) <= max(gap.seconds, 0.0) * (1 + 1e-9) + 1e-12


@given(runs(threads=1, kinds=("parallel",)))
@settings(deadline=None)
def test_the_imbalance_of_a_phase_is_that_of_plain_loops(profile: Profile) -> None:
    steady, dynamic = [], []
    for each in profile.phases:
        work = (each.arrays["wall_s"] - each.arrays["wait_s"] - each.arrays["sync_s"]).sum(axis=0)
        total = [sum(row) for row in work.tolist()]
        steady.append(max(total) - sum(total) / len(total))
        dynamic.append(sum(max(column) for column in work.T.tolist()) - max(total))
    found = by_name(profile)
    both = found["L"].seconds + found["M'"].seconds
    assert both == pytest.approx(sum(steady), abs=1e-9)
    assert found["D"].seconds == pytest.approx(sum(dynamic), abs=1e-9)
    for number, (even, uneven) in enumerate(zip(steady, dynamic, strict=True)):
        for name, part in (("L", even), ("M'", even)):
            expected = found[name].seconds * part / both if both > 1e-9 else 0.0
            assert gaps.compute_phase_shares(profile, found[name])[number] == pytest.approx(expected, abs=1e-9)
            ceiling = compute_gap_ceiling(profile, tuple(found.values()), name, number)
            assert ceiling == pytest.approx(min(even + uneven, found[name].seconds), abs=1e-9)
        assert gaps.compute_phase_shares(profile, found["D"])[number] == pytest.approx(uneven, abs=1e-9)


@given(runs(), st.integers(0, 3))
@settings(deadline=None, max_examples=30)
def test_no_ceiling_is_above_its_gap_and_phases_hold_their_regions(profile: Profile, number: int) -> None:
    found = gaps.attribute_gaps(profile, bounds.compute_bounds(profile))
    number %= len(profile.phases)
    for gap in found:
        assert 0.0 <= compute_gap_ceiling(profile, found, gap.name, number) <= max(gap.seconds, 0.0)
        name = profile.phases[number].name
        inside = sum(share.seconds for share in gap.regions if share.phase == name)
        assert gaps.compute_phase_shares(profile, gap)[number] == pytest.approx(inside, abs=1e-9)


@given(runs(kinds=("parallel",)))
@settings(deadline=None, max_examples=30)
def test_scaling_all_times_scales_all_layouts(profile: Profile) -> None:
    doubled = replace(
        profile,
        actual_s=2 * profile.actual_s,
        phases=tuple(
            replace(
                each,
                arrays={name: 2 * array for name, array in each.arrays.items()},
                start_s=2 * each.start_s,
                duration_s=2 * each.duration_s,
            )
            for each in profile.phases
        ),
        causes=None,
    )
    expected, found = by_name(replace(profile, causes=None)), by_name(doubled)
    for name, gap in expected.items():
        assert found[name].seconds == pytest.approx(2 * gap.seconds, abs=1e-9)
        assert found[name].share == pytest.approx(gap.share, abs=1e-9)
        assert sum(share.seconds for share in found[name].regions) == pytest.approx(2 * gap.seconds, abs=1e-9)


def test_the_example_of_the_source_by_region_processor_and_iteration() -> None:
    found = by_name(native.advisor_read(PROFILES / "fig4.json"))
    assert list(found) == ["L", "M'", "D", "S'+W+X"]
    assert seconds(found["L"].regions) == {("region 2", "region 2"): 0.6, ("region 1", "region 1"): 0.4}
    assert seconds(found["M'"].processors) == {(None, "rank 1"): 2.4, (None, "rank 0"): 1.6}
    assert seconds(found["L"].iterations) == {
        ("region 1", "iteration 1"): 0.5,
        ("region 1", "iteration 2"): -0.1,
        ("region 2", "iteration 1"): 0.5,
        ("region 2", "iteration 2"): 0.1,
    }
    assert seconds(found["D"].regions) == {("region 1", "region 1"): 1.0}
    assert seconds(found["D"].iterations) == {("region 1", "iteration 2"): 1.0}
    assert (found["S'+W+X"].members, found["S'+W+X"].seconds) == (("S'", "W", "X"), 0.0)
    assert "IPCOLMDS" in (found["S'+W+X"].reason or "")


def test_regions_are_listed_by_their_seconds_the_largest_first() -> None:
    shares = by_name(native.advisor_read(PROFILES / "fig4.json"))["L"].regions
    assert [share.name for share in shares] == ["region 2", "region 1"]


def test_what_only_changes_sides_is_dynamic_and_belongs_to_both_sides() -> None:
    found = by_name(native.advisor_read(PROFILES / "fig5.json"))
    assert (found["L"].seconds, found["M'"].seconds, found["D"].seconds) == (0.0, 0.0, 20.0)
    assert seconds(found["D"].processors) == {(None, "rank 0"): 10.0, (None, "rank 1"): 10.0}


def test_inside_a_phase_the_regions_of_the_slowest_processor_share_the_imbalance() -> None:
    work = [[[6.0], [2.0]], [[3.0], [5.0]], [[4.0], [4.0]]]
    found = by_name(build([phase(work)]))["L"]
    assert found.seconds == 1.0
    assert seconds(found.regions) == {("phase", "region 0"): 1.0}


def serial_and_parallel() -> Profile:
    arrays = {name: np.zeros((2, 2, 1)) for name in ("cpu_s", "transfer_s", "io_s", "wait_s", "sync_s")}
    arrays["cpu_s"][0] = [[4.0], [0.0]]
    arrays["wait_s"][1] = [[0.0], [4.0]]
    arrays["wall_s"] = arrays["cpu_s"] + arrays["wait_s"]
    alone = Phase("alone", "serial", np.array([0, 8]), arrays, duration_s=np.array([4.0]), start_s=np.array([1.0]))
    arrays = {name: np.zeros((2, 2, 1)) for name in arrays}
    arrays["cpu_s"][0] = [[6.0], [6.0]]
    arrays["transfer_s"][1] = [[1.0], [3.0]]
    arrays["io_s"][0] = [[1.0], [0.0]]
    arrays["sync_s"][1] = [[0.25], [0.25]]
    arrays["wait_s"][1] = [[1.5], [0.5]]
    arrays["wall_s"] = sum(arrays.values())
    both = Phase("both", "parallel", np.array([1, 7]), arrays, duration_s=np.array([9.75]), start_s=np.array([5.0]))
    return build([alone, both], actual_s=16.0, outside={"start-up": np.array([1.0, 1.0])})


def test_serial_parts_communication_io_and_synchronization_are_found_where_they_are() -> None:
    found = by_name(serial_and_parallel())
    assert list(found) == ["P", "C'", "O", "L", "M'", "D", "S'", "W", "X"]
    assert seconds(found["P"].regions) == {("alone", "region 0"): 2.0}
    assert seconds(found["P"].processors) == {(None, "rank 0"): 2.0}
    assert seconds(found["C'"].regions) == {("both", "region 7"): 2.0}
    assert seconds(found["C'"].processors) == {(None, "rank 1"): 1.5, (None, "rank 0"): 0.5}
    assert seconds(found["O"].regions) == {("both", "region 1"): 0.5}
    assert seconds(found["S'"].processors) == {(None, "rank 1"): 0.25}
    assert seconds(found["W"].regions) == {("both", "region 7"): 0.5}
    assert seconds(found["X"].regions) == {(None, "start-up"): 1.0, (None, "shutdown"): 1.25}


def test_idle_threads_are_a_cause_of_their_own() -> None:
    work = np.array([[[4.0], [0.0]], [[3.0], [3.0]]])
    profile = build(
        [phase(work, regions=[0, 1], arrays={"cpu_s": work})],
        processors=(Processor(0), Processor(0, 1)),
        regions=(Region("outside"), Region("inside", threaded=True)),
    )
    gap = by_name(profile)["P"]
    assert (gap.seconds, gap.regions[0].name) == (2.0, "outside")
    assert [(cause.name, cause.seconds) for cause in gap.causes] == [("threads idle outside parallel regions", 2.0)]


def test_without_phases_what_the_busiest_processor_does_besides_work_is_the_rest() -> None:
    arrays = {name: np.zeros((2, 2, 1)) for name in ("cpu_s", "transfer_s", "io_s", "wait_s", "sync_s")}
    arrays["cpu_s"][0] = [[8.0], [5.0]]
    arrays["transfer_s"][1] = [[1.0], [2.0]]
    arrays["sync_s"][1] = [[0.5], [0.5]]
    arrays["wait_s"][1] = [[0.25], [2.25]]
    arrays["wall_s"] = sum(arrays.values())
    profile = build(
        [Phase("run", "whole", np.array([0, 1]), arrays)], actual_s=10.0, outside={"start-up": np.array([0.2, 0.2])}
    )
    found = by_name(profile)
    assert list(found) == ["P+C'", "O", "L", "M'+D+S'+W+X"]
    assert found["L"].status == "estimated"
    rest = found["M'+D+S'+W+X"]
    expected = {("run", "region 1"): 0.75, (None, "start-up"): 0.2, (None, "rest"): 0.05}
    assert seconds(rest.regions) == expected
    assert seconds(rest.processors) == {(None, "rank 0"): 1.0}
    assert "no synchronizations are known" in (rest.reason or "")


def test_only_cpu_times_leave_one_gap_without_an_invented_place() -> None:
    profile = build([Phase("run", "whole", np.array([0]), {"cpu_s": np.array([[[3.0], [5.0]]])})], actual_s=9.0)
    (gap,) = by_name(profile).values()
    assert gap.name == "P+C'+O+L+M'+D+S'+W+X"
    assert (gap.seconds, gap.status) == (5.0, "measured")
    assert seconds(gap.regions) == {(None, "rest"): 5.0}


def test_a_negative_gap_is_kept_and_explained() -> None:
    profile = build([phase([[4.0, 4.0]], duration_s=np.array([4.0, 4.0]))], actual_s=7.0, cores=1)
    gap = by_name(profile)["X"]
    assert gap.seconds == -1.0
    assert gap.share == pytest.approx(-1 / 7)
    assert "negative: the phases last longer than the run" in (gap.reason or "")


def test_of_many_merged_levels_none_is_blamed_for_a_negative_gap() -> None:
    arrays = {"cpu_s": np.full((1, 2, 1), 8.0), "wall_s": np.full((1, 2, 1), 6.0)}
    (gap,) = by_name(build([Phase("run", "whole", np.array([0]), arrays)], actual_s=7.0)).values()
    assert len(gap.members) > 2
    assert (gap.reason or "").endswith("negative: the times do not fit together")


def test_unseen_system_time_is_said_at_the_gap_that_would_hold_it() -> None:
    arrays = {name: np.ones((1, 2, 3)) for name in ("wait_s", "sync_s", "transfer_s", "io_s")}
    arrays["wall_s"] = np.full((1, 2, 3), 10.0)
    gap = by_name(build([Phase("phase", "parallel", np.array([0]), arrays)], actual_s=40.0))["O"]
    assert (gap.seconds, gap.status) == (3.0, "estimated")
    assert "input and output that was seen" in (gap.reason or "")


def test_many_places_are_listed_up_to_a_limit_and_the_others_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.analysis.gaps.between_bounds.LIMIT", 3)
    work = np.arange(1.0, 9.0)[:, np.newaxis] * np.ones((8, 10))
    found = by_name(build([phase(work)]))["L"]
    assert [share.name for share in found.processors] == ["rank 7", "rank 6", "rank 5", "others"]
    assert len(found.iterations) == 4
    assert sum(share.seconds for share in found.processors) == pytest.approx(found.seconds)


def test_size_classes_are_named_by_their_bytes() -> None:
    assert [format_size_class(number) for number in (0, 1, 17)] == ["0 B", "1 B to 2 B", "64 KiB to 128 KiB"]


def only_io(actual_s: float, status: str = "measured") -> Profile:
    wall, io = np.full((2, 2, 1), 2.0), np.array([[[0.0], [0.0]], [[1.5], [0.5]]])
    whole = Phase("the whole run", "whole", np.array([0, 1]), {"wall_s": wall, "io_s": io})
    return build([whole], actual_s=actual_s, status={"wall_s": "measured", "io_s": status})


@pytest.mark.parametrize("status", ["measured", "estimated"])
def test_io_that_alone_is_told_apart_has_a_gap_of_its_own(status: str) -> None:
    profile = only_io(4.0, status)
    levels = bounds.compute_bounds(profile)
    (gap,) = gaps.attribute_gaps(profile, levels)
    assert [(bound.name, bound.seconds) for bound in levels if bound.seconds is not None] == [
        ("IPC", 3.0),
        ("actual", 4.0),
    ]
    assert (gap.name, gap.members, gap.seconds, gap.status) == ("O", ("O",), 1.0, status)
    assert seconds(gap.regions) == {("the whole run", "region 1"): 1.0}
    assert seconds(gap.processors) == {(None, "rank 0"): 0.75, (None, "rank 1"): 0.25}
    assert "up to the whole run" in (gap.reason or "")


def test_what_lies_outside_of_the_ranks_times_is_not_io() -> None:
    profile = only_io(5.0)
    (gap,) = gaps.attribute_gaps(profile, bounds.compute_bounds(profile))
    assert (gap.name, gap.seconds, gap.status) == ("O+X", 2.0, "measured")
    assert seconds(gap.regions) == {("the whole run", "region 1"): 1.0, (None, "rest"): 1.0}
    assert sum(share.seconds for share in gap.processors) == pytest.approx(2.0)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_edges_that_are_longer_than_the_rest_of_the_run_explain_no_more_than_it(scale: float) -> None:
    profile = serial_and_parallel()
    phases = tuple(
        replace(
            each,
            start_s=None,
            duration_s=None if each.duration_s is None else each.duration_s * scale,
            arrays={name: array * scale for name, array in each.arrays.items()},
        )
        for each in profile.phases
    )
    outside = {"start-up": np.array([6.0, 6.0]) * scale, "shutdown": np.array([3.0, 3.0]) * scale}
    found = by_name(replace(profile, phases=phases, actual_s=16.0 * scale, outside=outside))["X"]
    assert found.seconds == pytest.approx(2.25 * scale)
    assert seconds(found.regions) == {(None, "start-up"): pytest.approx(1.5 * scale),
                                      (None, "shutdown"): pytest.approx(0.75 * scale)}  # fmt: skip


def test_a_merged_gap_names_each_bound_between_its_own_and_none_else() -> None:
    gap = by_name(native.advisor_read(PROFILES / "fig4.json"))["S'+W+X"]
    assert gap.reason == (
        "without IPCOLMDS: the cost of synchronizing is not known; "
        "without IPCOLMDSW: the times between synchronizations are not known"
    )


def test_of_three_merged_levels_none_is_blamed_for_a_negative_gap() -> None:
    profile = native.advisor_read(PROFILES / "fig4.json")
    gap = by_name(replace(profile, actual_s=profile.actual_s - 1.0))["S'+W+X"]
    assert (gap.reason or "").endswith("negative: the times do not fit together")


@pytest.mark.parametrize(("beyond_s", "negative"), [(4e-9, False), (4e-7, True)])
def test_a_gap_is_negative_by_more_than_rounding(beyond_s: float, negative: bool) -> None:
    profile = build([phase([[4.0, 4.0]], duration_s=np.array([4.0, 4.0]))], actual_s=8.0 - beyond_s, cores=1)
    assert ("negative" in (by_name(profile)["X"].reason or "")) is negative


def test_as_many_places_as_the_limit_allows_are_all_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.analysis.gaps.between_bounds.LIMIT", 4)
    work = np.arange(1.0, 9.0)[:, np.newaxis] * np.ones((8, 10))
    found = by_name(build([phase(work)]))["L"]
    assert [share.name for share in found.processors] == ["rank 7", "rank 6", "rank 5", "rank 4"]


def without_work() -> Profile:
    first, second = np.array([[[3.0, 1.0], [5.0, 1.0]]]), np.array([[[1.0], [2.0]]])
    phases = [
        Phase(
            "a",
            "parallel",
            np.array([0]),
            {"cpu_s": first},
            duration_s=np.array([6.0, 2.0]),
            start_s=np.array([0.0, 6.0]),
        ),
        Phase("b", "parallel", np.array([1]), {"cpu_s": second}, duration_s=np.array([3.0]), start_s=np.array([8.0])),
    ]
    return build(phases, actual_s=12.0)


@pytest.mark.parametrize("profile", [serial_and_parallel(), without_work()])
def test_phase_shares_are_what_the_regions_of_each_phase_have(profile: Profile) -> None:
    for gap in by_name(profile).values():
        by_phase = [sum(share.seconds for share in gap.regions if share.phase == each.name) for each in profile.phases]
        assert gaps.compute_phase_shares(profile, gap).tolist() == pytest.approx(by_phase)
