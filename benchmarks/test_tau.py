"""Seconds from the files of a TAU run to its call paths, against Hatchet on the same files in the same session.

Hatchet runs in an interpreter of its own, since its requirements differ from the project's: name one that can import
it in GAPWATCH_HATCHET_PYTHON (``python -m venv x && x/bin/pip install llnl-hatchet``, then ``x/bin/python``). Without
it the ratio is left out. Hatchet takes minutes for the sizes that matter, so that it is compared on 64 files, and on
1024 with GAPWATCH_BENCHMARK_FULL=1; the time it takes grows faster than the number of files.
"""

from __future__ import annotations

import os
import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from advisor.readers.tau import read_call_paths

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

FULL = bool(os.environ.get("GAPWATCH_BENCHMARK_FULL"))
HATCHET = os.environ.get("GAPWATCH_HATCHET_PYTHON", "")
SCRIPT = """
import sys, time, hatchet
begin = time.perf_counter()
frame = hatchet.GraphFrame.from_tau(sys.argv[1])
print(time.perf_counter() - begin, frame.dataframe["time"].sum())
"""
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
    if not HATCHET:
        return
    done = subprocess.run(
        [HATCHET, "-W", "ignore", "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True
    )
    seconds, total = map(float, done.stdout.split())
    assert 1e6 * found.wall_s.sum() == pytest.approx(total)
    benchmark.extra_info["seconds of hatchet"] = seconds
    benchmark.extra_info["times as fast as hatchet"] = seconds / benchmark.stats.stats.median


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
