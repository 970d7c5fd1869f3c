"""Dialects of timing tables that share a reader with others, and what the first rank alone tells."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gapwatch
from advisor.analysis import bounds, gaps, loads, quality, soundness
from advisor.formats import timing_tables
from advisor.model.errors import InputError
from advisor.model.records import RANKS_ADDED_UP

if TYPE_CHECKING:
    from advisor.model.records import Profile

HERE = Path(__file__).parents[1] / "profiles" / "timing_tables"
_SPPARKS = """SPPARKS (23 Jul 2020)
      Time    Naccept    Nreject
     140.5    1058942  912191058
Loop time of 802.351 on 4 procs

Solve time (%) = 29.1548 (3.63367)
Update time (%) = 0 (0)
Comm  time (%) = 21.6422 (2.69735)
Outpt time (%) = 731.551 (91.1759)
App   time (%) = 20.0 (2.49268)
Other time (%) = 0.00300241 (0.000374201)
"""
_HPL = """T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4       50000   192    17    32             509.41             1.6360e+02
HPL_pdgesv() start time Sat Apr  6 16:58:08 2024

HPL_pdgesv() end time   Sat Apr  6 17:06:37 2024

--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV-
Max aggregated wall time rfact . . . :              16.16
+ Max aggregated wall time pfact . . :              15.90
+ Max aggregated wall time mxswp . . :              15.82
Max aggregated wall time update  . . :             502.19
+ Max aggregated wall time laswp . . :             391.45
Max aggregated wall time up tr sv  . :               0.34
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.25554213e-03 ...... {verdict}
WR11C2R4       20000   192    17    32              92.71             5.7528e+01
"""
_VASP = """ vasp.6.3.2 27Jun22 (build Aug 10 2022) complex
 running   16 mpi-ranks, with    1 threads/rank
      LOOP:  cpu time    4.0000: real time    4.1000
     STRESS:  cpu time    1.0000: real time    1.1000
 General timing and accounting informations for this job:
 ========================================================

                  Total CPU time used (sec):      {cpu}
                            User time (sec):      {cpu}
                          System time (sec):        0.000
                         Elapsed time (sec):       10.000

                   Maximum memory used (kb):       75664.
                   Average memory used (kb):          N/A

                          Minor page faults:        54330
                          Major page faults:            0
                 Voluntary context switches:          339
"""


def read_text(text: str, tmp_path: Path, name: str = "out") -> Profile:
    """The profile of a file with this text."""
    (tmp_path / name).write_text(text)
    assert timing_tables.advisor_sniff(tmp_path / name) == 0.9
    profile = timing_tables.advisor_read(tmp_path / name)
    soundness.check_profile(profile)
    return profile


def list_gaps(profile: Profile) -> dict[str, float]:
    """The seconds of each gap."""
    summary = loads.summarize_loads(profile)
    found = gaps.attribute_gaps(profile, bounds.compute_bounds(profile, None, summary), summary)
    return {gap.name: gap.seconds for gap in found}


def find_letter(profile: Profile) -> str:
    """The grade."""
    summary = loads.summarize_loads(profile)
    levels = bounds.compute_bounds(profile, None, summary)
    return quality.grade_profile(profile, levels, gaps.attribute_gaps(profile, levels, summary)).letter


def test_sparta_counts_particles() -> None:
    """Its row Other holds what ranks wait for each other, so nothing may be called insignificant."""
    profile = timing_tables.advisor_read(HERE / "sparta.log")
    assert (profile.program, profile.ranks) == ("spa", 4)
    assert profile.actual_s == pytest.approx(1.61209, rel=1e-4)
    assert profile.parameters == {"particles": 51340.0, "steps": 1000.0}
    assert "waiting hidden" in {note.name for note in profile.notes}
    assert "the log ends early" not in {note.name for note in profile.notes}


def test_means_of_rows_that_keep_communication_apart_are_no_f(tmp_path: Path) -> None:
    profile = read_text(_SPPARKS, tmp_path)
    assert (profile.program, profile.ranks) == ("spk", 4)
    assert profile.actual_s == pytest.approx(802.351)
    note = next(note for note in profile.notes if note.name == RANKS_ADDED_UP)
    assert "2.7 % of the run in the mean" in note.text
    computing = next(bound for bound in bounds.compute_bounds(profile, None) if bound.name == "I")
    assert computing.seconds == pytest.approx(49.1548, abs=0.1)
    assert find_letter(profile) == "D"


@pytest.mark.parametrize("line", ["Outpt time (%) = 731.551 (81.1759)", "Outpt time (%) = x (91.1759)"])
def test_means_that_contradict_their_share_are_refused(line: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 9"):
        read_text(_SPPARKS.replace("Outpt time (%) = 731.551 (91.1759)", line), tmp_path)


def test_a_first_rank_without_a_core_is_told(tmp_path: Path) -> None:
    """MPI polls while it waits, so half of the run without a core is disks, other programs, or other ranks."""
    profile = read_text(_VASP.format(cpu="5.000"), tmp_path, "OUTCAR")
    assert list_gaps(profile) == {"O": pytest.approx(5.0)}
    assert find_letter(profile) == "D"
    note = next(note for note in profile.notes if note.name == RANKS_ADDED_UP)
    assert "no core for 50.0 % of the run" in note.text


def test_a_line_that_ranks_tore_is_left_out(tmp_path: Path) -> None:
    torn = "   EDDIAG:  cpu time    0.08 POTLOK:  cpu: real time 1\n"
    text = _VASP.format(cpu="5.000")
    first = next(line for line in text.splitlines(keepends=True) if "cpu time" in line)
    profile = read_text(text.replace(first, first + torn, 1), tmp_path, "OUTCAR")
    assert "lines not read" in {note.name for note in profile.notes}
    with pytest.raises(InputError, match="no line of times"):
        read_text(text.replace(first, first + 2 * torn, 1), tmp_path, "OUTCAR")


def test_a_first_rank_that_had_a_core_did_not_wait_for_disks(tmp_path: Path) -> None:
    """That much is known of it, as of one that had none; how the others fared is open all the same."""
    profile = read_text(_VASP.format(cpu="9.800"), tmp_path, "OUTCAR")
    assert list_gaps(profile) == {"O": pytest.approx(0.2)}
    assert find_letter(profile) == "D"
    note = next(note for note in profile.notes if note.name == RANKS_ADDED_UP)
    assert "had a core all the time" in note.text


def test_a_clock_of_whole_seconds_does_not_stretch_a_short_run(tmp_path: Path) -> None:
    steps = "".join(f"ExecutionTime = {0.02 * step:g} s  ClockTime = {step // 11} s\n\n" for step in range(1, 12))
    profile = read_text(f"Exec   : foamRun\nnProcs : 1\n{steps}End\n", tmp_path)
    assert profile.actual_s == pytest.approx(0.22)
    profile = read_text(
        f"Exec   : foamRun\nnProcs : 1\n{steps.replace('ClockTime = 1', 'ClockTime = 3')}End\n", tmp_path
    )
    assert profile.actual_s == pytest.approx(3), "that much is no matter of rounding"


def test_one_rank_has_no_places_to_be_coarse_about() -> None:
    """CASTEP's table is nearly all one row, of the first of 448 ranks, and a share of communication."""
    profile = timing_tables.advisor_read(HERE / "al3x3.castep")
    assert max(profile.sum_by_region("wall_s").sum(axis=1)) > 0.95 * profile.actual_s * profile.ranks
    assert find_letter(profile) == "D"


def test_an_output_that_ends_early_says_how_to_know_its_times(tmp_path: Path) -> None:
    (tmp_path / "OUTCAR").write_text(_VASP.format(cpu="9.990").replace("Voluntary", "Forced"))
    with pytest.raises(InputError, match=r"the run did not get there; .*: gapwatch run -- mpirun -n RANKS "):
        timing_tables.advisor_read(tmp_path / "OUTCAR")


def test_what_is_known_of_one_rank_is_told_and_left_open(tmp_path: Path) -> None:
    (tmp_path / "OUTCAR").write_text(_VASP.format(cpu="9.990"))
    run = gapwatch.load(tmp_path / "OUTCAR")
    assert run.verdict == "insufficient evidence"
    text = " ".join(run.to_text().split())
    assert "What is known: Time by region: vasp 89.0 %, STRESS 11.0 %." in text
    assert text.endswith("next: gapwatch run -- mpirun -n 16 ./PROGRAM")


def test_cpu_times_of_threads_say_nothing_of_cores(tmp_path: Path) -> None:
    threads = _VASP.format(cpu="5.000").replace("with    1 threads", "with    2 threads")
    assert "os_s" not in read_text(threads, tmp_path, "OUTCAR").phases[0].arrays


def test_gptl_is_nested_by_the_file_of_a_rank() -> None:
    profile = timing_tables.advisor_read(HERE / "gptl" / "model_timing_stats")
    soundness.check_profile(profile)
    assert profile.ranks == 8
    assert profile.actual_s == pytest.approx(2.051 + 50.104 + 0.502, rel=2e-3)
    names = {region.name for region in profile.regions}
    assert {"CPL:RUN_LOOP", "a:phys_run", "CPL:ATM_RUN_BARRIER"} <= names
    assert not {"PIO:PIO_openfile", "CPL:OCN_RUN"} & names, "several callers; not on the rank of the file"
    io_s = profile.phases[0].arrays["io_s"].sum(axis=(0, 2))
    assert io_s.mean() == pytest.approx(8.0 / 8, rel=1e-2)
    assert list_gaps(profile)["L"] > 1.0, "a:phys_run takes 27 s in the mean, and 32 s on rank 3"


def test_gptl_without_the_file_of_a_rank_claims_nothing_of_inner_timers(tmp_path: Path) -> None:
    text = (HERE / "gptl" / "model_timing_stats").read_text()
    profile = read_text(text, tmp_path, "model_timing_stats")
    assert {region.name for region in profile.regions} <= {"CPL:INIT", "CPL:RUN_LOOP", "CPL:FINAL", "not timed"}
    with pytest.raises(InputError, match="which timers contain which"):
        read_text(text.replace("CPL:FINAL", "CPL:FINISH"), tmp_path, "other_stats")


def test_gptl_of_a_program_that_times_its_run(tmp_path: Path) -> None:
    """What fits into the run beside each other is told apart; other output may follow the table at once."""
    text = (HERE / "gptl" / "model_timing_stats").read_text().replace('"CPL:RUN_LOOP"', '"Total"       ').rstrip()
    profile = read_text(f"{text}\n# compile CXX with mpicxx\n", tmp_path, "time-run1")
    names = {region.name for region in profile.regions}
    assert "timers contain each other" in {note.name for note in profile.notes}
    assert names & {"a:phys_run", "a:dyn_run"}
    assert "Total" not in names


def test_a_line_of_brackets_behind_the_timers_of_gptl_is_no_timer(tmp_path: Path) -> None:
    """To look for a timer in it must not take the cube of its length."""
    text = (HERE / "gptl" / "model_timing_stats").read_text().rstrip()
    begin = time.process_time()
    profile = read_text(f"{text}\n{'(1' * 5000}\n", tmp_path, "model_timing_stats")
    assert profile.ranks == 8
    assert time.process_time() - begin < 20.0


def test_gptl_does_not_use_the_file_of_a_rank_of_another_run(tmp_path: Path) -> None:
    text = (HERE / "gptl" / "model_timing.0000").read_text()
    (tmp_path / "model_timing.0000").write_text(text.replace("50.096000", "60.096000"))
    profile = read_text((HERE / "gptl" / "model_timing_stats").read_text(), tmp_path, "model_timing_stats")
    assert "a:phys_run" not in {region.name for region in profile.regions}


@pytest.mark.parametrize(("old", "new"), [("  32.105 ", "  12.105 "), (" - ", " x "), ('"a:dyn_run" ', "a: dyn_run ")])
def test_damaged_timers_of_gptl_are_refused(old: str, new: str, tmp_path: Path) -> None:
    text = (HERE / "gptl" / "model_timing_stats").read_text()
    with pytest.raises(InputError, match="line "):
        read_text(text.replace(old, new), tmp_path)


def test_gnu_time_of_threads(tmp_path: Path) -> None:
    """593 % of a core: the shares of user and system time are those of the cores that were in use."""
    profile = timing_tables.advisor_read(HERE / "time.txt")
    soundness.check_profile(profile)
    assert (profile.program, profile.ranks) == ("indexer", 1)
    assert profile.actual_s == pytest.approx(60.57)
    assert list_gaps(profile)["O"] == pytest.approx(60.57 * 20.45 / (338.75 + 20.45), rel=1e-2)
    notes = {note.name: note.text for note in profile.notes}
    assert notes["cores in use"].startswith("5.93 cores were in use")
    assert set(list_gaps(profile)) == {"O"}, "how the threads share the work is not known, and no zero"
    assert find_letter(profile) == "D"


def test_gnu_time_of_a_command_that_waits(tmp_path: Path) -> None:
    text = (HERE / "time.txt").read_text()
    for old, new in (("338.75", "30.00"), ("20.45", "2.00"), ("593%", "52%"), ("Exit status: 0", "Exit status: 3")):
        text = text.replace(old, new)
    profile = read_text(text + text.replace("1:00.57", "1:02.57").replace("52%", "51%"), tmp_path)
    assert profile.actual_s == pytest.approx(62.57)
    assert list_gaps(profile)["O"] == pytest.approx(32.57)
    names = {note.name for note in profile.notes}
    assert {"failed", "several runs in a log", RANKS_ADDED_UP} <= names


@pytest.mark.parametrize(
    ("old", "new"),
    [("593%", "493%"), ("338.75", "38.75"), ("1:00.57", "1-00.57"), ("\tExit status: 0\n", ""), ("1:00.57", "0:00")],
)
def test_damaged_times_of_gnu_time_are_refused(old: str, new: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_text((HERE / "time.txt").read_text().replace(old, new), tmp_path)


def test_mitgcm_sections_contain_each_other_and_tell_what_had_no_core() -> None:
    profile = timing_tables.advisor_read(HERE / "STDOUT.0000")
    soundness.check_profile(profile)
    assert (profile.program, profile.ranks, profile.actual_s) == ("mitgcmuv", 1, 26.5)
    wall = profile.phases[0].arrays["wall_s"].sum(axis=(1, 2))
    found = {region.name: value for region, value in zip(profile.regions, wall.tolist(), strict=True)}
    assert found["DYNAMICS"] == pytest.approx(11.0 + 0.05)
    assert found["EXF_GETFORCING"] == pytest.approx(0.55), "below LOAD_FIELDS_DRIVER, which it calls LOAD_FLDS_DRIVER"
    io_s = profile.phases[0].arrays["io_s"].sum()
    assert io_s == pytest.approx(6.0), "with what it waited for the disk"
    assert found["not on a core"] == pytest.approx(0.5)
    computing = next(bound for bound in bounds.compute_bounds(profile, None) if bound.name == "I")
    assert computing.seconds is not None
    assert computing.seconds < 21.0


def test_one_process_of_mitgcm_among_several_tells_for_how_long_it_had_no_core(tmp_path: Path) -> None:
    text = (HERE / "STDOUT.0000").read_text().replace("nProcs =    1", "nProcs =   16")
    profile = read_text(text, tmp_path, "STDOUT.0000")
    assert list_gaps(profile)["O"] == pytest.approx(6.0), "the 5.5 s without a core are in what it reads and writes"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Tile <-> Tile communication", "Tile", "did not get there"),
        ("Wall clock time:  11.1", "Wall time:  11.1", "expected 'Wall clock time'"),
        ("No. stops:          40", "No. stops:          39", "has no end"),
    ],
)
def test_damaged_sections_of_mitgcm_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = (HERE / "STDOUT.0000").read_text()
    assert old in text
    with pytest.raises(InputError, match=message):
        read_text(text.replace(old, new), tmp_path)


def test_gnu_time_of_a_launcher_says_nothing_about_the_cores_of_its_ranks(tmp_path: Path) -> None:
    command = "srun -n 64 --mca a b --exclusive -x A=$(id) /home/user/bin/indexer"
    text = (HERE / "time.txt").read_text().replace("/home/user/bin/indexer", command)
    for old, new in (("338.75", "0.05"), ("20.45", "0.03"), ("593%", "0%")):
        text = text.replace(old, new)
    profile = read_text(text, tmp_path)
    assert (profile.program, profile.command) == ("indexer", f"{command} -t 8 -d input")
    assert not list_gaps(profile), "the time without a core is not the system's"
    assert find_letter(profile) == "F"
    notes = {note.name: note for note in profile.notes}
    assert "ranks on other nodes" in notes["cores in use"].text
    assert notes["cores in use"].collect == f"gapwatch run -- {command} -t 8 -d input".replace("A=$(id)", "'A=$(id)'")


def test_mpas_states_slowest_and_mean_task() -> None:
    profile = timing_tables.advisor_read(HERE / "mpas.log")
    soundness.check_profile(profile)
    assert (profile.program, profile.ranks, profile.actual_s) == ("MPAS-atmosphere", 64, pytest.approx(100.0))
    seconds = {
        region.name: float(row) for region, row in zip(
            profile.regions, profile.phases[0].arrays["wall_s"].mean(axis=(1, 2)), strict=True
        )
    }  # fmt: skip
    assert seconds["initialize"] == pytest.approx(9.99, rel=1e-3)
    assert seconds["PBL Scheme"] == pytest.approx(10.0, rel=1e-3)
    assert seconds["physics driver"] == pytest.approx(14.0, rel=1e-3), "without the scheme that it calls"
    assert seconds["atm_compute_dyn_tend"] == pytest.approx(39.6, rel=1e-3)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("0.12000    30.00", "0.16000    30.00", "slowest"),
        ("12.00000       200", "52.00000       200", "per|%|efficiency"),
        ("  34.09       0.80", "  34.09       0.50", "efficiency"),
        ("  1 total time", "  2 total time", "not that of the run"),
    ],
)
def test_mpas_whose_numbers_contradict_each_other_is_refused(old: str, new: str, reason: str, tmp_path: Path) -> None:
    text = (HERE / "mpas.log").read_text()
    assert old in text
    with pytest.raises(InputError, match=reason):
        read_text(text.replace(old, new, 1), tmp_path)


def test_siesta_over_the_ranks() -> None:
    """Routines hold their communication, so that nothing tells who waits for whom."""
    profile = timing_tables.advisor_read(HERE / "siesta.times")
    soundness.check_profile(profile)
    assert (profile.program, profile.ranks, profile.actual_s) == ("siesta", 4, pytest.approx(50.12))
    names = [region.name for region in profile.regions]
    assert "IterGeom" not in names, "it contains the others"
    assert profile.phases[0].arrays["wall_s"][names.index("rhoofd")].mean() == pytest.approx(0.8 * 12.0, rel=1e-3)
    assert {RANKS_ADDED_UP, quality.HIDDEN, "timers contain each other"} <= {note.name for note in profile.notes}


def test_siesta_with_communication_apart(tmp_path: Path) -> None:
    text = (HERE / "siesta.times").read_text()
    comm = "Comm: Sum, Avge, myNode, Avg/Max =      40.000      10.000      12.000   0.700"
    calc = "Calc: Sum, Avge, myNode, Avg/Max =     140.000      35.000      37.000   0.920"
    lines = [calc if line.startswith("Calc:") else line for line in text.splitlines()]
    lines[lines.index("No communications time available. Compile with -DMPI_TIMING")] = comm
    lines = [line.replace("190.000      47.500      50.000   0.950", "180.000      45.000      45.000   1.000")
             .replace("50.120", "45.000").replace("50.000   1.0000", "45.000   1.0000") for line in lines]  # fmt: skip
    lines = [line for line in lines if not line.startswith(("IterGeom", "Setup", "rhoofd", "vmat", "cdiag3"))]
    profile = read_text("\n".join(lines), tmp_path)
    assert {region.name for region in profile.regions} >= {"computation", "communication"}
    assert list_gaps(profile)["L"] == pytest.approx(35.0 / 0.92 - 35.0, rel=1e-3)


def test_siesta_in_a_serial_run(tmp_path: Path) -> None:
    table = "\n".join(
        f"{name:15}{calls:9}{each:12.3f}{total:12.3f}{100 * total / 20:9.2f}"
        for name, calls, each, total in [("siesta", 1, 20, 20), ("IterSCF", 10, 1.5, 15), ("cellXC", 10, 1.2, 12)]
    )
    head = (
        "* Running in serial mode\n\ntimer: Elapsed wall time (sec) =      20.500\ntimer: CPU execution times (sec):\n"
    )
    profile = read_text(f"{head}\nRoutine            Calls   Time/call    Tot.time        %\n{table}\n  \n", tmp_path)
    assert (profile.ranks, profile.actual_s) == (1, 20.5)
    with pytest.raises(InputError, match="of the run"):
        read_text(f"{head}\nRoutine  Calls Time/call  Tot.time   %\n{table.replace('75.00', '57.00')}\n\n", tmp_path)


def test_abinit_lists_sections_that_do_not_contain_each_other() -> None:
    profile = timing_tables.advisor_read(HERE / "abinit.out")
    assert (profile.program, profile.ranks, profile.actual_s) == ("abinit", 1, pytest.approx(42.5))
    seconds = dict(
        zip((region.name for region in profile.regions), profile.phases[0].arrays["wall_s"][:, 0], strict=True)
    )
    assert seconds["projbd"] == 10.2
    assert sum(seconds.values()) == pytest.approx(42.5)


def test_abinit_on_several_ranks_tells_of_the_first_alone(tmp_path: Path) -> None:
    text = (HERE / "abinit.out").read_text().replace("mpi_nprocs = 1", "mpi_nprocs = 8")
    profile = read_text(text, tmp_path)
    assert profile.ranks == 8
    assert RANKS_ADDED_UP in {note.name for note in profile.notes}
    assert "L" not in list_gaps(profile) or list_gaps(profile)["L"] == 0


def test_clocks_with_stars_for_calls_are_read(tmp_path: Path) -> None:
    """Fortran prints stars where a number of calls does not fit."""
    text = (HERE / "pwscf.out").read_text()
    line = next(line for line in text.split("\n") if "vloc_psi" in line)
    starred = re.sub(r"\( *\d+ calls\)", "(******** calls)", line)
    assert starred != line
    (tmp_path / "pw.out").write_text(text.replace(line, starred))
    found, whole = (timing_tables.advisor_read(path) for path in (tmp_path / "pw.out", HERE / "pwscf.out"))
    assert found.actual_s == whole.actual_s
    assert [region.name for region in found.regions] == [region.name for region in whole.regions]


def test_an_openfoam_log_with_a_path_names_the_program(tmp_path: Path) -> None:
    text = (HERE / "openfoam.log").read_text()
    name = re.search(r"Exec   : (\S+)", text)
    assert name is not None
    (tmp_path / "log").write_text(text.replace(name[0], f"Exec   : /opt/openfoam/bin/{name[1]}"))
    assert timing_tables.advisor_read(tmp_path / "log").program == name[1]


@pytest.mark.parametrize(
    ("clock", "seconds"), [("  1d 2h22m", 94920.0), (" 16h50m", 60600.0), (" 3m 2.50s", 182.5), ("18.99s", 18.99)]
)
def test_days_of_a_clock_are_not_lost(clock: str, seconds: float, tmp_path: Path) -> None:
    text = (HERE / "pwscf.out").read_text()
    lines = [re.sub(r":.* CPU .* WALL", f":{clock} CPU {clock} WALL", line) if re.match(r" +PWSCF +:", line) else line
             for line in text.split("\n")]  # fmt: skip
    (tmp_path / "pw.out").write_text("\n".join(lines))
    assert timing_tables.advisor_read(tmp_path / "pw.out").actual_s == pytest.approx(seconds)


@pytest.mark.parametrize("verdict", ["PASSED", "FAILED"])
def test_parts_of_hpl_are_those_of_its_slowest_processes(verdict: str, tmp_path: Path) -> None:
    """The longest test is shown; maxima of different processes together exceed the run, and are shortened alike."""
    profile = read_text("\n" + _HPL.format(verdict=verdict), tmp_path, "hpl.out")
    assert (profile.program, profile.ranks, profile.started) == ("xhpl", 17 * 32, "2024-04-06T16:58:08")
    assert profile.actual_s == pytest.approx(509.41)
    wall = profile.phases[0].arrays["wall_s"][:, 0, 0].tolist()
    found = dict(zip((region.name for region in profile.regions), wall, strict=True))
    assert found["exchange of rows"] == pytest.approx(391.45 * 509.41 / (16.16 + 502.19 + 0.34))
    assert sum(wall) == pytest.approx(509.41)
    notes = {note.name for note in profile.notes}
    assert "several runs in a log" in notes
    assert ("failed" in notes) == (verdict == "FAILED")
