"""Events per second from a trace in memory to its profile, against one numpy sort of as many numbers."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.trace.events import Kind, Location, Trace
from advisor.trace.profile import from_trace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from trace_builder import NUMBER, REGIONS

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

RANKS, ITERATIONS, NEIGHBOURS = 64, 1000, (1, -1, 2, -2)


def halo_exchange(iterations: int = ITERATIONS) -> Trace:
    """Return a loop of work, sends to and receives from four neighbours, and a reduction over all ranks."""
    rows = [("work", Kind.ENTER, 0, 0.01), ("work", Kind.LEAVE, 0, 1e-3)]
    for name, kind, sign in (("MPI_Send", Kind.SEND, 1), ("MPI_Recv", Kind.RECV, -1)):
        for step in NEIGHBOURS:
            rows += [(name, Kind.ENTER, 0, 1e-6), (name, kind, sign * step, 1e-4), (name, Kind.LEAVE, 0, 1e-6)]
    reduction = ((Kind.ENTER, 1e-6), (Kind.COLLECTIVE, 3e-3), (Kind.LEAVE, 1e-6))
    rows += [("MPI_Allreduce", kind, 0, pause) for kind, pause in reduction]
    kinds = np.tile(np.array([row[1] for row in rows], dtype=np.uint8), iterations)
    regions = np.tile(np.array([NUMBER[row[0]] for row in rows], dtype=np.int32), iterations)
    steps = np.tile(np.array([row[2] for row in rows], dtype=np.int32), iterations)
    times = np.cumsum(np.tile(np.array([row[3] for row in rows]), iterations))
    moving = np.isin(kinds, (Kind.SEND, Kind.RECV))
    talking = moving | (kinds == Kind.COLLECTIVE)
    tags = np.where(moving, np.abs(steps) * 2 + np.where(kinds == Kind.SEND, steps > 0, steps < 0), 0)
    partners = [np.where(moving, (rank + steps) % RANKS, -1) for rank in range(RANKS)]
    return Trace(
        program="halo",
        tool="benchmark",
        locations=tuple(Location(f"rank {rank}", rank) for rank in range(RANKS)),
        regions=REGIONS,
        communicators=(tuple(range(RANKS)),),
        files=(),
        first=np.arange(RANKS + 1) * len(kinds),
        time_s=np.concatenate([times + 1e-8 * rank for rank in range(RANKS)]),
        kind=np.tile(kinds, RANKS),
        region=np.tile(regions, RANKS),
        comm=np.tile(np.where(talking, 0, -1).astype(np.int32), RANKS),
        partner=np.concatenate(partners).astype(np.int32),
        tag=np.tile(tags.astype(np.int32), RANKS),
        size=np.tile(np.where(talking, 1024, -1).astype(np.int64), RANKS),
        request=np.zeros(len(kinds) * RANKS, dtype=np.uint64),
    )


@pytest.fixture(scope="module")
def trace() -> Trace:
    return halo_exchange()


@pytest.mark.benchmark(group="trace analysis")
@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_from_trace(benchmark: BenchmarkFixture, trace: Trace, compiled: bool) -> None:
    if compiled:
        pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    profile = benchmark.pedantic(from_trace, args=(trace,), kwargs={"compiled": compiled}, rounds=3, warmup_rounds=1)
    benchmark.extra_info["events"] = len(trace.kind)
    benchmark.extra_info["million events per second"] = len(trace.kind) / benchmark.stats.stats.min / 1e6
    assert profile.phases[0].iterations == ITERATIONS
    assert not any(note.name.startswith("unmatched") for note in profile.notes)


@pytest.mark.benchmark(group="trace analysis")
def test_baseline_sort(benchmark: BenchmarkFixture, trace: Trace) -> None:
    ordered = benchmark.pedantic(np.sort, args=(trace.time_s,), rounds=3, warmup_rounds=1)
    assert ordered[0] <= ordered[-1]


@pytest.mark.benchmark(group="memory of trace analysis")
@pytest.mark.parametrize("times", [1, 4])
def test_memory_beyond_columns_and_profile(benchmark: BenchmarkFixture, times: int) -> None:
    """Bytes held at most: nearly the same in a run of four times the length, since windows do not grow."""
    long = halo_exchange(times * ITERATIONS)

    def held() -> int:
        tracemalloc.start()
        profile = from_trace(long)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most - sum(array.nbytes for phase in profile.phases for array in phase.arrays.values())

    most = benchmark.pedantic(held, rounds=1)
    benchmark.extra_info["MB"] = round(most / 1e6)
    benchmark.extra_info["bytes per event"] = round(most / len(long.kind), 1)
