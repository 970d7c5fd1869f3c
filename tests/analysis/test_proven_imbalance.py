"""Imbalance that CPU clocks prove counts however busy the machine was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from strategies import build, phase

from advisor.advice import facts
from advisor.analysis import bounds, gaps
from advisor.analysis.disturbance import LONGEST_DELAY, UNREPEATED, doubtful_seconds
from advisor.analysis.proven_imbalance import prove_imbalance
from advisor.model.records import Phase
from advisor.trace.counts import IDLE_ENDS

if TYPE_CHECKING:
    from advisor.model.records import Profile

STEPS = 10


def run(computed: tuple[float, float], waited: tuple[float, float], delayed_s: float = 0.0) -> Profile:
    """Two ranks that compute and wait for so long in each of ten steps, in calls that others made longer."""
    shape = (1, 2, STEPS)
    cpu_s, wait_s = (np.broadcast_to(np.array(seconds)[None, :, None], shape) for seconds in (computed, waited))
    length = float((cpu_s + wait_s).max())
    arrays = {"cpu_s": cpu_s, "wait_s": wait_s, "wall_s": cpu_s + wait_s}
    arrays |= dict.fromkeys(("transfer_s", "sync_s", "io_s", "os_s"), np.zeros(shape))
    step = Phase(
        "step", "parallel", np.array([0]), arrays, "MPI_Barrier", np.arange(STEPS) * length, np.full(STEPS, length)
    )
    counts = {LONGEST_DELAY: np.array([[delayed_s, 0.0]])}
    found = replace(build([phase([[1.0], [1.0]])]), phases=(step,), actual_s=length * STEPS, counts=counts)
    return replace(found, status=dict.fromkeys(arrays, "measured"), cores=2, paradigms=("mpi",))


def test_who_computes_less_and_waits_has_less_to_do() -> None:
    assert prove_imbalance(run((1.0, 0.4), (0.1, 0.8))) == pytest.approx({"L": 2.3, "M'": 0.0, "D": 0.0, "W": 0.0}), (
        "3 s, less a tenth of what both compute"
    )


def test_who_computes_less_and_hardly_waits_was_given_less() -> None:
    """The second rank had no core for 0.5 s of each step, and took less of the work that is handed out on demand."""
    assert prove_imbalance(run((1.0, 0.5), (0.0, 0.05)))["L"] == 0.0


def test_threads_that_have_ended_their_parts_of_a_region_wait_in_no_phase() -> None:
    ended = run((1.0, 0.4), (0.0, 0.0))
    assert prove_imbalance(ended)["L"] == 0.0
    idle = replace(ended, counts={**ended.counts, IDLE_ENDS: np.array([[0.0, 5.0]])})
    assert prove_imbalance(idle)["L"] == pytest.approx(2.5 - 0.7), "5 s of two threads, less a tenth of 7 s"


def test_nothing_is_proven_without_cpu_clocks() -> None:
    guessed = run((1.0, 0.4), (0.1, 0.8))
    assert prove_imbalance(replace(guessed, status={**guessed.status, "cpu_s": "estimated"})) == {}


@pytest.mark.parametrize(("proven_s", "doubtful_s"), [(0.0, 2.0), (2.0, 1.0), (3.5, 0.0)])
def test_delays_hide_no_more_than_what_is_not_proven(proven_s: float, doubtful_s: float) -> None:
    disturbed = run((1.0, 0.4), (0.1, 0.8), delayed_s=2.0)
    assert doubtful_seconds(disturbed, "L", proven_s=proven_s, seconds=3.0) == doubtful_s


def test_what_cores_differ_by_is_not_taken_off_twice() -> None:
    """What is proven is without it already."""
    disturbed = run((1.0, 0.4), (0.1, 0.8), delayed_s=2.0)
    uneven = replace(disturbed, counts={**disturbed.counts, UNREPEATED: np.array([[0.5, 0.0]])})
    assert doubtful_seconds(uneven, "L", seconds=3.0) == 2.5
    assert doubtful_seconds(uneven, "L", proven_s=2.0, seconds=3.0) == 1.0


@pytest.mark.parametrize(("waited", "least_s"), [((0.0, 0.6), 2.3), ((0.6, 0.05), 0.0)])
def test_a_gap_is_known_down_to_what_is_proven(waited: tuple[float, float], least_s: float) -> None:
    profile = run((1.0, 0.4), waited, delayed_s=8.0)
    levels = bounds.compute_bounds(profile)
    sheet = facts.collect_facts(profile, levels, gaps.attribute_gaps(profile, levels))
    span = sheet.run.gap_span("L")
    assert (span.low, span.high) == pytest.approx((least_s, 3.0))
