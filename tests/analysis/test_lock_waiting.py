"""Waiting for critical sections that CPU clocks prove, and what passing locks takes, however busy it was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from fact_sheets import site_values
from strategies import build, phase

from advisor.analysis.disturbance import LONGEST_DELAY, doubtful_seconds
from advisor.analysis.proven_imbalance import (
    ACQUISITIONS,
    CRITICAL_SECONDS,
    HANDOVER_S,
    RECORDING_SECONDS,
    predict_handovers,
    prove_imbalance,
    prove_lock_waiting,
)
from advisor.model.records import CAUSE_CATEGORIES, Causes, Phase, Processor

if TYPE_CHECKING:
    from advisor.model.records import Profile

CALLS = 1000


def run(inside_s: tuple[float, float], computed_s: tuple[float, float], waited_s: float, ranks: int = 1) -> Profile:
    """Two threads that compute so long, some of it inside of a critical section, and wait for that."""
    cpu_s = np.array(computed_s)[None, :, None]
    waiting = np.full((1, 2, 1), waited_s)
    arrays = {"cpu_s": cpu_s, "wait_s": waiting, "wall_s": cpu_s + waiting}
    arrays |= dict.fromkeys(("transfer_s", "sync_s", "io_s", "os_s"), np.zeros(waiting.shape))
    length = float(arrays["wall_s"].max())
    step = Phase("step", "parallel", np.array([0]), arrays, "", np.zeros(1), np.full(1, length))
    one, nothing = np.array([0]), np.array([-1])
    causes = Causes(
        ("lock",), (), np.array([CAUSE_CATEGORIES.index("wait")]), one, one, one, nothing, one, nothing, nothing,
        nothing, np.array([2 * waited_s]), np.array([2 * CALLS]), one,
    )  # fmt: skip
    counts = {
        ACQUISITIONS: np.full((1, 2), float(CALLS)),
        CRITICAL_SECONDS: np.array([inside_s]),
        LONGEST_DELAY: np.array([[waited_s, 0.0]]),
    }
    processors = tuple(Processor(q % ranks, q // ranks) for q in range(2))
    found = replace(build([phase([[1.0], [1.0]])]), phases=(step,), actual_s=length, counts=counts, causes=causes)
    return replace(found, status=dict.fromkeys(arrays, "measured"), processors=processors, paradigms=("openmp",))


def test_what_is_done_one_after_the_other_is_waited_for() -> None:
    """Six seconds inside take six seconds, of which each of the two threads computes for four."""
    busy = run((3.0, 3.0), (4.0, 4.0), waited_s=50.0)
    assert prove_lock_waiting(busy, [0]) == pytest.approx(2.0)
    assert prove_lock_waiting(busy, []) == 0.0
    assert prove_imbalance(busy)["W"] == pytest.approx(2.0)
    assert doubtful_seconds(busy, "W", proven_s=2.0, seconds=50.0) == pytest.approx(48.0)


def test_a_section_that_is_seldom_taken_proves_nothing() -> None:
    assert prove_lock_waiting(run((1.0, 1.0), (4.0, 4.0), waited_s=50.0), [0]) == 0.0


def test_processes_have_sections_of_their_own() -> None:
    """Each of the ranks has only one thread, which waits for nobody."""
    apart = run((3.0, 3.0), (4.0, 4.0), waited_s=1.0, ranks=2)
    assert prove_lock_waiting(apart, [0]) == 0.0
    handovers = predict_handovers(apart)
    assert handovers is not None
    assert not handovers.any()


def test_each_acquisition_of_a_shared_lock_passes_it_on() -> None:
    handovers = predict_handovers(run((0.0, 0.0), (4.0, 4.0), waited_s=0.0))
    assert handovers == pytest.approx(np.full((1, 2), CALLS * HANDOVER_S))


@pytest.mark.parametrize(("recording_s", "cost_s"), [(0.0, 3.0), (4.0, 1.0), (7.0, 0.0)])
def test_what_recording_took_is_no_cost_of_the_lock(recording_s: float, cost_s: float) -> None:
    """Two processes take locks for six of their eight seconds: three each, less what recording took of that."""
    apart = run((0.0, 0.0), (4.0, 4.0), waited_s=0.0, ranks=2)
    code = {
        "code.all_s": np.full((1, 2), 4.0),
        "code.known_s": np.full((1, 2), 4.0),
        "code.lock_s": np.full((1, 2), 3.0),
    }
    recorded = {RECORDING_SECONDS: np.full((1, 2), recording_s / 2)}
    found = replace(apart, counts=apart.counts | code | recorded)
    assert site_values(found)["code.lock_cost_s"] == pytest.approx(cost_s)
