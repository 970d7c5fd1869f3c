from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from operation_counts import counted, table

from advisor.analysis import bounds, gaps
from advisor.analysis.machines.records import FunctionalUnit, Machine, Number, NumberSource

if TYPE_CHECKING:
    from advisor.model.records import Profile


def number(value: float) -> Number:
    return Number(value, "datasheet")


MACHINE = Machine(
    name="toy",
    title="Toy",
    description="One core that starts one addition or multiplication and two loads per cycle of 1 ns",
    sources={"datasheet": NumberSource("Datasheet")},
    frequency=number(1e9),
    flops_per_cycle=number(2.0),
    units={
        "fp_add": FunctionalUnit(number(1.0)),
        "fp_mul": FunctionalUnit(number(1.0)),
        "load": FunctionalUnit(number(2.0)),
    },
)


def test_machine_bounds_are_total_time_over_the_processors() -> None:
    found = {bound.name: bound for bound in bounds.compute_bounds(counted(), MACHINE)}
    assert [found[name].seconds for name in ("M", "MA", "MAC", "MACS", "I")] == [15.0, 30.0, 40.0, 50.0, 60.0]
    assert {found[name].status for name in ("M", "MA", "MAC", "MACS")} == {"modelled"}


def test_their_gaps_are_found_where_the_operations_are() -> None:
    profile = counted()
    found = {
        gap.name: gap for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile, MACHINE), None, MACHINE)
    }
    assert list(found)[:5] == ["A", "C", "S", "$", "P"]
    assert {share.name: share.seconds for share in found["A"].regions} == {"region 1": 20.0, "region 0": -5.0}
    assert {share.name: share.seconds for share in found["$"].regions} == {"region 0": 5.0, "region 1": 5.0}
    for gap in found.values():
        for layout in (gap.regions, gap.processors, gap.iterations):
            assert sum(share.seconds for share in layout) == pytest.approx(gap.seconds, abs=1e-9)
    assert gaps.compute_phase_shares(profile, found["S"], machine=MACHINE).tolist() == [10.0]


def test_levels_without_counts_merge() -> None:
    profile = counted()
    partly = replace(profile, counts={"source_ops.fp_add": table(10e9, 10e9)})
    found = gaps.attribute_gaps(partly, bounds.compute_bounds(partly, MACHINE), None, MACHINE)
    assert [gap.name for gap in found][:2] == ["A", "C+S+$"]


def test_operations_in_regions_without_times_lie_outside_all_phases() -> None:
    profile = counted()
    rows = table(10e9, 10e9)
    rows[5] = 2e9
    gap = gaps.attribute_gaps(*_with(profile, rows))[0]
    assert ("outside all phases", -2.0) in [(share.name, share.seconds) for share in gap.regions]
    assert sum(share.seconds for share in gap.regions) == pytest.approx(gap.seconds)


def _with(profile: Profile, rows: np.ndarray) -> tuple[object, ...]:
    other = replace(profile, counts={"scheduled_cycles": rows})
    return other, bounds.compute_bounds(other, MACHINE), None, MACHINE


@pytest.mark.parametrize(
    ("machine", "lacking", "command"),
    [
        (None, "no machine model", "gapwatch advise --machine host"),
        (replace(MACHINE, frequency=None), "no clock", "gapwatch machines list"),
        (MACHINE, "schedule was not analysed", "gapwatch run --deep"),
    ],
)
def test_what_is_missing_is_named_with_a_command(machine: Machine | None, lacking: str, command: str) -> None:
    profile = counted() if machine is not MACHINE else replace(counted(), counts={})
    found = {bound.name: bound for bound in bounds.compute_bounds(profile, machine)}["MACS"]
    assert found.seconds is None
    assert lacking in (found.reason or "")
    assert command in (found.collect or "")


def test_their_gaps_follow_work_over_iterations_and_counts_over_processors() -> None:
    profile = counted()
    (whole,) = profile.phases
    arrays = {name: np.concatenate((0.75 * array, 0.25 * array), axis=2) for name, array in whole.arrays.items()}
    uneven = {name: rows * [1.5, 0.5] for name, rows in profile.counts.items()}
    profile = replace(profile, phases=(replace(whole, arrays=arrays),), counts=uneven)
    scheduled = gaps.attribute_gaps(profile, bounds.compute_bounds(profile, MACHINE), None, MACHINE)[2]
    assert (scheduled.name, scheduled.seconds) == ("S", 10.0)
    assert [share.seconds for share in scheduled.iterations] == pytest.approx([7.5, 2.5])
    assert {share.name: share.seconds for share in scheduled.processors} == {"rank 0": 7.5, "rank 1": 2.5}
