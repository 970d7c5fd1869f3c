"""All bounds and gaps of a run that does not fit into memory, against reading it once.

``pytest -s benchmarks/test_bounds.py`` prints how many times longer the whole computation takes than ``numpy.sum`` over
the same mapped file of 1000 regions x 1000 processors x 100 iterations, 800 MB.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.analysis import bounds, gaps
from advisor.analysis.loads import summarize_loads
from advisor.model.records import Phase, Processor, Profile, Region

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

REGIONS, PROCESSORS, ITERATIONS = 1000, 1000, 100


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """Loads of (regions, processors, iterations) in a mapped file, each region different."""
    path: Path = tmp_path_factory.mktemp("loads") / "work.npy"
    shape = (REGIONS, PROCESSORS, ITERATIONS)
    loads = np.lib.format.open_memmap(path, "w+", dtype=np.float64, shape=shape)
    block = 1e-3 * (1 + 0.1 * np.random.default_rng(1).random(shape[1:]))
    for region in range(REGIONS):
        loads[region] = np.roll(block, region, axis=0)
    loads.flush()
    return np.load(path, mmap_mode="r")


def profile(array: np.ndarray, phases: int, threads: int = 1) -> Profile:
    """A run of so many synchronized phases, each with its part of the regions."""
    height = REGIONS // phases
    return Profile(
        program="large",
        run="1",
        reader="benchmark",
        actual_s=float(REGIONS * ITERATIONS),
        processors=tuple(Processor(q // threads, q % threads) for q in range(PROCESSORS)),
        regions=tuple(Region(f"region {r}", threaded=r % 2 == 1) for r in range(REGIONS)),
        phases=tuple(
            Phase(
                f"phase {p}",
                "parallel",
                np.arange(p * height, (p + 1) * height),
                {"work_s": array[p * height : (p + 1) * height]},
            )
            for p in range(phases)
        ),
        status={"work_s": "measured"},
    )


def analyse(run: Profile) -> None:
    """Everything that is computed from the arrays."""
    loads = summarize_loads(run)
    gaps.attribute_gaps(run, bounds.compute_bounds(run, None, loads), loads)


@pytest.mark.parametrize(("phases", "threads"), [(1000, 1), (10, 1), (1, 1), (1000, 4)])
def test_all_bounds_and_gaps(mapped: np.ndarray, benchmark: BenchmarkFixture, phases: int, threads: int) -> None:
    run = profile(mapped, phases, threads)
    once = min(_seconds_of_sum(mapped) for _ in range(3))
    benchmark.pedantic(analyse, (run,), rounds=3, warmup_rounds=1)
    if benchmark.stats is None:
        return
    ratio = benchmark.stats.stats.min / once
    benchmark.extra_info["ratio to one sum"] = round(ratio, 2)
    print(f"\n{phases} phases, {threads} threads per rank: {ratio:.1f} times one sum over {mapped.nbytes / 1e6:.0f} MB")


def _seconds_of_sum(array: np.ndarray) -> float:
    start = time.perf_counter()
    array.sum()
    return time.perf_counter() - start
