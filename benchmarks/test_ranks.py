"""One program on 64 to 4096 ranks, a million events each: the advice, the clocks, and what they cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from stencil_traces import stencil, write_stencil

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

RANKS, EVENTS = (64, 256, 1024, 4096), 1_000_000


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("ranks")
    for ranks in RANKS:
        write_stencil(folder / str(ranks), stencil(ranks, EVENTS)[0])
    return {ranks: folder / str(ranks) for ranks in RANKS}


def advise(path: Path) -> tuple[dict[str, Any], float, int]:
    """Return the advice on the archive at ``path``, the seconds of CPU and the bytes of memory it took."""
    command = [sys.executable, "-m", "gapwatch", "advise", str(path), "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        document = json.load(process.stdout)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return document, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


@pytest.mark.benchmark(group="ranks")
@pytest.mark.parametrize("ranks", RANKS)
def test_advice_on_a_million_events(benchmark: BenchmarkFixture, archives: dict[int, Path], ranks: int) -> None:
    smallest, least_s, least_B = advise(archives[RANKS[0]])
    document, cpu_s, memory_B = benchmark.pedantic(advise, args=(archives[ranks],), rounds=3, warmup_rounds=1)
    benchmark.extra_info |= {
        "CPU s": round(cpu_s, 2), "CPU of 64 ranks": round(cpu_s / least_s, 2),
        "MB": memory_B // 1_000_000, "memory of 64 ranks": round(memory_B / least_B, 2),
    }  # fmt: skip
    assert document["profile"]["grade"] == smallest["profile"]["grade"]
    items = [[item["action"] for item in each["recommendations"]] for each in (document, smallest)]
    assert items[0] == items[1]
