"""How long it takes to look at a program below the wall clock: a loop's bounds beside llvm-mca's, and a whole count."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.analysis import machines
from advisor.support.child_process import run_child
from advisor_processor.compiled import binary, external_tools
from advisor_processor.compiled.instructions import decode_instructions
from advisor_processor.compiled.loops import find_innermost_loops
from advisor_processor.compiled.schedule import compute_loop_schedule
from advisor_processor.source import instrumented_run, model

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from advisor_processor.compiled.loops import Loop

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
MACHINE = machines.load_machine("xeon-8480")


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc: apt install gcc")
    program = tmp_path_factory.mktemp("loops") / "loops.so"
    source = EXAMPLES / "incore" / "loops.c"
    words = ["gcc", "-O3", "-g", "-mavx2", "-mfma", "-shared", "-fPIC", str(source), "-o", str(program)]
    assert run_child(words, 60).status == 0
    found = binary.read_binary(program)
    function = next(one for one in found.image.functions if one.name == "gauss_seidel")
    return find_innermost_loops(
        list(decode_instructions(found.image.read_code(function.begin, function.end), function.begin))
    )[0]


@pytest.mark.benchmark(group="bounds of one loop")
def test_own_analysis(benchmark: BenchmarkFixture, loop: Loop) -> None:
    assert benchmark(compute_loop_schedule, loop, None, MACHINE).chain > 0


@pytest.mark.benchmark(group="bounds of one loop")
def test_llvm_mca(benchmark: BenchmarkFixture, loop: Loop) -> None:
    if external_tools.run_llvm_mca(loop.body) is None:
        pytest.skip("needs llvm-mca: apt install llvm")
    assert benchmark(external_tools.run_llvm_mca, loop.body)


@pytest.mark.benchmark(group="operations of a source")
def test_count_without_running(benchmark: BenchmarkFixture) -> None:
    assert len(benchmark(instrumented_run.read_sources, [EXAMPLES / "count" / "cg.c"])[1][0].loops) > 5


@pytest.mark.benchmark(group="operations of a source")
def test_count_built_and_run(benchmark: BenchmarkFixture) -> None:
    root = EXAMPLES / "count"
    counted = benchmark.pedantic(
        instrumented_run.count_executions, ([root / "cg.c"], ["./cg", "30"], None, root), rounds=3
    )
    assert model.build_model(counted).parameters["n"] == 30
