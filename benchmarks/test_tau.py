"""Seconds from the files of a TAU run to its Profile, against Hatchet on the same files in the same session.

Hatchet takes minutes for the sizes that matter, so that it is compared on 64 files, and with GAPWATCH_BENCHMARK_FULL=1
on 1024; the time it takes grows faster than the number of files. ``extra_info`` holds the ratio.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from hatchet_costs import by_gapwatch, by_hatchet

from advisor.formats.tau import read_call_paths

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

FULL = bool(os.environ.get("GAPWATCH_BENCHMARK_FULL"))
METADATA = "<metadata><attribute><name>Metric Name</name><value>TIME</value></attribute></metadata>"


def write(folder: Path, files: int, functions: int, call_paths: bool) -> Path:
    """Write the profiles of ``files`` ranks, as TAU does; with call paths each function stands there twice."""
    folder.mkdir()
    draw = random.Random(1)
    names = [
        f"kernel_{n:03d}<double, Grid<3> >(int, double *) [{{/src/solver/kernels/file_{n % 40}.cpp}} {{{n + 1},1}}]"
        for n in range(functions)
    ]
    for rank in range(files):
        rows: list[str] = []
        called, total = 0, 0
        for name in names:
            calls, value = draw.randrange(1, 1000), draw.randrange(1_000_000)
            called, total = called + calls, total + value
            rows.append(f'"{name}" {calls} 0 {value} {value} 0 GROUP="TAU_USER" ')
            if call_paths:
                path = f".TAU application => {name}"
                rows.append(f'"{path}" {calls} 0 {value} {value} 0 GROUP="TAU_CALLPATH|TAU_USER" ')
        head = f"{len(rows) + 1} templated_functions_MULTI_TIME\n# Name Calls Subrs Excl Incl ProfileCalls # {METADATA}"
        root = f'".TAU application" 1 {called} 1000 {total + 1000} 0 GROUP="TAU_UTILITY" '
        text = "\n".join([head, root, *rows, "0 aggregates", ""])
        (folder / f"profile.{rank}.0.0").write_text(text)
    return folder


@pytest.fixture(scope="session", params=[64, pytest.param(1024, id="1024 full")] if FULL else [64])
def compared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    files: int = request.param
    return write(tmp_path_factory.mktemp("tau") / "run", files, 100, call_paths=True), files


def test_against_hatchet(benchmark: BenchmarkFixture, compared: tuple[Path, int]) -> None:
    path, files = compared
    found = benchmark.pedantic(read_call_paths, (path,), rounds=5, warmup_rounds=1)
    assert found.wall_s is not None
    assert found.wall_s.shape == (101, files)
    ours, theirs = by_gapwatch("tau", path), by_hatchet("from_tau", path)
    benchmark.extra_info["seconds in a process of its own"] = ours.seconds
    benchmark.extra_info["seconds of Hatchet"] = theirs.seconds
    benchmark.extra_info["times faster than Hatchet"] = round(theirs.seconds / ours.seconds, 1)
    benchmark.extra_info["times faster once loaded"] = round(theirs.seconds / benchmark.stats.stats.median, 1)
    benchmark.extra_info["MB"] = round(ours.peak_mb)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("files", [512, 1024, 2048, 4096] if FULL else [128, 256, 512])
def test_growth(benchmark: BenchmarkFixture, tmp_path: Path, files: int, compiled: bool) -> None:
    if compiled:
        pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    path = write(tmp_path / "run", files, 500, call_paths=False)
    found = benchmark.pedantic(read_call_paths, (path, compiled), rounds=3, warmup_rounds=1)
    assert len(found.processors) == files
    benchmark.extra_info["microseconds per file"] = 1e6 * benchmark.stats.stats.median / files


def test_start_up(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    path = write(tmp_path / "run", 2, 20, call_paths=True)
    found = benchmark(read_call_paths, path)
    assert len(found.nodes) == 21
