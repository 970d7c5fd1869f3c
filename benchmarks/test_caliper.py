"""Rows per second from Caliper's json-split to the Profile, against Hatchet on the same file in the same run.

A million rows: a thousand regions on a thousand ranks. ``extra_info`` holds rows per second, the ratio to Hatchet and
the memory of both, each the best of three processes.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hatchet_costs import by_gapwatch, by_hatchet

from advisor.formats import caliper

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

REGIONS, RANKS = 1000, 1000
REPEATS = 3


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A json-split as Caliper writes it, with the line breaks and digits that it uses."""
    path = tmp_path_factory.mktemp("caliper") / "million.json"
    random.seed(1)
    rows = (f"{rank}, {random.random():.6f}, {region}" for rank in range(RANKS) for region in range(REGIONS))
    nodes = (
        f'{{ "label": "region{n}", "column": "path"' + (f', "parent": {(n - 1) // 3} }}' if n else " }")
        for n in range(REGIONS)
    )
    with path.open("w") as stream:
        stream.write('{\n  "data": [\n    [ ' + " ],\n    [ ".join(rows) + " ]\n  ],\n")
        stream.write('  "columns": [ "mpi.rank", "sum#time.duration", "path" ],\n  "column_metadata": ')
        stream.write(
            '[ { "is_value": true }, { "is_value": true, "attribute.unit": "sec" }, { "is_value": false }  ],\n'
        )
        stream.write(f'  "nodes": [ {", ".join(nodes)} ],\n  "mpi.world.size": "{RANKS}"\n}}\n')
    return path


def test_a_million_rows(profile: Path, benchmark: BenchmarkFixture) -> None:
    read = benchmark.pedantic(caliper.advisor_read, (profile,), rounds=REPEATS, warmup_rounds=1)
    assert read.ranks == RANKS
    assert len(read.regions) == REGIONS
    ours = [by_gapwatch("caliper", profile) for _ in range(REPEATS)]
    theirs = [by_hatchet("from_caliper", profile, ", node_ordering=False") for _ in range(REPEATS)]
    seconds, reference = (min(cost.seconds for cost in costs) for costs in (ours, theirs))
    benchmark.extra_info["rows per second"] = round(REGIONS * RANKS / seconds)
    benchmark.extra_info["times faster than Hatchet"] = round(reference / seconds, 1)
    benchmark.extra_info["MB"] = round(min(cost.peak_mb for cost in ours))
    benchmark.extra_info["Hatchet MB"] = round(min(cost.peak_mb for cost in theirs))
    assert max(cost.peak_mb for cost in ours) < 400
