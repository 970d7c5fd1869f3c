"""The programs of ``examples/scaling`` are built and run, and their counts are what their models say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from patience import PATIENCE_S

from advisor_scaling.linear import application, model
from advisor_scaling.linear.application import MemorySizes

if TYPE_CHECKING:
    from types import ModuleType

EXAMPLES = Path(__file__).parents[3] / "examples" / "scaling"
PROGRAMS = ("gauss", "matmul", "ocean")

#: Counts messages that leave a rank, in calls of MPI that the programs make; printed by rank 0 at the end.
COUNTER = """
#include <mpi.h>
#include <stdio.h>
static long sent;
int MPI_Bcast(void *b, int n, MPI_Datatype t, int r, MPI_Comm c) { sent++; return PMPI_Bcast(b, n, t, r, c); }
int MPI_Sendrecv_replace(void *b, int n, MPI_Datatype t, int d, int s, int f, int g, MPI_Comm c, MPI_Status *u)
{ sent++; return PMPI_Sendrecv_replace(b, n, t, d, s, f, g, c, u); }
int MPI_Finalize(void)
{ int r; MPI_Comm_rank(MPI_COMM_WORLD, &r); if (!r) printf("calls %ld\\n", sent); return PMPI_Finalize(); }
"""

needs_mpi = pytest.mark.skipif(
    not (shutil.which("mpicc") and shutil.which("mpirun")),
    reason="needs MPI: mpicc and mpirun (Debian: libopenmpi-dev)",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scaling") / "scaling"
    shutil.copytree(EXAMPLES, folder)
    for program in PROGRAMS:
        (folder / program).unlink(missing_ok=True)
    subprocess.run(
        ["make", "-s", "-C", str(folder), "CFLAGS=-O2 -Wall -Wextra -Werror"], check=True, timeout=PATIENCE_S
    )
    return folder


def ran(*command: str | Path, folder: Path) -> str:
    launch = [
        "mpirun",
        "--oversubscribe",
        "--allow-run-as-root",
        "--bind-to",
        "none",
        "--mca",
        "mpi_yield_when_idle",
        "1",
    ]
    given = [*launch, "-n", *map(str, command)]
    return subprocess.run(
        given, capture_output=True, check=True, text=True, timeout=PATIENCE_S, cwd=folder, env=os.environ
    ).stdout


@needs_mpi
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_agree_whatever_the_number_of_ranks(program: str, built: Path) -> None:
    for ranks in (1, 2, 3):
        n, p, seconds, check = ran(str(ranks), f"./{program}", "48", folder=built).split()
        assert (int(n), int(p)) == (48, ranks)
        assert float(seconds) > 0.0
        assert np.isfinite(float(check))


@needs_mpi
@pytest.mark.parametrize(("program", "calls"), [("gauss", "N"), ("matmul", "P - 1")])
def test_models_count_the_calls_that_the_programs_make(program: str, calls: str, built: Path) -> None:
    (built / "counter.c").write_text(COUNTER)
    command = ["mpicc", "-O1", "-o", f"{program}-counted", f"{program}.c", "counter.c", "-lm"]
    subprocess.run(command, check=True, cwd=built, timeout=PATIENCE_S)
    times = int(re.findall(r"TIMES = (\d+)", (built / "common.h").read_text())[0])
    counted = int(ran("2", f"./{program}-counted", "32", folder=built).split()[-1])
    assert counted == times * {"N": 32, "P - 1": 1}[calls]


@pytest.mark.parametrize("program", PROGRAMS)
def test_models_are_read_and_grow_as_they_should(program: str) -> None:
    stated = application.read_application(EXAMPLES / f"{program}.yaml")
    counts = application.build_counts(stated, MemorySizes(2.0**20, 2.0**33))
    found = model.build_matrix(counts, list(counts), ("N", "P"), np.array([[256.0, 1.0], [512.0, 1.0]]))
    grown = found[1, list(counts).index("operations")] / found[0, list(counts).index("operations")]
    assert grown == pytest.approx(4.0 if program == "ocean" else 8.0)
    assert found[:, list(counts).index("messages")].tolist() == [0.0, 0.0]


def script(name: str) -> ModuleType:
    sys.path.insert(0, str(EXAMPLES))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(EXAMPLES))


def test_the_table_of_errors(tmp_path: Path) -> None:
    measure, predict = script("measure"), script("predict")
    for program in PROGRAMS:
        times = {(n, p): [3e-9 * n**3 / min(p, 2)] * 2 for n in (64, 128, 192, 256) for p in (1, 2)}
        (tmp_path / f"{program}.txt").write_text(measure.text(times))
    lines = predict.table(tmp_path, 192.0).splitlines()
    assert len([line for line in lines if line.startswith("| gauss")]) == 2
    assert "Within 20 % of 6" in lines[-1]


def test_the_page_on_validation_shows_the_table_of_the_recorded_times() -> None:
    page = (Path(__file__).parents[3] / "docs" / "validation.md").read_text()
    printed = page.split("<!-- examples: begin -->\n")[1].split("\n<!-- examples: end -->")[0].splitlines()
    now = script("predict").table(Path(__file__).parents[2] / "profiles" / "scaling", 192.0).splitlines()
    assert [row.split("|")[:5] for row in now[:-1]] == [row.split("|")[:5] for row in printed[:-1]]
    share = int(re.findall(r"(\d+)% by T = X beta", now[-1])[0])
    assert share > 80, "the source has over 80 % of its runs within 20 %"
    assert abs(share - int(re.findall(r"(\d+)% by T = X beta", printed[-1])[0])) <= 5


def test_the_table_of_larger_numbers_of_ranks_is_that_of_the_page() -> None:
    replayed, predict = script("replayed"), script("predict")
    network = replayed.Network(5e-6, 1e9, collectives=replayed.TODAY)
    table = predict.table_of({name: replayed.errors(name, network, 1e-9) for name in PROGRAMS}, "replayed")
    page = (Path(__file__).parents[3] / "docs" / "validation.md").read_text()
    printed = page.split("<!-- replayed: begin -->\n")[1].split("\n<!-- replayed: end -->")[0]
    assert [row.split("|")[:5] for row in table.splitlines()] == [row.split("|")[:5] for row in printed.splitlines()]
    assert table.splitlines()[-1] == printed.splitlines()[-1]


def test_a_replay_is_as_sensitive_to_start_up_as_the_formula_says() -> None:
    """N log2 P messages stand one behind the other: what a longer latency adds is linear in N and in log2 P."""
    replayed = script("replayed")
    added = {
        (n, p): np.subtract(*(
            replayed.seconds("gauss", n, p, replayed.Network(latency, 1e9, collectives=replayed.TODAY), 1e-9)
            for latency in (6e-5, 5e-5)
        )) / 1e-5
        for n, p in ((64, 4), (128, 4), (64, 16))
    }  # fmt: skip
    assert added[128, 4] / added[64, 4] == pytest.approx(2.0, rel=0.05)
    assert added[64, 16] / added[64, 4] == pytest.approx(2.0, rel=0.05)
