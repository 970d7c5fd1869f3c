"""What the model of a case costs: couplings, predictions and their intervals from 4000 resamples."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor_coupling.model import CaseModel, build_case_model

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from coupling_data import made_up

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.parametrize("kernels", [3, 5, 8])
def test_model_of_a_case(benchmark: BenchmarkFixture, kernels: int) -> None:
    chains = {length: [1.1] * kernels for length in range(2, kernels)} | {kernels: [1.1]}
    case = made_up([1.0] * kernels, chains, noise=0.02, rounds=11)
    made: CaseModel = benchmark(build_case_model, case)
    benchmark.extra_info["chains"] = len(made.couplings)
    assert made.predictions[-1].error is not None
