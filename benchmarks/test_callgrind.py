"""Lines per second from an output of callgrind to its counts by function, against a plain loop over the same lines.

The loop does nothing but split each line and add its numbers up by function: no names, calls or source lines.
``extra_info`` holds lines per second and the ratio.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.formats.valgrind.files import read_dump

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

RECORDED = Path(__file__).parents[1] / "tests" / "profiles" / "callgrind" / "npb-is.S" / "callgrind.out.6938"
COPIES = 200


@pytest.fixture(scope="session")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded output of one process in which each line of counts stands ``COPIES`` times."""
    head, first, body = RECORDED.read_text().partition("\nob=")
    functions, key, totals = (first + body).partition("totals: ")
    many = " ".join(str(COPIES * int(total)) for total in totals.split())
    path = tmp_path_factory.mktemp("callgrind") / "callgrind.out.1"
    path.write_text(f"{head}\n{COPIES * functions}{key}{many}\n")
    return path


def plain_loop(path: Path) -> dict[str, list[int]]:
    """Add up the numbers of each line of counts by the last function that was named."""
    found: dict[str, list[int]] = {}
    function, called = "", False
    with path.open() as lines:
        for line in lines:
            if line.startswith("fn="):
                function = line
            elif line.startswith("calls="):
                called = True
            elif line[:1] in "0123456789+-*":
                if not called:
                    numbers = [int(word) for word in line.split()[1:]]
                    total = found.setdefault(function, [0] * 9)
                    for place, number in enumerate(numbers):
                        total[place] += number
                called = False
    return found


def test_lines_per_second(benchmark: BenchmarkFixture, output: Path) -> None:
    lines = output.read_bytes().count(b"\n")
    begin = time.perf_counter()
    reference = plain_loop(output)
    reference_s = time.perf_counter() - begin
    dump = benchmark.pedantic(read_dump, (output, True), rounds=5, warmup_rounds=1)
    seconds = benchmark.stats.stats.median
    benchmark.extra_info["million lines per second"] = lines / seconds / 1e6
    benchmark.extra_info["times as fast as a plain loop"] = reference_s / seconds
    assert dump.counts.sum() == sum(sum(row) for row in reference.values())
    assert dump.off == 0
