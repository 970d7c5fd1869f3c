"""Records per second from Paraver and Dimemas files to columns, against a plain loop over the lines of the same file.

The trace is a recorded one, repeated in time until it has ``RECORDS`` records. ``extra_info`` holds
records per second, the ratio to the loop, and megabytes of the file per second.
"""

from __future__ import annotations

import gzip
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.formats import dimemas, paraver

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

PROFILES = Path(__file__).parents[1] / "tests" / "profiles"
RECORDS = 1_000_000


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of two ranks with functions, messages and collectives."""
    source = PROFILES / "paraver" / "faultlab-imbalance30"
    lines = (source / "trace.prv").read_text().splitlines(keepends=True)
    ticks = int(lines[0].split("):")[1].split("_")[0])
    head, body = lines[:4], lines[4:]
    path = tmp_path_factory.mktemp("paraver") / "trace.prv"
    turns = RECORDS // len(body) + 1
    with path.open("w") as file:
        file.writelines([head[0].replace(str(ticks), str(ticks * turns)), *head[1:]])
        for turn in range(turns):
            file.writelines(moved(line, turn * ticks) for line in body)
    (path.with_suffix(".pcf")).write_bytes((source / "trace.pcf").read_bytes())
    return path


def moved(line: str, ticks: int) -> str:
    """A record ``ticks`` later."""
    fields = line.rstrip("\n").split(":")
    for place in {"1": (5, 6), "2": (5,), "3": (5, 6, 11, 12)}[fields[0]]:
        fields[place] = str(int(fields[place]) + ticks)
    return ":".join(fields) + "\n"


def loop(path: Path) -> int:
    """Walk through a file line by line, with the numbers of each; return how many lines there are."""
    count = 0
    with path.open() as file:
        for line in file:
            if line[0].isdigit():
                _numbers = [int(field) for field in line.replace(".", ":").split(":")]
                count += 1
    return count


def run(benchmark: BenchmarkFixture, path: Path, read: object, compiled: bool) -> None:
    if compiled:
        pytest.importorskip("numba", reason="needs numba: pip install 'gapwatch[fast]'")
    begin = time.perf_counter()
    records = loop(path)
    reference_s = time.perf_counter() - begin
    benchmark.pedantic(read, (path, compiled), rounds=3, warmup_rounds=1)
    seconds = benchmark.stats.stats.median
    benchmark.extra_info["million records per second"] = records / seconds / 1e6
    benchmark.extra_info["MB per second"] = path.stat().st_size / seconds / 1e6
    benchmark.extra_info["times as fast as a plain loop"] = reference_s / seconds


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "numba"])
def test_paraver(benchmark: BenchmarkFixture, trace: Path, compiled: bool) -> None:
    run(benchmark, trace, paraver.read_trace, compiled)


def test_paraver_packed(benchmark: BenchmarkFixture, trace: Path, tmp_path: Path) -> None:
    packed = tmp_path / "trace.prv.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes(), 1))
    packed.with_name("trace.pcf").write_bytes(trace.with_suffix(".pcf").read_bytes())
    benchmark.pedantic(paraver.read_trace, (packed, False), rounds=1)
    benchmark.extra_info["million records per second"] = RECORDS / benchmark.stats.stats.median / 1e6


@pytest.fixture(scope="session")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Dimemas trace of two tasks."""
    text = (PROFILES / "dimemas" / "faultlab-imbalance30" / "trace.dim").read_text()
    head = re.match(r"(#.*\n)((?:d:.*\n)+)", text)
    assert head
    tasks = [re.findall(rf"^\d+:{task}:.*\n", text[head.end() :], re.MULTILINE) for task in (0, 1)]
    turns = RECORDS // sum(map(len, tasks)) + 1
    bodies = ["".join(lines) * turns for lines in tasks]
    begin = len(head[1].rstrip()) + 20 + len(head[2])
    end = begin + sum(map(len, bodies))
    first = head[1].rstrip().replace(":1,74968:", f":1,{end}:")
    first += " " * (begin - len(head[2]) - len(first) - 1) + "\n"
    path = tmp_path_factory.mktemp("dimemas") / "trace.dim"
    path.write_text(first + head[2] + "".join(bodies) + f"s:0:{begin}\ns:1:{begin + len(bodies[0])}\n")
    return path


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "numba"])
def test_dimemas(benchmark: BenchmarkFixture, bursts: Path, compiled: bool) -> None:
    run(benchmark, bursts, dimemas.read_records, compiled)
