"""Events per second from OTF2 archives to decoded columns and to a trace, against others that read the same archive.

The archives hold what a halo exchange records, the larger one six million events. ``extra_info`` holds millions of
events a second, and how many times as fast as the ``otf2`` package's Python reader (where its wheel can be installed;
it reads the small archive) and as ``otf2-print --silent`` (where it is installed; in seconds of the process) that is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.formats.otf2 import read_trace
from advisor.formats.otf2.anchor import read_anchor
from advisor.formats.otf2.id_lookup import IdLookup
from advisor.formats.otf2.reading import EventReader, RecordedEvents
from advisor.trace.profile import from_trace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from otf2_archives import ALLREDUCE, Archive, Columns
from otf2_writer import EVENTS, NONE_32

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from advisor.model.records import Profile

LOCATIONS, KERNELS = 4, 30
#: Iterations per location of the small and the large archive.
SMALL, LARGE = 12_500, 75_000
CALL = ("enter", "leave")
#: The events of an iteration.
ITERATION = (
    *CALL * 4, "enter", "mpi_irecv_request", "mpi_isend", "leave", "enter", "mpi_irecv", "mpi_isend_complete", "leave",
    "enter", "mpi_collective_begin", "mpi_collective_end", "leave",
)  # fmt: skip
#: Which call of the iteration each event belongs to.
CALLED = (0, 0, 1, 1, 2, 2, 3, 3, *[4] * 4, *[5] * 4, *[6] * 4)
COMPILED = pytest.param(True, id="compiled", marks=pytest.mark.skipif(not find_spec("numba"), reason="needs numba"))
WAYS = pytest.mark.parametrize("compiled", [pytest.param(False, id="plain"), COMPILED])


def write_halo_exchange(path: Path, iterations: int) -> Path:
    """Write an archive of ``iterations`` on each location."""
    with Archive(path, ranks=LOCATIONS) as archive:
        for kernel in range(KERNELS):
            archive.region(f"kernel {kernel}")
        for rank in range(LOCATIONS):
            archive.events(rank).given = halo_exchange(rank, iterations)
    return path


def halo_exchange(rank: int, iterations: int) -> Columns:
    """Return the events of one rank: work, a message to the right, one from the left, a reduction over all."""
    record = np.tile(np.array([EVENTS[name][0] for name in ITERATION], dtype=np.uint8), iterations)
    step = np.repeat(np.arange(iterations, dtype=np.uint64), len(ITERATION))
    place = np.tile(np.arange(len(ITERATION), dtype=np.uint64), iterations)
    called = np.tile(np.array(CALLED, dtype=np.uint64), iterations)
    values = np.zeros((len(record), 6), dtype=np.uint64)
    fields = {
        "enter": ((step + called) % KERNELS,),
        "leave": ((step + called) % KERNELS,),
        "mpi_irecv_request": (2 * step,),
        "mpi_isend": ((rank + 1) % LOCATIONS, 0, 7, 4096, 2 * step + 1),
        "mpi_irecv": ((rank - 1) % LOCATIONS, 0, 7, 4096, 2 * step),
        "mpi_isend_complete": (2 * step + 1,),
        "mpi_collective_end": (ALLREDUCE, 0, NONE_32, 8, 8),
    }
    for name, columns in fields.items():
        chosen = record == EVENTS[name][0]
        for number, column in enumerate(columns):
            values[chosen, number] = np.broadcast_to(np.asarray(column, dtype=np.uint64), record.shape)[chosen]
    return Columns(step * np.uint64(30_000) + place * np.uint64(1000), record, values)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_halo_exchange(tmp_path_factory.mktemp("otf2") / "small", SMALL)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_halo_exchange(tmp_path_factory.mktemp("otf2") / "large", LARGE)


@pytest.fixture(scope="session")
def package_rate(small: Path) -> float | None:
    """Events a second of the ``otf2`` package's own reader, which walks through all of the small archive."""
    if not find_spec("otf2"):
        return None
    import otf2

    begin = time.perf_counter()
    with otf2.reader.open(str(small / "traces.otf2")) as trace:
        count = sum(1 for _ in trace.events)
    return count / (time.perf_counter() - begin)


@pytest.fixture(scope="session")
def printer_rate(large: Path) -> float | None:
    """Events a second of ``otf2-print --silent``: the fastest of three."""
    if not shutil.which("otf2-print"):
        return None
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        subprocess.run(["otf2-print", "--silent", large / "traces.otf2"], check=True, capture_output=True)
        seconds.append(time.perf_counter() - begin)
    return events_in(LARGE) / min(seconds)


def events_in(iterations: int) -> int:
    return LOCATIONS * iterations * len(ITERATION)


def decode(path: Path, compiled: bool) -> RecordedEvents:
    """Return the events of an archive as columns."""
    anchor = path / "traces.otf2"
    lookups = IdLookup({kernel: kernel for kernel in range(KERNELS)}), IdLookup({0: 0}), IdLookup({})
    return EventReader(anchor, read_anchor(anchor), *lookups).read_events(list(range(LOCATIONS)), compiled=compiled)


@WAYS
def test_decoded_events_per_second(
    benchmark: BenchmarkFixture,
    small: Path,
    large: Path,
    package_rate: float | None,
    printer_rate: float | None,
    compiled: bool,
) -> None:
    path, count = (large, events_in(LARGE)) if compiled else (small, events_in(SMALL))
    events = benchmark.pedantic(decode, (path, compiled), rounds=5, warmup_rounds=1)
    rate = count / benchmark.stats.stats.min
    benchmark.extra_info["million events per second"] = rate / 1e6
    for name, other in (("the package's reader", package_rate), ("otf2-print --silent", printer_rate)):
        if other is not None:
            benchmark.extra_info[f"times as fast as {name}"] = rate / other
    assert events.columns.used == count // len(ITERATION) * (len(ITERATION) - 1)


@WAYS
def test_events_per_second_to_the_trace(benchmark: BenchmarkFixture, small: Path, compiled: bool) -> None:
    trace = benchmark.pedantic(read_trace, (small, compiled), rounds=5, warmup_rounds=1)
    benchmark.extra_info["million events per second"] = events_in(SMALL) / benchmark.stats.stats.min / 1e6
    assert len(trace.kind) == events_in(SMALL) // len(ITERATION) * (len(ITERATION) - 1)


@WAYS
def test_events_per_second_to_the_profile(benchmark: BenchmarkFixture, small: Path, compiled: bool) -> None:
    """Reading and the split of waiting together."""

    def profile() -> Profile:
        return from_trace(read_trace(small, compiled), compiled=compiled)

    found = benchmark.pedantic(profile, rounds=5, warmup_rounds=1)
    benchmark.extra_info["million events per second"] = events_in(SMALL) / benchmark.stats.stats.min / 1e6
    assert "wait_s" in found.phases[0].arrays


def test_start_up(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    write_halo_exchange(tmp_path / "tiny", 1)
    trace = benchmark(read_trace, tmp_path)
    assert len(trace.kind) == LOCATIONS * (len(ITERATION) - 1)


def test_written_events_per_second(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """What tests and benchmarks wait for."""
    folders = iter(tmp_path / str(number) for number in range(100))
    benchmark.pedantic(lambda: write_halo_exchange(next(folders), SMALL), rounds=3)
    benchmark.extra_info["million events per second"] = events_in(SMALL) / benchmark.stats.stats.min / 1e6
