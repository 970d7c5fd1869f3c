"""Times on other machines, predicted from similar programs, and workloads held against functional units."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.machines import Machine
from advisor.analysis.machines.records import FunctionalUnit
from advisor.model.errors import UsageError
from advisor_similarity.library import LibraryEntry, load_starter
from advisor_similarity.machine_units import balance_units
from advisor_similarity.parallelism_command import measure_cpu_seconds
from advisor_similarity.performance import OPERATIONS, compare_performance, predict_known, predict_seconds
from advisor_similarity.workload import Workload


def make_entry(program: str, fp: float, **seconds: float) -> LibraryEntry:
    """Return a workload of loads and additions, whose share is ``fp``."""
    fine = {"load": 1.0 - fp, "fp add": fp}
    return LibraryEntry(
        program, program, centroid=(0.0, 1.0 - fp, fp, 0.0, 0.0), fine=fine, cycles=1000, operations=1000,
        seconds=seconds,
    )  # fmt: skip


def test_performance_similarity_is_expression_9_of_the_rates() -> None:
    first, second = make_entry("a", 0.5, here=1.0, there=2.0), make_entry("b", 0.5, here=4.0, elsewhere=1.0)
    assert compare_performance(first, second) == {"here": pytest.approx(0.75)}
    assert compare_performance(first, first) == {"here": 0.0, "there": 0.0}


def test_a_program_of_known_ones_takes_their_ratio() -> None:
    known = [make_entry(f"p{n}", 0.1 * n, old=2.0 + n, new=1.0 + n / 2) for n in range(1, 7)]
    found = predict_seconds(make_entry("mine", 0.35, old=8.0), known, "new", "mix")
    assert found is not None
    assert found.reference == "old"
    assert found.seconds == pytest.approx(4.0)
    assert found.low_s == pytest.approx(4.0)
    assert found.high_s == pytest.approx(4.0)
    assert found.neighbours[0][0] in {"p3", "p4"}


def test_near_programs_decide_where_ratios_differ() -> None:
    known = [make_entry(f"p{n}", 0.1 * n, old=1.0, new=1.0 if n < 5 else 10.0) for n in range(1, 10)]
    low = predict_seconds(make_entry("mine", 0.15, old=1.0), known, "new", "mix")
    high = predict_seconds(make_entry("mine", 0.85, old=1.0), known, "new", "mix")
    assert low is not None
    assert high is not None
    assert low.seconds < 2.0 < 5.0 < high.seconds
    assert low.low_s is not None
    assert low.low_s <= low.seconds <= (low.high_s or 0.0)


def test_few_programs_give_no_interval_and_none_no_prediction() -> None:
    known = [make_entry("p", 0.5, new=2.0), make_entry("q", 0.4, old=1.0)]
    found = predict_seconds(make_entry("mine", 0.5), known, "new", "mix")
    assert found is not None
    assert (found.reference, found.low_s, found.high_s) == (OPERATIONS, None, None)
    assert predict_seconds(make_entry("mine", 0.5), known, "nowhere", "mix") is None
    assert predict_seconds(make_entry("p", 0.5), known, "new", "mix") is None  # a program does not teach itself


@given(st.lists(st.floats(0.1, 10.0), min_size=5, max_size=9))
def test_errors_are_those_of_predicting_each_from_the_others(ratios: list[float]) -> None:
    known = [make_entry(f"p{n}", n / 10, old=1.0, new=ratio) for n, ratio in enumerate(ratios)]
    errors = predict_known(known, "new", "old", "mix")
    for entry, error in zip(known, errors, strict=True):
        others = [one for one in known if one is not entry]
        found = predict_seconds(replace(entry, seconds={"old": 1.0}), others, "new", "mix")
        if found is not None and found.reference == "old":
            assert math.log(found.seconds / entry.seconds["new"]) == pytest.approx(error, abs=1e-9)
    assert np.abs(errors).max() <= math.log(max(ratios) / min(ratios)) + 1e-9


def make_workload(**fine: float) -> Workload:
    return Workload(
        "app", "x86_64", (0.0,) * 5, {name.replace("_", " "): rate for name, rate in fine.items()}, 100, 0, 0
    )


def make_machine(**units: FunctionalUnit) -> Machine:
    return Machine("m", "", "", {}, units=units)  # type: ignore[arg-type]  # names of units, as models state them


def test_the_busiest_units_bound_the_cycles() -> None:
    machine = make_machine(load=FunctionalUnit(2.0), fp_add=FunctionalUnit(1.0), int=FunctionalUnit(4.0))
    found = balance_units(make_workload(load=3.0, fp_add=3.0, int_add=4.0, store=1.0), machine)
    assert found is not None
    assert [one.units for one in found.demands] == [("fp_add",), ("load",), ("int",)]
    assert found.cycles == 300.0
    assert [one.cycles for one in found.demands] == [300.0, 150.0, 100.0]
    assert found.missing == ("store",)


def test_units_that_share_pipes_keep_them_busy_together() -> None:
    machine = make_machine(fp_mul=FunctionalUnit(2.0, pipes="multiply"), fp_fma=FunctionalUnit(2.0, pipes="multiply"))
    found = balance_units(make_workload(fp_multiply=2.0, **{"fp multiply-add": 2.0}), machine)
    assert found is not None
    assert found.demands[0].units == ("fp_mul", "fp_fma")
    assert found.cycles == 200.0
    assert found.distance == 0.0


def test_a_comparison_may_be_fused_with_its_branch_and_a_move_renamed() -> None:
    machine = make_machine(int=FunctionalUnit(1.0), branch=FunctionalUnit(1.0))
    workload = make_workload(int_add=1.0, int_compare=2.0, int_move=5.0, **{"branch conditional": 1.5})
    found = balance_units(workload, machine)
    assert found is not None
    assert {one.units: one.demand for one in found.demands} == {("int",): 1.5, ("branch",): 1.5}


def test_proportions_that_fit_are_no_distance_away() -> None:
    machine = make_machine(load=FunctionalUnit(2.0), fp_add=FunctionalUnit(1.0))
    fitting = balance_units(make_workload(load=20.0, fp_add=10.0), machine)
    other = balance_units(make_workload(load=1.0, fp_add=30.0), machine)
    assert fitting is not None
    assert other is not None
    assert fitting.distance == pytest.approx(0.0, abs=1e-12)
    assert 0.3 < other.distance <= 1.0
    assert balance_units(make_workload(load=1.0), make_machine(int=FunctionalUnit(1.0))) is None


def test_every_known_workload_meets_the_units_of_a_machine() -> None:
    machine = make_machine(**{name: FunctionalUnit(1.0) for name in ("int", "load", "store", "fp_add", "branch")})
    for entry in load_starter():
        workload = Workload(entry.name, "x86_64", entry.centroid, entry.fine, entry.cycles, 0, 0)
        found = balance_units(workload, machine)
        assert found is not None
        assert 0.0 <= found.distance <= 1.0


def test_cpu_seconds_are_finer_than_clock_ticks() -> None:
    assert 0 < measure_cpu_seconds((sys.executable, "-c", "")) < 60
    with pytest.raises(UsageError, match="exit code 3"):
        measure_cpu_seconds((sys.executable, "-c", "raise SystemExit(3)"))
