"""A run at the target, measured later, against what the others predicted for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scaling_runs import run

from advisor.analysis import bounds, gaps
from advisor_scaling import target_checks

if TYPE_CHECKING:
    from advisor.model.records import Finding, Gap, Profile

OTHERS = [run(512, p, repeat) for p in (1, 2, 4, 8) for repeat in range(2)]


def gaps_of(profile: Profile) -> tuple[Gap, ...]:
    return gaps.attribute_gaps(profile, bounds.compute_bounds(profile, None))


def check(profile: Profile) -> Finding | None:
    return target_checks.check_prediction(profile, gaps_of(profile), [(one, gaps_of(one)) for one in OTHERS])


def slowed(profile: Profile, seconds: float) -> Profile:
    """The run with that much more of transfers in its last region."""
    phase = profile.phases[0]
    arrays = {name: array.copy() for name, array in phase.arrays.items()}
    for name in ("wall_s", "transfer_s"):
        arrays[name][2] += seconds
    whole = float(arrays["wall_s"].sum(axis=0).max())
    return replace(
        profile, actual_s=whole, phases=(replace(phase, arrays=arrays, duration_s=np.array([whole])),)
    )  # fmt: skip


def test_a_prediction_that_held_is_told() -> None:
    found = check(run(512, 32))
    assert found is not None
    assert found.text.endswith("held.")
    assert found.measures["held"] == 1.0
    assert found.measures["low_s"] <= found.measures["measured_s"] <= found.measures["high_s"]


def test_a_missed_prediction_names_region_and_gap_that_miss_most() -> None:
    later = slowed(run(512, 32), 0.05)
    found = check(later)
    assert found is not None
    assert found.measures["held"] == 0.0
    assert "missed. Region MPI_Allreduce misses most" in found.text
    assert "Gap C' misses most" in found.text
    assert found.measures["missed by region MPI_Allreduce"] == pytest.approx(0.05, rel=0.1)
    assert found.measures["measured_s"] == later.actual_s


@pytest.mark.parametrize("later", [run(512, 4, 5), run(512, 2, 9), run(1024, 32)], ids=["among", "inside", "other N"])
def test_a_run_that_nothing_was_predicted_for_is_not_compared(later: Profile) -> None:
    assert check(later) is None


def test_too_few_points_predict_nothing() -> None:
    later = run(512, 32)
    assert target_checks.check_prediction(later, gaps_of(later), [(one, gaps_of(one)) for one in OTHERS[:4]]) is None
