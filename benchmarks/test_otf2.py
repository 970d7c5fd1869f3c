"""Events per second from an OTF2 archive to its trace, against the reader of the ``otf2`` package on the same archive.

The archive has a million records, as a halo exchange records them; each figure includes the start of the
reading process and everything up to the ``Trace``. ``extra_info`` holds events per second and the ratio.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import otf2
import pytest
from otf2.enums import CollectiveOp

from advisor.readers.otf2 import read_trace
from advisor.traces.profile import from_trace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from otf2_archives import Archive

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from advisor.model import Profile

RANKS, RECORDS = 16, 1_000_000
NOBODY = 2**32 - 1
#: Records of one iteration.
ITERATION = 20


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of ``RECORDS`` records on ``RANKS`` ranks."""
    path = tmp_path_factory.mktemp("otf2") / "halo"
    with Archive(path, ranks=RANKS) as written:
        for rank in range(RANKS):
            for step in range(RECORDS // RANKS // ITERATION):
                iteration(written, rank, step)
    return path


def iteration(archive: Archive, rank: int, step: int) -> None:
    """Write work, a receive and a send beside it, and a reduction over all ranks."""
    events, world, now = archive.events(rank), archive.world, 20_000 * step
    for part in range(4):
        events.enter(now + 2000 * part, archive.region(f"kernel {(step + part) % 30}"))
        events.leave(now + 2000 * part + 1900, archive.region(f"kernel {(step + part) % 30}"))
    post, wait, reduce = (archive.region(name) for name in ("MPI_Isend", "MPI_Waitall", "MPI_Allreduce"))
    events.enter(now + 9000, post)
    events.mpi_irecv_request(now + 9100, 2 * step)
    events.mpi_isend(now + 9200, (rank + 1) % RANKS, world, 7, 4096, 2 * step + 1)
    events.leave(now + 9300, post)
    events.enter(now + 9400, wait)
    events.mpi_irecv(now + 9500, (rank - 1) % RANKS, world, 7, 4096, 2 * step)
    events.mpi_isend_complete(now + 9600, 2 * step + 1)
    events.leave(now + 9700, wait)
    events.enter(now + 9800, reduce)
    events.mpi_collective_begin(now + 9801)
    events.mpi_collective_end(now + 9900, CollectiveOp.ALLREDUCE, world, NOBODY, 8, 8)
    events.leave(now + 9901, reduce)


@pytest.fixture(scope="session")
def reference_s(archive: Path) -> float:
    """Seconds that the package's own reader takes to walk through all events."""
    begin = time.perf_counter()
    with otf2.reader.open(str(archive / "traces.otf2")) as trace:
        count = sum(1 for _ in trace.events)
    assert count == pytest.approx(RECORDS, rel=0.01)
    return time.perf_counter() - begin


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_events_per_second(benchmark: BenchmarkFixture, archive: Path, reference_s: float, compiled: bool) -> None:
    if compiled:
        pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    trace = benchmark.pedantic(read_trace, (archive, compiled), rounds=5, warmup_rounds=1)
    seconds = benchmark.stats.stats.median
    benchmark.extra_info["million records per second"] = RECORDS / seconds / 1e6
    benchmark.extra_info["times as fast as the package's reader"] = reference_s / seconds
    assert len(trace.kind) == pytest.approx(RECORDS * (ITERATION - 1) / ITERATION, rel=0.01)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_events_per_second_to_the_profile(benchmark: BenchmarkFixture, archive: Path, compiled: bool) -> None:
    """Reading and the split of waiting together."""
    if compiled:
        pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")

    def profile() -> Profile:
        return from_trace(read_trace(archive, compiled), compiled=compiled)

    found = benchmark.pedantic(profile, rounds=5, warmup_rounds=1)
    benchmark.extra_info["million records per second"] = RECORDS / benchmark.stats.stats.median / 1e6
    assert "wait_s" in found.phases[0].arrays


def test_start_up(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    with Archive(tmp_path / "small", ranks=2) as written:
        for rank in range(2):
            iteration(written, rank, 0)
    trace = benchmark(read_trace, tmp_path)
    assert len(trace.kind) == 2 * (ITERATION - 1)
