"""The example programs, compiled and run: chains, checksums, and misses counted by a simulated cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from coupling_data import HERE
from patience import PATIENCE_S

from advisor_coupling import experiment, manifest, results
from advisor_coupling.cases import Metric
from advisor_coupling.model import build_case_model

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = HERE.parent / "examples" / "coupling"


def compiled(folder: Path, name: str) -> Path:
    """A program of the examples, for any processor, so that valgrind knows its instructions."""
    for tool in ("cc", "valgrind"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed: apt install {'gcc' if tool == 'cc' else tool}")
    program = folder / name
    command = ["cc", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-o", str(program)]
    subprocess.run([*command, str(EXAMPLES / f"{name}.c"), "-lm"], check=True, timeout=PATIENCE_S)
    return program


CACHE = """\
program: pair
kernels: [{{name: react_a, uses: [a]}}, {{name: react_b, uses: [b]}}]
arrays: {{a: 24 * B, b: 24 * B}}
parameters: {{N: [2000], B: [{block}]}}
loop_count: 40
command: [valgrind, --tool=cachegrind, --cache-sim=yes, "--LL=65536,16,64", "--cachegrind-out-file=/dev/null",
          {program}, "{{N}}", "{{passes}}", "{{B}}"]
environment: {{GAPWATCH_CHAIN: "{{chain}}", GAPWATCH_PASSES: "{{passes}}"}}
metrics: [{{name: misses, prints: "LLd misses: {{value}}"}}]
repetitions: {rounds}
baseline: none
"""


def test_a_pair_that_evicts_its_data_is_named_and_the_fused_one_wins_what_was_predicted(tmp_path: Path) -> None:
    """The data of one kernel are 48 kB, the simulated cache holds 64 KiB: misses are counted, not timed.

    Starting the program misses, too, a few times more or less in each run. No baseline is taken off: of a kernel whose
    data stay in the cache this would leave nothing but that difference.
    """
    program = compiled(tmp_path, "pair")
    found = {}
    for block, rounds in ((2000, 3), (1000, 1)):
        path = tmp_path / f"pair{block}.yaml"
        path.write_text(CACHE.format(program=program, block=block, rounds=rounds))
        plan = manifest.read_manifest(path)
        document = experiment.open_experiment(plan, path, tmp_path / f"{block}.coupling.json", "", {})
        document = experiment.run_steps(plan, path, document, tmp_path / f"{block}.coupling.json", lambda _: None)
        found[block] = build_case_model(results.build_cases(document)[0], Metric("misses"))
    (pair,) = found[2000].couplings
    assert pair.verdict == "destructive"
    assert pair.value.value > 5
    before, after = found[2000].application, found[1000].application
    assert before is not None
    assert after is not None
    lines = 2 * 3 * 2000 * 8 / 64
    excess = pair.excess.value + misses_of_starting(program)  # counted in the pair, and in each of its two kernels
    assert excess == pytest.approx(40 * lines, rel=0.06)
    assert before.value - after.value == pytest.approx(excess, rel=0.06)


def misses_of_starting(program: Path) -> int:
    """How often the program misses that makes no pass."""
    command = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=yes",
        "--LL=65536,16,64",
        "--cachegrind-out-file=/dev/null",
    ]
    settings = {**os.environ, "GAPWATCH_PASSES": "0"}
    said = subprocess.run(
        [*command, program, "2000"], env=settings, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    (found,) = re.findall(r"LLd misses: +([\d,]+)", said.stderr)
    return int(found.replace(",", ""))


def test_the_solver_takes_chains_and_stays_within_bounds(tmp_path: Path) -> None:
    program = compiled(tmp_path, "adi")
    kernels = ["copy_faces", "x_solve", "y_solve", "z_solve", "add"]
    plain = subprocess.run([program, "8", "50"], capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout
    assert "coupling:" not in plain
    for chain in (*kernels, ",".join(kernels), "add,copy_faces"):
        chosen = {**os.environ, "GAPWATCH_CHAIN": chain, "GAPWATCH_PASSES": "3000"}
        done = subprocess.run(
            [program, "8"], env=chosen, capture_output=True, text=True, check=True, timeout=PATIENCE_S
        )
        assert "coupling: loop " in done.stdout
        assert np.isfinite(float(done.stdout.split("checksum")[1]))
    other_rank = {**os.environ, "GAPWATCH_CHAIN": "add", "OMPI_COMM_WORLD_RANK": "1"}
    silent = subprocess.run(
        [program, "8", "1"], env=other_rank, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert "coupling:" not in silent.stdout


def test_fused_and_plain_pair_compute_the_same(tmp_path: Path) -> None:
    program = compiled(tmp_path, "pair")
    plain, blocked = (
        subprocess.run(
            [program, "1000", "30", *more], capture_output=True, text=True, check=True, timeout=PATIENCE_S
        ).stdout
        for more in ([], ["70"])
    )
    assert plain == blocked


def test_both_orders_of_the_kernels_compute_the_same(tmp_path: Path) -> None:
    program = compiled(tmp_path, "order")
    plain, better = (
        subprocess.run(
            [program, "1000", "30", *more], capture_output=True, text=True, check=True, timeout=PATIENCE_S
        ).stdout
        for more in ([], ["sorted"])
    )
    assert plain == better


def test_fortran_programs_take_chains(tmp_path: Path) -> None:
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed: apt install gfortran")
    sources = [str(EXAMPLES / name) for name in ("gapwatch_coupling.f90", "heat.f90")]
    subprocess.run(["gfortran", "-o", "heat", *sources], cwd=tmp_path, check=True, timeout=PATIENCE_S)
    sums = {}
    for chain in ("flow", "update", "flow,update", None):
        chosen = {**os.environ, **({"GAPWATCH_CHAIN": chain, "GAPWATCH_PASSES": "50"} if chain else {})}
        command = [str(tmp_path / "heat"), "500", "50"]
        printed = subprocess.run(
            command, env=chosen, capture_output=True, text=True, check=True, timeout=PATIENCE_S
        ).stdout
        assert ("coupling: loop" in printed) == (chain is not None)
        sums[chain] = printed.split("checksum")[1]
    assert sums["flow,update"] == sums[None]


PYTHON = """\
from gapwatch_coupling import Coupling
ran = []
with Coupling(passes=3) as chain:
    for _ in chain:
        for name in ("a", "b"):
            if chain.runs(name):
                ran.append(name)
print("".join(ran))
"""


@pytest.mark.parametrize(
    ("chosen", "ran"),
    [({}, "ababab"), ({"GAPWATCH_CHAIN": "b", "GAPWATCH_PASSES": "2"}, "bb"), ({"GAPWATCH_PASSES": "0"}, "")],
)
def test_python_programs_take_chains(chosen: dict[str, str], ran: str) -> None:
    settings = {**os.environ, "PYTHONPATH": str(EXAMPLES), **chosen}
    command = [sys.executable, "-c", PYTHON]
    printed = subprocess.run(
        command, env=settings, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout
    assert printed.splitlines()[-1] == ran
    assert ("coupling: loop " in printed) == bool(chosen)
