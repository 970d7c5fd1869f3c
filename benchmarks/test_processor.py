"""How long it takes to look at a program below the wall clock: a loop's bounds beside llvm-mca's, and a whole count."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.analysis import machines
from advisor_processor.compiled import binary, opinions
from advisor_processor.compiled.instructions import decode
from advisor_processor.compiled.loops import innermost
from advisor_processor.compiled.schedule import loop_schedule
from advisor_processor.programs import output
from advisor_processor.source import counting, model

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from advisor_processor.compiled.loops import Loop

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
MACHINE = machines.load("xeon-8480")


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc: apt install gcc")
    program = tmp_path_factory.mktemp("loops") / "loops.so"
    source = EXAMPLES / "incore" / "loops.c"
    words = ["gcc", "-O3", "-g", "-mavx2", "-mfma", "-shared", "-fPIC", str(source), "-o", str(program)]
    assert output(words, 60)[0] == 0
    found = binary.read(program)
    function = next(one for one in found.functions if one.name == "gauss_seidel")
    return innermost(list(decode(found.code_of(function), function.begin)))[0]


@pytest.mark.benchmark(group="bounds of one loop")
def test_own_analysis(benchmark: BenchmarkFixture, loop: Loop) -> None:
    assert benchmark(loop_schedule, loop, None, MACHINE).chain > 0


@pytest.mark.benchmark(group="bounds of one loop")
def test_llvm_mca(benchmark: BenchmarkFixture, loop: Loop) -> None:
    if opinions.llvm_mca(loop.body) is None:
        pytest.skip("needs llvm-mca: apt install llvm")
    assert benchmark(opinions.llvm_mca, loop.body)


@pytest.mark.benchmark(group="operations of a source")
def test_count_without_running(benchmark: BenchmarkFixture) -> None:
    assert len(benchmark(counting.read, [EXAMPLES / "count" / "cg.c"])[1][0].loops) > 5


@pytest.mark.benchmark(group="operations of a source")
def test_count_built_and_run(benchmark: BenchmarkFixture) -> None:
    root = EXAMPLES / "count"
    counted = benchmark.pedantic(counting.count, ([root / "cg.c"], ["./cg", "30"], None, root), rounds=3)
    assert model.model_of(counted).parameters["n"] == 30
