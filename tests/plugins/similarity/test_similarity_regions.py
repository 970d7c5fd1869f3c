"""Regions of interest on the oracle machine: a function, what follows one, some files, a rank without MPI's polling."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.model.errors import UsageError
from advisor_similarity.parallelism import Observation, observe_program, temporary_folder
from advisor_similarity.qemu_tracing import TracePlan
from advisor_similarity.regions import Region, is_clone

needs_tracer = pytest.mark.skipif(
    not (shutil.which("qemu-x86_64") and shutil.which("gcc")), reason="needs qemu-x86_64 and gcc"
)

#: Each pass of a loop is at least one instruction, so counts tell which loops were seen.
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) double step(double *a, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s = s * 0.5 + a[i];
    return s;
}
__attribute__((noinline)) double solve(double *a, int n) {
    double s = 0;
    for (int k = 0; k < 4; k++) { a[k] += s; s += step(a, n); }
    return s;
}
__attribute__((noinline)) void set_up(double *a, int n) { for (int i = 0; i < n; i++) a[i] = i * 1.5; }
int main(void) {
    int n = 5000;
    double *a = malloc(n * sizeof *a);
    set_up(a, n);
    printf("%g\\n", solve(a, n) + solve(a, n));
    return 0;
}
"""

RANKS = """
#include <mpi.h>
#include <stdio.h>
static double work(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
int main(int argc, char **argv) {
    int rank;
    double total;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double s = work(rank ? 30000 : 3000);
    MPI_Allreduce(&s, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (!rank) printf("%g\\n", total);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("regions")
    (folder / "app.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-o", "app", "app.c"], cwd=folder, check=True, timeout=60)
    return folder / "app"


def observe(plan: TracePlan, cache: Path) -> Observation:
    with temporary_folder() as folder:
        return observe_program(plan, cache, Path(folder), smoothability=False)


def count_instructions(program: Path, region: Region) -> int:
    """Observe with the tracer that was built beside the program."""
    return observe(TracePlan((str(program),), region=region, quiet=True), program.parent).workload.instructions


@needs_tracer
class TestRegion:
    def test_only_a_function_and_what_it_calls_is_scheduled(self, program: Path) -> None:
        whole = count_instructions(program, Region())
        solve = count_instructions(program, Region(function="solve"))
        step = count_instructions(program, Region(function="step"))
        assert 8 * 5000 * 4 <= step <= solve <= step + 500
        assert solve + 5000 <= whole

    def test_after_a_function_comes_what_follows_its_first_return(self, program: Path) -> None:
        after_setup = count_instructions(program, Region(after="set_up"))
        both = count_instructions(program, Region(function="solve"))
        after_first = count_instructions(program, Region(after="solve"))
        assert both <= after_setup
        assert both / 2 <= after_first < both

    def test_only_code_of_the_named_files_is_scheduled(self, program: Path) -> None:
        own = observe(TracePlan((str(program),), region=Region(objects=("ap?",)), quiet=True), program.parent)
        ran = [own.image.blocks[index].address for stream in own.image.streams for index in stream.counts]
        files = {part.path for part in own.image.mappings for address in ran if part.start <= address < part.end}
        assert files == {str(program)}
        assert own.region == "Scheduled: only code in ap?; what lies outside takes no time."

    def test_a_function_that_is_nowhere_is_refused_with_a_near_name(self, program: Path) -> None:
        with pytest.raises(UsageError, match=r"no file of app has a function solvee \(did you mean 'solve'\?\)"):
            count_instructions(program, Region(function="solvee"))

    def test_code_that_never_ran_is_refused(self, program: Path) -> None:
        with pytest.raises(UsageError, match="app: no code ran in libnone"):
            count_instructions(program, Region(objects=("libnone*",)))


@needs_tracer
@pytest.mark.skipif(not (shutil.which("mpicc") and shutil.which("mpirun")), reason="needs mpicc and mpirun")
def test_a_waiting_rank_is_its_own_work_and_not_the_polling_of_mpi(program: Path, tmp_path: Path) -> None:
    (tmp_path / "ranks.c").write_text(RANKS)
    subprocess.run(["mpicc", "-O1", "-g", "-o", "ranks", "ranks.c"], cwd=tmp_path, check=True, timeout=60)
    command = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", str(tmp_path / "ranks"))
    plan = TracePlan(command, rank=0, region=Region(after="MPI_Init", communication=False), quiet=True)
    found = observe(plan, program.parent).workload
    assert 3 * 3000 < found.instructions < 200_000  # MPI's start and waiting are tens of millions
    assert found.centroid[2] > 0


@pytest.mark.parametrize(
    ("symbol", "function", "expected"),
    [
        ("solve", "solve", True),
        ("solve._omp_fn.3", "solve", True),
        ("solve.constprop.0.isra.1", "solve", True),
        ("solver", "solve", False),
        ("resolve", "solve", False),
        ("sweep_", "sweep", True),
        ("PMPI_Init", "MPI_Init", True),
        ("MPI_Init_thread", "MPI_Init", False),
        ("_ZN4Mesh6refineEid", "Mesh::refine", True),
        ("__grid_MOD_sweep", "grid::sweep", True),
    ],
)
def test_a_region_is_named_as_its_function_stands_in_the_source(symbol: str, function: str, expected: bool) -> None:
    assert is_clone(symbol, function) is expected
