"""Timing tables of libraries: every dialect gives the rows that are printed, and the least imbalance they allow."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import numpy as np
import pytest
from timing_profiles import HERE, gap_of, seconds

from advisor.analysis import bounds, soundness
from advisor.formats import timing_tables
from advisor.model.errors import InputError
from advisor.model.records import RANKS_ADDED_UP, Profile
from advisor.support import contract

if TYPE_CHECKING:
    from pathlib import Path

#: Ranks, run time, and the seconds of some rows as the files print them (means over ranks).
EXPECTED: dict[str, tuple[int, float, dict[str, float]]] = {
    "lammps.log": (4, 15.498, {}),
    "gromacs.log": (4, 40.229, {"Force": 2.656, "Comm. coord.": 8.680, "PME 3D-FFT Comm.": 2.871}),
    "gromacs-pme.log": (4, 37.802, {"PME spread": 0.274 / 4}),
    "cp2k.out": (2, 19.683, {"mp_sendrecv_dv": 1.420, "yz_to_x": 0.114}),
    "pwscf.out": (2, 18.99, {"vloc_psi": 10.60, "wfcinit": 0.77}),
    "ipm-banner.txt": (4, 12.5, {}),
    "kokkos.txt": (4, 14.53, {"Heat::Stencil": 8.03, "Heat::Norm": 2.53}),
    "petsc.xml": (4, 6.741, {"VecScatterEnd": 0.680, "VecNorm": 1.005, "MatSolve": 0.525}),
    "petsc.csv": (4, 6.007, {}),
    "petsc.txt": (4, 8.470, {}),
    "teuchos.txt": (4, 7.745, {"heat: assemble": 3.634, "heat: solve": 2.162, "heat: exchange halo": 1.935}),
    "teuchos-serial.txt": (1, 1.227, {"heat: assemble": 0.568, "heat: solve": 0.6587}),
    "tiny-profiler.txt": (8, 7.504, {"Solver::advance()": 4.411, "FillBoundary_finish()": 2.407}),
    "dealii-statistics.txt": (6, 12.44, {"Assemble": 2.842, "Exchange ghost values": 2.012}),
    "dealii-summary.txt": (1, 88.8, {"Assemble": 19.7, "Solve": 3.03}),
    "craypat.txt": (24, 10.929, {"sphexa::sph::computeIADImpl<>": 2.592, "MPI_Recv": 0.436}),
    "performance-report.txt": (16, 92.0, {"Compute": 32.2, "MPI: collective calls": 40.48, "I/O: writes": 9.2}),
    "openfoam.log": (1, 35.0, {"time steps": 24.46, "not on a core": 7.16}),
    "openfoam-profiling.txt": (1, 59.1, {"fvMatrix::solve.p": 55.1, "functionObjects.write": 1.0}),
    "nwchem.out": (1, 5.5, {"not on a core": 0.9}),
    "fms.log": (49, 16282.797792, {"oasis_recv": 170.460762, "OASIS init": 0.232397}),
    "fms-serial.log": (1, 100.641190, {"Ocean thermodynamics and tracers": 11.512013}),
    "ESMF_Profile.summary": (1664, 2559.5801, {"[MED-TO-OCN] RunPhase1": 16.7498, "cice_run_export": 0.24095}),
    "OUTCAR": (1, 12.33, {"STRESS": 1.6945, "not on a core": 2.405}),
    "rsl.error.0000": (1792, 12.364, {"reading restart file": 6.87283, "writing files": 2.3122}),
    "fhi-aims.out": (96, 7863.004, {"Total time evaluating exchange matrix": 1524.613, "Grid partitioning": 2.458}),
    "al3x3.castep": (448, 196.96, {"calculation": 189.13, "finalisation": 6.15}),
    "timing.output": (4, 100.6, {"tra_adv": 30.15, "sbc_ice_cice": 15.075, "dia_wri": 10.05}),
    "hpcg.txt": (4, 3.24799, {"SpMV": 0.359059, "MG": 1.98151, "MPI_Allreduce": 0.675914}),
    "hpl.out": (1, 1012.71, {"HPL_pdgesv": 1012.71}),
    "namd.log": (16, 124.164963, {"startup": 17.1121}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_rows_are_those_of_the_file(name: str) -> None:
    ranks, wall_s, rows = EXPECTED[name]
    assert timing_tables.advisor_sniff(HERE / name) == 0.9
    profile = timing_tables.advisor_read(HERE / name)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert len(profile.processors) == ranks
    assert profile.actual_s == pytest.approx(wall_s, rel=0.1 if "pme" in name else 2e-3)
    found = seconds(profile)
    assert {row: found[row] for row in rows} == pytest.approx(rows, rel=2e-2)


@pytest.mark.parametrize("name", EXPECTED)
def test_processors_take_the_whole_run(name: str) -> None:
    profile = timing_tables.advisor_read(HERE / name)
    inside = profile.phases[0].arrays["wall_s"].sum(axis=(0, 2))
    whole = inside + sum(profile.outside.values(), np.zeros(len(inside)))
    assert whole == pytest.approx(profile.actual_s, rel=2e-2)


def test_extremes_bound_the_imbalance() -> None:
    """In the recorded program the ranks assemble 1.82, …, 5.03 s: L is 1.40 s, and 1.38 s follow from the table."""
    gap = gap_of(timing_tables.advisor_read(HERE / "teuchos.txt"), "L")
    assert 1.3 < gap.seconds <= 5.034 - 3.634 + 0.01
    assert gap.regions[0].name == "heat: assemble"
    assert gap.status == "estimated"
    assert not gap.processors, "which rank is the slowest is not in the table"


def test_means_alone_say_nothing_of_balance() -> None:
    for name, measures in (("pwscf.out", {"wall_s", "cpu_s", "os_s"}), ("dealii-summary.txt", {"wall_s"})):
        profile = timing_tables.advisor_read(HERE / name)
        assert set(profile.phases[0].arrays) == measures
        assert any(note.name == RANKS_ADDED_UP for note in profile.notes)
        levels = bounds.compute_bounds(profile, None)
        known = {bound.name for bound in levels if bound.seconds is not None}
        assert known == ({"actual", "I"} if "cpu_s" in measures else {"actual"})


def test_communication_of_the_first_rank_is_no_computation() -> None:
    """Quantum ESPRESSO prints 2.24 s of 18.99 s for fft_scatter; NAMD's PEs idled 4.04 s where loads were measured."""
    for name, seconds_s in (("pwscf.out", None), ("namd.log", 4.04)):
        profile = timing_tables.advisor_read(HERE / name)
        computing = next(bound for bound in bounds.compute_bounds(profile, None) if bound.name == "I")
        assert computing.seconds is not None
        assert computing.status == "estimated"
        if seconds_s is not None:
            assert computing.seconds == pytest.approx(profile.actual_s - seconds_s, abs=0.02)


def test_what_is_not_on_a_core_is_no_computation() -> None:
    for name, cpu_s in (("OUTCAR", 9.925), ("openfoam.log", 24.46), ("nwchem.out", 4.6)):
        levels = bounds.compute_bounds(timing_tables.advisor_read(HERE / name), None)
        assert next(bound.seconds for bound in levels if bound.name == "I") == pytest.approx(cpu_s, abs=0.01)


def test_steps_of_wrf_hold_their_nests_and_what_is_read_before_them(tmp_path: Path) -> None:
    lines = [
        "Ntasks in X 4 , ntasks in Y 2",
        "Timing for processing wrfinput file (stream 0) for domain        1:    3.00000 elapsed seconds",
        "Timing for Writing wrfout_d01_2001-10-25_00:00:00 for domain        1:    1.50000 elapsed seconds",
        "Timing for main: time 2001-10-25_00:00:24 on domain   2:    0.20000 elapsed seconds",
        "Timing for main: time 2001-10-25_00:00:48 on domain   2:    0.20000 elapsed seconds",
        "Timing for main: time 2001-10-25_00:01:12 on domain   1:    2.50000 elapsed seconds",
        "Timing for main: time 2001-10-25_00:02:24 (dt= 72.00) on domain   1:    0.50000 elapsed seconds",
        "Timing for Writing wrfout_d01_2001-10-25_00:02:24 for domain        1:    1.25000 elapsed seconds",
        "wrf: SUCCESS COMPLETE WRF",
    ]
    path = tmp_path / "rsl.out.0000"
    path.write_text("\n".join(lines) + "\n")
    profile = timing_tables.advisor_read(path)
    assert profile.actual_s == pytest.approx(3.0 + 2.5 + 0.5 + 1.25)
    assert seconds(profile) == pytest.approx(
        {"wrf.exe": 0.0, "steps of domain 1": 1.1, "steps of domain 2": 0.4, "writing files": 2.75,
         "reading wrfinput file": 3.0}
    )  # fmt: skip
    assert gap_of(profile, "O").seconds == pytest.approx(5.75)
    path.write_text("\n".join(lines[:-1]) + "\n")
    assert "the log ends early" in {note.name for note in timing_tables.advisor_read(path).notes}


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("fms.log", "15986.765795", "14986.765795", "contradict"),
        ("fms.log", "0.010    31", "0.090    31", "of the run"),
        ("fms.log", "Total runtime ", "Total run-time", "missing"),
        ("ESMF_Profile.summary", "155.8202", "175.8202", "between"),
        ("ESMF_Profile.summary", "94      160", "9494    160", "more ranks"),
        ("OUTCAR", "9.530", "8.530", "user and system"),
        ("rsl.error.0000", "Ntasks in X           32", "Ntasks in X            0", "0 ranks"),
        ("rsl.error.0000", "2001-10-25_00:01:12 on", "2001-10-25_00:61:12 on", "not a model time"),
        ("fhi-aims.out", "1524.613", "9524.613", "longer than the run"),
        ("fhi-aims.out", "Time     :  091211.630", "Time     :  111211.630", "lie between the dates"),
        ("fhi-aims.out", "7863.004", "7863004.0", "lie between the dates"),
        ("fhi-aims.out", "Have a nice day", "Have a nice", "did not get there"),
        ("al3x3.castep", "189.13", "188.13", "add up to"),
        ("al3x3.castep", "(36%)", "(136%)", "an efficiency of 136 %"),
        ("timing.output", "30.00             29.80", "31.00             29.80", "of the run"),
        ("timing.output", "34.00     26.00", "24.00     26.00", "between"),
        ("timing.output", "    2         |", "    3         |", "once each and in order"),
        ("timing.output", "100.400      |      98.300", "100.500      |      98.300", "do not add up"),
        ("timing.output", "at 13:57:29", "at 15:57:29", "lie between the dates"),
        ("timing.output", "    1         |", "    2         |", "once each and in order"),
        ("hpcg.txt", "SpMV=0.359059", "SpMV=0.459059", "contradict"),
        ("hpcg.txt", "Raw MG=4.58008e+08", "Raw MG=4.68008e+08", "do not add up"),
        ("hpcg.txt", "Avg DDOT MPI_Allreduce time=0.6", "Avg DDOT MPI_Allreduce time=0.9", "between"),
        ("hpcg.txt", "Summary::WAXPBY", "Summary::WAXBPY", "lacks 'Benchmark Time Summary::WAXPBY'"),
        ("hpl.out", "1.01654e+03", "1.01654e+04", "are not those of N = 115584"),
        ("hpl.out", "115584", "125584", "are not those of N = 125584"),
        ("namd.log", "AVG 16.0088 MAX 17.4925", "AVG 18.0088 MAX 17.4925", "contradict"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(
    name: str, old: str, new: str, reason: str, tmp_path: Path
) -> None:
    text = (HERE / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    with pytest.raises(InputError, match=reason):
        timing_tables.advisor_read(tmp_path / name)


def test_the_longest_run_of_a_log_is_shown() -> None:
    notes = {note.name: note.text for note in timing_tables.advisor_read(HERE / "lammps.log").notes}
    assert "2 runs" in notes["several runs in a log"]
    assert "processors share cores" in notes


def test_a_run_without_a_breakdown_does_not_take_that_of_the_next(tmp_path: Path) -> None:
    text = (HERE / "lammps.log").read_text()
    warm_up = "Loop time of 99.5 on 4 procs for 50 steps with 6600 atoms\n\n"
    (tmp_path / "log.lammps").write_text(text.replace("Loop time of 15.498", warm_up + "Loop time of 15.498", 1))
    profile = timing_tables.advisor_read(tmp_path / "log.lammps")
    assert profile.actual_s == pytest.approx(15.498)
    notes = {note.name: note.text for note in profile.notes}
    assert "3 runs; the longest with a breakdown" in notes["several runs in a log"]


def test_start_times_in_one_form() -> None:
    for name, started in (
        ("cp2k.out", "2026-11-22T22:47:02"),
        ("pwscf.out", "2026-11-22T22:47:24"),
        ("petsc.txt", "2026-11-22T22:58:16"),
        ("petsc.xml", "2026-11-22T22:58:39"),
        ("teuchos.txt", None),
    ):
        assert timing_tables.advisor_read(HERE / name).started == started


def test_packed_output(tmp_path: Path) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress((HERE / "teuchos.txt").read_bytes()))
    assert timing_tables.advisor_sniff(tmp_path / "log.gz") == 0.9
    assert seconds(timing_tables.advisor_read(tmp_path / "log.gz")) == seconds(
        timing_tables.advisor_read(HERE / "teuchos.txt")
    )


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the solver took 3 s\n")
    assert timing_tables.advisor_sniff(tmp_path / "notes.txt") is None
    assert timing_tables.advisor_sniff(tmp_path) is None
    with pytest.raises(InputError, match="no timing table"):
        timing_tables.advisor_read(tmp_path / "notes.txt")


def test_mistakes_name_their_line(tmp_path: Path) -> None:
    text = (HERE / "teuchos.txt").read_text().replace("3.634 (20)", "3.6x4 (20)")
    (tmp_path / "out.txt").write_text(text)
    line = next(n for n, each in enumerate(text.split("\n"), start=1) if "3.6x4" in each)
    with pytest.raises(InputError, match="no line of the times of Teuchos") as caught:
        timing_tables.advisor_read(tmp_path / "out.txt")
    assert f"line {line}" in str(caught.value)
