"""Top-down shares, operations and bytes in Caliper's files: what bounds the computation, which kernel costs most."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor.advice.computation import describe_computation
from advisor.analysis import bounds, gaps, loads, soundness
from advisor.formats import caliper
from advisor.formats.caliper.hardware_names import is_hardware_metric
from advisor.model.records import Profile
from advisor.support import contract

FILE = Path(__file__).parents[1] / "profiles" / "caliper" / "topdown" / "rajaperf.cali"


@pytest.fixture(scope="module")
def profile() -> Profile:
    return caliper.advisor_read(FILE)


def row(profile: Profile, name: str) -> int:
    return [region.name for region in profile.regions].index(name)


def test_shares_times_seconds_add_up(profile: Profile) -> None:
    """Of the 311 s in Polybench_3MM 81.9 % wait for data, as the file says."""
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    counts = profile.counts
    wall = profile.phases[0].arrays["wall_s"].sum()
    assert counts["topdown.all_s"].sum() == pytest.approx(wall)
    top = sum(counts[f"topdown.{name}_s"].sum() for name in ("retiring", "speculation", "frontend", "backend"))
    assert top == pytest.approx(wall, rel=1e-2)
    kernel = row(profile, "Polybench_3MM")
    share = counts["topdown.memory_s"][kernel] / counts["topdown.all_s"][kernel]
    assert float(share[0]) == pytest.approx(0.8193, abs=1e-3)


def test_the_cache_gap_is_what_waits_for_data(profile: Profile) -> None:
    levels = {bound.name: bound for bound in bounds.compute_bounds(profile, None)}
    waiting = profile.counts["topdown.memory_s"].sum()
    assert levels["MACS"].seconds == pytest.approx(levels["I"].seconds - waiting)
    assert levels["MACS"].status == "estimated"
    summary = loads.summarize_loads(profile)
    found = gaps.attribute_gaps(profile, tuple(levels.values()), summary)
    cache = next(gap for gap in found if gap.name == "$")
    assert cache.seconds == pytest.approx(waiting)
    assert cache.regions[0].name == "Polybench_3MM"
    assert sum(share.seconds for share in cache.regions) == pytest.approx(cache.seconds)


def test_advice_says_what_the_kernel_is_bound_by(profile: Profile) -> None:
    found = describe_computation(profile, bounds.compute_bounds(profile, None))
    assert found is not None
    assert "of its issue slots 64.7 % wait for data" in found.text
    assert "Polybench_3MM takes most (15.5 %)" in found.text
    assert "Gflop/s by its own formula" in found.text


def test_work_of_kernels_is_counted_once(profile: Profile) -> None:
    """Caliper hands the largest value on to the groups: only kernels count."""
    flops = profile.counts["source_ops.flops"][:, 0]
    assert flops[row(profile, "Basic")] == 0
    assert flops[row(profile, "Basic_MAT_MAT_SHARED")] == 242882191360
    assert {bound.name for bound in bounds.compute_bounds(profile, None) if bound.seconds is not None} >= {"MACS", "I"}


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("any#topdown.memory_bound", True),
        ("any#any#topdown.mem_bound", True),
        ("Memory bound", True),
        ("BE bound", True),
        ("topdown.slots", False),
        ("any#any#max#Flops/Rep", True),
        ("min#Flops/Rep", False),
        ("sum#Bytes/Rep", False),
        ("Reps", True),
        ("Iterations/Rep", False),
    ],
)
def test_metrics_are_known_by_their_names(name: str, used: bool) -> None:
    assert is_hardware_metric(name) == used


def test_shares_that_do_not_add_up_are_not_believed(tmp_path: Path) -> None:
    text = FILE.read_text(encoding="utf-8").replace("topdown.retiring", "topdown.nothing")
    (tmp_path / "x.cali").write_text(text, encoding="utf-8")
    found = caliper.advisor_read(tmp_path / "x.cali")
    assert not any(name.startswith(("topdown", "unstalled")) for name in found.counts)
    assert np.isfinite(found.actual_s)
