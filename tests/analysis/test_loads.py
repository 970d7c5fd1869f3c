from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from strategies import build, phase

from advisor.analysis import bounds, gaps
from advisor.analysis.loads import summarize_loads
from advisor.analysis.loads.arrays import find_rank_threads
from advisor.analysis.loads.phases import apportion_seconds
from advisor.model.records import Phase, Processor, Region

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = (40, 500, 200)


@pytest.mark.parametrize("phases", [1, 40])
@pytest.mark.parametrize("threads", [1, 4])
def test_arrays_larger_than_memory_are_never_copied(tmp_path: Path, phases: int, threads: int) -> None:
    np.save(tmp_path / "work.npy", np.random.default_rng(2).random(SHAPE))
    mapped = np.load(tmp_path / "work.npy", mmap_mode="r")
    height = SHAPE[0] // phases
    parts = [slice(p * height, (p + 1) * height) for p in range(phases)]
    profile = build(
        [
            Phase(f"phase {p}", "parallel", np.arange(SHAPE[0])[part], {"work_s": mapped[part]})
            for p, part in enumerate(parts)
        ],
        actual_s=1e5,
        processors=tuple(Processor(q // threads, q % threads) for q in range(SHAPE[1])),
        regions=tuple(Region(f"region {r}", threaded=r % 2 == 0) for r in range(SHAPE[0])),
    )
    tracemalloc.start()
    try:
        loads = summarize_loads(profile)
        gaps.attribute_gaps(profile, bounds.compute_bounds(profile, None, loads), loads)
        highest = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert highest < mapped.nbytes / 4


def test_the_first_thread_of_a_rank_is_the_one_of_the_lowest_number() -> None:
    team = find_rank_threads([Processor(1, 2), Processor(0), Processor(1, 1), Processor(1, 5)])
    assert team.master.tolist() == [2, 1, 2, 2]
    assert team.others.tolist() == [0, 3]
    assert team.followers.tolist() == [0.0, 0.0, 2.0, 0.0]


def test_the_totals_of_a_phase() -> None:
    (found,) = summarize_loads(build([phase([[1.0, 6.0, 2.0], [5.0, 1.0, 2.0]])])).phases
    assert found.work.tolist() == [9.0, 8.0]
    assert (found.slowest, found.peak.tolist(), found.decider.tolist()) == (0, [5.0, 6.0, 2.0], [1, 0, 0])
    assert found.mean.tolist() == [3.0, 3.5, 2.0]
    assert (found.steady_s, found.dynamic_s) == (0.5, 4.0)


def test_a_profile_whose_work_is_not_known_has_no_loads_of_phases() -> None:
    loads = summarize_loads(build([Phase("phase", "parallel", np.array([0]), {"wall_s": np.ones((1, 2, 1))})]))
    assert not loads.phases[0].has_work
    assert dict(loads.spreads) == {}


def test_what_is_shared_out_adds_up_and_goes_to_positive_weights() -> None:
    assert apportion_seconds(6.0, np.array([1.0, -5.0, 2.0])).tolist() == [2.0, 0.0, 4.0]
    assert apportion_seconds(6.0, np.array([-1.0, 0.0])).tolist() == [3.0, 3.0]
