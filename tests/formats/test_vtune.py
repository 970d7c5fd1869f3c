"""Reports of VTune: what summaries and tables of hotspots state, and what follows from it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from advisor.analysis import bounds, soundness
from advisor.formats import vtune
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

HERE = Path(__file__).parents[1] / "profiles" / "vtune"
NAMES = ("hpc-performance.txt", "hotspots.txt", "summary.csv", "hotspots.csv")


@pytest.mark.parametrize("name", NAMES)
def test_reports_are_read(name: str) -> None:
    assert vtune.advisor_sniff(HERE / name) == 0.9
    profile = vtune.advisor_read(HERE / name)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)


def test_serial_parts_are_known_from_hpc_performance() -> None:
    """14.605 s outside of parallel regions, 2.685 s ideal inside: P is 39/40 of the serial part."""
    profile = vtune.advisor_read(HERE / "hpc-performance.txt")
    assert (profile.program, profile.actual_s, len(profile.processors), profile.cores) == ("a", 40.612, 40, 40)
    levels = {bound.name: bound for bound in bounds.compute_bounds(profile, None)}
    assert levels["I"].seconds == pytest.approx(2.685 + 14.605 / 40)
    assert levels["IP"].seconds == pytest.approx(2.685 + 14.605)
    assert levels["IPCOL"].seconds is None, "imbalance is not in a summary"
    serial = profile.phases[0]
    assert [profile.regions[number].name for number in serial.regions][:2] == [
        "[Loop at line 411 in pulay_overlap]",
        "[vmlinux]",
    ]
    assert serial.arrays["cpu_s"][:, 0, 0].sum() == pytest.approx(14.605)
    assert "23.1 s" in {note.name: note.text for note in profile.notes}["OpenMP potential gain"]


def test_functions_of_a_summary_share_the_effective_time() -> None:
    profile = vtune.advisor_read(HERE / "hotspots.txt")
    cpu = profile.phases[0].arrays["cpu_s"][:, 0, 0]
    assert profile.program == "test_new"
    assert cpu.sum() == pytest.approx(6.2)
    assert cpu[0] == pytest.approx(2.21 * 6.2 / 6.26, rel=1e-2)


def test_threads_of_a_summary_are_a_mean() -> None:
    profile = vtune.advisor_read(HERE / "summary.csv")
    assert (profile.program, len(profile.processors)) == ("heat", 2)
    assert profile.phases[0].arrays["cpu_s"].sum() == pytest.approx(280.25)
    assert {"spin time", "threads added up", "waiting unknown"} <= {note.name for note in profile.notes}


def test_hotspots_hold_effective_time_without_a_run_time() -> None:
    profile = vtune.advisor_read(HERE / "hotspots.csv")
    assert math.isnan(profile.actual_s)
    rows = {region.name: region for region in profile.regions}
    assert rows["mat_mul"].file == "stencil.cpp"
    assert profile.phases[0].arrays["cpu_s"].sum() == pytest.approx(5.25)


def test_functions_below_their_callers(tmp_path: Path) -> None:
    (tmp_path / "top-down.csv").write_text(
        "Function Stack,CPU Time:Self,Module\nTotal,0.0,[Unknown]\n main,0.5,heat\n"
        '  "solve<double, 3>",2.5,heat\n  step,0.25,heat\n   "solve<double, 3>",1.0,heat\n'
    )
    assert vtune.advisor_sniff(tmp_path / "top-down.csv") == 0.9
    profile = vtune.advisor_read(tmp_path / "top-down.csv")
    cpu = dict(
        zip((region.name for region in profile.regions), profile.phases[0].arrays["cpu_s"][:, 0, 0], strict=True)
    )
    assert cpu["solve<double, 3>"] == 3.5
    assert sum(cpu.values()) == 4.25


def test_threads_and_other_delimiters(tmp_path: Path) -> None:
    (tmp_path / "threads.csv").write_text(
        "Thread;Function;CPU Time:Effective Time:Self;Module\n"
        "main (TID: 1);solve;3.5s;heat\nOMP Worker (TID: 2);solve;2.5s;heat\nOMP Worker (TID: 2);idle;0s;libomp\n"
    )
    profile = vtune.advisor_read(tmp_path / "threads.csv")
    solve = [number for number, region in enumerate(profile.regions) if region.name == "solve"]
    assert profile.phases[0].arrays["cpu_s"][solve, :, 0].sum(axis=0).tolist() == [3.5, 2.5]
    assert "threads not told apart" not in {note.name for note in profile.notes}


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("hotspots.csv", "4.850\t4.850", "4.850\tsoon", "is not a time"),
        ("hotspots.csv", "0.410\t0.400", "0.400", "8 cells in a table of 9"),
        ("hotspots.txt", "Effective Time: 6.200s", "Effective Time: 96.200s", "more than 1 threads can take"),
        ("hpc-performance.txt", "Ideal Time: 2.685s", "Ideal Time: 32.685s", "contradict the elapsed time"),
        ("summary.csv", "149.771137", "soon", "which is not a time"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, name: str, old: str, new: str, reason: str) -> None:
    text = (HERE / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    with pytest.raises(InputError, match=reason):
        vtune.advisor_read(tmp_path / name)


def test_other_tables_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Metric Name,Metric Value\nloss,0.3\n")
    (tmp_path / "b.txt").write_text("Elapsed Time: 3.5s\nall went well\n")
    assert vtune.advisor_sniff(tmp_path / "a.csv") is None
    assert vtune.advisor_sniff(tmp_path / "b.txt") is None


def test_damage_is_refused_or_read_soundly(tmp_path: Path) -> None:
    draw = np.random.default_rng(7)
    for name in NAMES:
        content = (HERE / name).read_bytes()
        path = tmp_path / name
        for number in range(120):
            damaged = bytearray(content[: draw.integers(len(content))] if number % 2 else content)
            if not number % 2:
                damaged[draw.integers(len(damaged))] ^= 1 << int(draw.integers(8))
            path.write_bytes(damaged)
            vtune.advisor_sniff(path)
            try:
                profile = vtune.advisor_read(path)
            except InputError:
                continue
            contract.check_value(profile, Profile)
            soundness.check_profile(profile)


def test_commas_in_names_that_are_not_quoted(tmp_path: Path) -> None:
    """VTune quotes no names: times tell where a name ends."""
    columns = "Function,CPU Time,CPU Time:Effective Time,CPU Time:Spin Time,Module,Function (Full),Source File"
    rows = (
        "solve(int, double*, int),4.000,3.900,0.100,heat,solve(int, double*, int),heat.cpp",
        "relax<float, 4>,1.000,1.000,,heat,relax<float, 4>,heat.cpp",
        "main,0.500,0.500,0.000,heat,main,heat.cpp",
    )
    (tmp_path / "hotspots.csv").write_text("\n".join((columns, *rows)) + "\n")
    profile = vtune.advisor_read(tmp_path / "hotspots.csv")
    found = dict(zip((r.name for r in profile.regions), profile.sum_by_region("cpu_s").sum(axis=1), strict=True))
    assert found == pytest.approx({"solve(int, double*, int)": 3.9, "relax<float, 4>": 1.0, "main": 0.5})
    assert {region.file for region in profile.regions} == {"heat.cpp"}
