"""Data references a second of the model-driven simulation, caches and false sharing included.

``pytest -s benchmarks/test_mds.py`` prints them for CRASH on 16 processors with infinite and with finite caches. Numba
compiles the inner loop; what that takes is not counted.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.analysis import machines
from advisor_simulation.mds.run import SimulatedRun, simulate_model
from advisor_simulation.model.checks import read_model
from advisor_simulation.model.records import CacheCosts

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

CRASH = Path(__file__).parent.parent / "examples" / "crash"
CYCLES = 200


@pytest.mark.parametrize("finite", [False, True], ids=["infinite caches", "finite caches"])
def test_references_a_second(benchmark: BenchmarkFixture, finite: bool) -> None:
    model = read_model(CRASH / "crash-SD3.yaml")
    costs = replace(model.costs, cache=CacheCosts(size=2.0**20, ways=1))
    machine = machines.load_machine("convex-spp1600")

    def run(cycles: int = CYCLES) -> SimulatedRun:
        parameters = model.parameters | {"cycles": float(cycles)}
        return simulate_model(replace(model, parameters=parameters, costs=costs), CRASH, machine, 16, finite)

    run(1)
    begun = time.perf_counter()
    found = benchmark.pedantic(run, rounds=1)
    seconds = time.perf_counter() - begun
    rate = found.log.references / seconds
    print(f"\n{found.log.references:,} references in {seconds:.2f} s: {rate:.3g} a second")
    assert rate > 1e6
