"""The example program with faults: its ground truth agrees with its flags; the recorded cases are complete."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "faults"
QUICK = ("--iters", "4", "--base", "2", "--work", "sleep")

needs_mpi = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("mpicc", "mpirun", "make")),
    reason="no mpicc, mpirun or make: Debian packages libopenmpi-dev, openmpi-bin, make",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("build")
    made = subprocess.run(["make", "-C", SOURCE, f"BUILD={build}"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return build / "stencil"


def launch(program: Path, directory: Path, flags: tuple[str, ...], ranks: int) -> subprocess.CompletedProcess[str]:
    launcher = os.environ.get("MPIRUN", "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1")
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_WAIT_POLICY": "passive"}
    command = [*shlex.split(launcher), "-np", str(ranks), str(program), *flags]
    return subprocess.run(
        command,
        cwd=directory,
        env=os.environ | allowed,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def truth_of(program: Path, directory: Path, *flags: str, ranks: int = 2) -> dict[str, Any]:
    done = launch(program, directory, (*QUICK, *flags), ranks)
    assert done.returncode == 0, done.stderr
    truth: dict[str, Any] = json.loads((directory / "truth.json").read_text(encoding="utf-8"))
    return truth


def total(table: list[Any] | float) -> float:
    """Return the sum of nested lists."""
    return sum(map(total, table)) if isinstance(table, list) else float(table)


def counted(truth: dict[str, Any], name: str) -> list[int]:
    return [counts[name] for counts in truth["counts_per_rank"]]


@needs_mpi
def test_a_clean_run_gives_every_rank_the_same_work(program: Path, tmp_path: Path) -> None:
    truth = truth_of(program, tmp_path)
    work = [[0.002] * 4, [0.002] * 4]
    assert truth["injected_s"] == {"compute_fluxes": work, "update_cells": work}
    assert counted(truth, "barriers") == [8, 8]
    assert counted(truth, "reductions") == [4, 4]
    assert counted(truth, "messages") == [4, 4]
    assert counted(truth, "message_bytes") == [4 * 8192, 4 * 8192]
    assert truth["loop_wall_s"] >= 4 * 2 * 0.002 <= truth["main_wall_s"]
    assert total(truth["measured_wall_s"]["compute_fluxes"]) >= 2 * 4 * 0.002


@needs_mpi
@pytest.mark.parametrize(
    ("flag", "first", "second"),
    [
        ("--imbalance", [[3, 3, 3, 3], [1, 1, 1, 1]], [[3, 3, 3, 3], [1, 1, 1, 1]]),
        ("--multiphase", [[3, 3, 3, 3], [1, 1, 1, 1]], [[1, 1, 1, 1], [3, 3, 3, 3]]),
        ("--dynamic", [[3, 1, 3, 1], [1, 3, 1, 3]], [[3, 1, 3, 1], [1, 3, 1, 3]]),
    ],
)
def test_imbalances_load_the_ranks_as_stated(
    program: Path, tmp_path: Path, flag: str, first: list[list[int]], second: list[list[int]]
) -> None:
    truth = truth_of(program, tmp_path, flag, "0.5")
    for region, expected in (("compute_fluxes", first), ("update_cells", second)):
        assert truth["injected_s"][region] == [[load / 1e3 for load in row] for row in expected]
        for loads, walls in zip(truth["injected_s"][region], truth["measured_wall_s"][region], strict=True):
            assert all(wall >= load for load, wall in zip(loads, walls, strict=True))


@needs_mpi
def test_the_heavy_rank_can_be_chosen(program: Path, tmp_path: Path) -> None:
    loads = truth_of(program, tmp_path, "--imbalance", "0.5", "--heavy", "1")["injected_s"]["update_cells"]
    assert loads == [[0.001] * 4, [0.003] * 4]


@needs_mpi
@pytest.mark.parametrize(
    ("flag", "region", "ranks_ms"),
    [
        ("--serial", "serial_part", [3, 0]),
        ("--late", "update_edges", [3, 3]),
        ("--straggler", "update_edges", [3, 0]),
        ("--pipeline", "sweep_line", [3, 3]),
    ],
)
def test_work_before_others_can_go_on_is_injected_and_measured(
    program: Path, tmp_path: Path, flag: str, region: str, ranks_ms: list[int]
) -> None:
    truth = truth_of(program, tmp_path, flag, "3")
    assert [total(row) for row in truth["injected_s"][region]] == pytest.approx([4e-3 * ms for ms in ranks_ms])
    measured = [total(row) for row in truth["measured_wall_s"][region]]
    assert all(wall >= 4e-3 * ms for wall, ms in zip(measured, ranks_ms, strict=True))
    steps = 2 if flag in ("--late", "--pipeline") else 1
    assert truth["loop_wall_s"] >= 4 * (2 * 0.002 + steps * 0.003)


@needs_mpi
@pytest.mark.parametrize(
    ("flags", "counts", "kind", "region", "seconds"),
    [
        ("--messages 5 --message-cost 300", {"messages": [20, 20]}, "transfer", "exchange_halo", [6e-3, 6e-3]),
        (
            "--messages 5 --message-cost 300 --exchange send",
            {"messages": [20, 20]},
            "transfer",
            "exchange_halo",
            [6e-3, 6e-3],
        ),
        (
            "--messages 5 --message-cost 300 --exchange sendrecv",
            {"messages": [20, 20]},
            "transfer",
            "exchange_halo",
            [6e-3, 6e-3],
        ),
        ("--reductions 5 --reduction-cost 300", {"reductions": [20, 20]}, "transfer", "sum_residual", [6e-3, 6e-3]),
        ("--barriers 3 --barrier-cost 300", {"barriers": [20, 20]}, "sync", "barriers", [6e-3, 6e-3]),
        (
            "--io-all 3 --write-cost 300 --write-bytes 100",
            {"writes": [12, 12], "write_bytes": [1200, 1200], "fsyncs": [0, 0]},
            "io",
            "write_output",
            [3.6e-3, 3.6e-3],
        ),
        (
            "--io-one 3 --write-cost 300 --fsyncs 2 --fsync-cost 300",
            {"writes": [12, 0], "fsyncs": [8, 0]},
            "io",
            "write_output",
            [6e-3, 0],
        ),
        ("--oswait 3", {}, "os", "compute_fluxes", [12e-3, 12e-3]),
    ],
)
def test_costs_are_counted_injected_and_measured(
    program: Path,
    tmp_path: Path,
    flags: str,
    counts: dict[str, list[int]],
    kind: str,
    region: str,
    seconds: list[float],
) -> None:
    truth = truth_of(program, tmp_path, *flags.split())
    assert {name: counted(truth, name) for name in counts} == counts
    injected = truth[f"injected_{kind}_s"][region]
    assert [total(row) for row in injected] == pytest.approx(seconds)
    measured = [total(row) for row in truth["measured_wall_s"][region]]
    assert all(wall >= cost for wall, cost in zip(measured, seconds, strict=True))


@needs_mpi
def test_without_a_cost_nothing_but_work_is_injected(program: Path, tmp_path: Path) -> None:
    truth = truth_of(program, tmp_path, "--io-all", "2", "--fsyncs", "1", "--messages", "3")
    assert counted(truth, "fsyncs") == [4, 4]
    assert (tmp_path / "output.0").stat().st_size == 4 * 2 * 512
    assert not any(truth[f"injected_{kind}_s"] for kind in ("transfer", "sync", "io", "os"))


@needs_mpi
def test_threads_get_unequal_shares(program: Path, tmp_path: Path) -> None:
    truth = truth_of(program, tmp_path, "--threads", "2", "--omp-imbalance", "0.5")
    assert truth["injected_thread_s"]["compute_fluxes"] == [[[0.003] * 4, [0.001] * 4]] * 2
    assert total(truth["measured_thread_wall_s"]["compute_fluxes"]) >= total(
        truth["injected_thread_s"]["compute_fluxes"]
    )
    assert counted(truth, "fork_joins") == [8, 8]


@needs_mpi
def test_the_first_thread_alone_does_the_serial_share(program: Path, tmp_path: Path) -> None:
    truth = truth_of(program, tmp_path, "--threads", "2", "--omp-serial", "0.5", "--fork-joins", "3", ranks=1)
    assert truth["injected_thread_s"]["update_cells"] == [[[0.003] * 4, [0.001] * 4]]
    assert truth["injected_s"]["update_cells"] == [[0.003] * 4]
    assert counted(truth, "fork_joins") == [24]


@needs_mpi
@pytest.mark.parametrize(
    ("flag", "region", "count"),
    [
        ("--thrash", "sum_array", {"array_loads": [4 * 64 * 64] * 2}),
        ("--rowwise", "sum_array", {"array_loads": [4 * 64 * 64] * 2}),
        ("--false-sharing", "count_cells", {"counter_adds": [4 * 64] * 2}),
        ("--padded", "count_cells", {"counter_adds": [4 * 64] * 2}),
    ],
)
def test_memory_faults_are_counted_and_timed(
    program: Path, tmp_path: Path, flag: str, region: str, count: dict[str, list[int]]
) -> None:
    truth = truth_of(program, tmp_path, flag, "64")
    assert {name: counted(truth, name) for name in count} == count
    assert total(truth["measured_wall_s"][region]) > 0
    assert region not in truth["injected_s"]


@needs_mpi
def test_work_is_cpu_time_when_asked(program: Path, tmp_path: Path) -> None:
    truth = truth_of(program, tmp_path, "--work", "cpu", ranks=1)
    assert total(truth["measured_cpu_s"]["compute_fluxes"]) >= 4 * 0.002
    asleep = truth_of(program, tmp_path, ranks=1)
    assert total(asleep["measured_cpu_s"]["compute_fluxes"]) < 4 * 0.002


@needs_mpi
def test_work_can_be_operations(program: Path, tmp_path: Path) -> None:
    one = truth_of(program, tmp_path, "--work", "flops", "--rate", "1e6", ranks=1)
    many = truth_of(program, tmp_path, "--work", "flops", "--rate", "1e9", ranks=1)
    assert total(many["measured_cpu_s"]["update_cells"]) > 20 * total(one["measured_cpu_s"]["update_cells"])


@needs_mpi
def test_faults_combine(program: Path, tmp_path: Path) -> None:
    truth = truth_of(program, tmp_path, "--imbalance", "0.25", "--multiphase", "0.25", "--serial", "1", ranks=3)
    assert truth["injected_s"]["compute_fluxes"] == [[0.003] * 4, [0.002] * 4, [0.001] * 4]
    assert truth["injected_s"]["update_cells"] == [[0.002] * 4] * 3
    assert counted(truth, "messages") == [4, 8, 4]


@needs_mpi
@pytest.mark.parametrize("flags", [("--imbalence", "1"), ("--iters",), ("--iters", "few"), ("--imbalance", "2")])
def test_bad_flags_are_named(program: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    done = launch(program, tmp_path, flags, 1)
    assert done.returncode == 2
    assert flags[0] in done.stderr
    assert not (tmp_path / "truth.json").exists()


@needs_mpi
def test_help_lists_every_flag_that_the_truth_holds(program: Path, tmp_path: Path) -> None:
    said = launch(program, tmp_path, ("--help",), 1).stdout
    truth = truth_of(program, tmp_path)
    assert all(f"--{name} " in said for name in truth["options"])
    assert said.count("(default ") == len(truth["options"])


@needs_mpi
def test_the_truth_names_no_machine(program: Path, tmp_path: Path) -> None:
    truth_of(program, tmp_path, "--imbalance", "0.1")
    text = (tmp_path / "truth.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert str(program.parent) not in text
