"""Timing tables: what each dialect tells of ranks, threads and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from advisor.analysis import bounds, quality
from advisor.formats import timing_tables
from advisor.formats.plain_text import read_ends, read_plain_text
from advisor.formats.timing_tables.dialect_list import find_dialect
from advisor.model.records import DEVICES_UNSEEN, RANKS_ADDED_UP

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.timing_tables.table import TimingTable

from timing_profiles import HERE, gap_of, seconds


def test_gromacs_states_its_imbalance() -> None:
    """9.7 % of the run is waiting for the slowest rank: that much longer the slowest computes forces than the mean."""
    profile = timing_tables.advisor_read(HERE / "gromacs.log")
    force = [region.name for region in profile.regions].index("Force")
    wall = profile.phases[0].arrays["wall_s"][force, :, 0]
    assert wall.max() - wall.mean() <= 0.097 * profile.actual_s + 1e-9
    assert quality.HIDDEN in {note.name for note in profile.notes}, "what is waited in Comm. coord. is not known"


def test_ranks_of_another_kind_tell_nothing_of_waiting() -> None:
    """No rank for forces does PME: that it spends nothing in PME's communication says not that others only wait."""
    profile = timing_tables.advisor_read(HERE / "gromacs-pme.log")
    rows = [region.name for region in profile.regions]
    arrays = profile.phases[0].arrays
    assert arrays["wait_s"][rows.index("PME wait for PP")].any()
    assert not arrays["wait_s"][rows.index("Wait + Recv. PME F")].any()
    assert arrays["transfer_s"][rows.index("Wait + Recv. PME F")].any()
    assert quality.HIDDEN in {note.name for note in profile.notes}


def test_ranks_for_pme_are_kept_apart() -> None:
    profile = timing_tables.advisor_read(HERE / "gromacs-pme.log")
    rows = [region.name for region in profile.regions]
    force, wait = (profile.phases[0].arrays["wall_s"][rows.index(name), :, 0] for name in ("Force", "PME wait for PP"))
    assert (force[:3] > 0).all()
    assert force[3] == 0
    assert wait.tolist() == pytest.approx([0, 0, 0, 36.625])


def test_the_rank_that_communicates_least_works_longest() -> None:
    """The sample's ranks work 8.0, 8.1, 8.2 and 11.6 s of 12.5; the banner holds 0.9 s as the least of MPI."""
    gap = gap_of(timing_tables.advisor_read(HERE / "ipm-banner.txt"), "L")
    assert gap.seconds == pytest.approx(11.6 - (8.0 + 8.1 + 8.2 + 11.6) / 4, abs=0.02)


def test_mean_and_most_bound_the_least() -> None:
    """Ranks of the recorded program work 4, 8, 12 and 16 units in one kernel and 3 in the other."""
    gap = gap_of(timing_tables.advisor_read(HERE / "kokkos.txt"), "L")
    assert 2.7 < gap.seconds <= 0.383 * 8.03 + 0.1
    assert gap.regions[0].name == "Heat::Stencil"


def test_each_rank_of_petsc() -> None:
    """Rank 0 has half of the rows: it works longest, and the others wait for it."""
    profile = timing_tables.advisor_read(HERE / "petsc.csv")
    assert gap_of(profile, "L").processors[0].name == "rank 0"
    assert RANKS_ADDED_UP not in {note.name for note in profile.notes}
    assert profile.counts["messages"].sum() == pytest.approx(132)
    assert profile.counts["bytes"].sum() == pytest.approx(1992)
    tree = timing_tables.read_call_paths(HERE / "petsc.xml")
    names = [node.name for node in tree.nodes]
    scatter = tree.nodes[names.index("VecScatterEnd")]
    assert tree.nodes[scatter.parent].name == "MatMult"


def test_threads_of_lammps_that_do_not_run_are_told(tmp_path: Path) -> None:
    text = (HERE / "lammps.log").read_text().replace("x 1 OpenMP", "x 4 OpenMP")
    for percent, name in (("390%", None), ("210%", "threads idle"), ("97%", "threads not used"),
                          ("50%", "processors share cores")):  # fmt: skip
        (tmp_path / "log.lammps").write_text(text.replace("0.6%", percent))
        names = {note.name for note in timing_tables.advisor_read(tmp_path / "log.lammps").notes}
        kinds = {"threads idle", "threads not used", "processors share cores"}
        assert names & kinds == ({name} if name else set())


def test_tasks_that_wait_for_files_or_devices_need_no_core(tmp_path: Path) -> None:
    text = (HERE / "lammps.log").read_text().replace("0.6%", "50%")
    assert has_note(tmp_path / "log.lammps", text, "processors share cores")
    assert not has_note(
        tmp_path / "log.lammps", f"  will use up to 1 GPU(s) per node\n{text}", "processors share cores"
    )
    wall_s = 10.0
    table = "".join(
        f"{name:8}| {seconds:<10} | {seconds:<10} | {seconds:<10} |   0.0 | {10 * seconds:5.2f}\n"
        for name, seconds in (("Pair", 6.3), ("Comm", 0.0), ("Output", 3.6), ("Modify", 0.0), ("Other", 0.1))
    )
    alone = f"""LAMMPS (2 Aug 2023)
Loop time of {wall_s} on 1 procs for 100 steps with 400 atoms

64.0% CPU use with 1 MPI tasks x 1 OpenMP threads

MPI task timing breakdown:
Section |  min time  |  avg time  |  max time  |%varavg| %total
---------------------------------------------------------------
{table.replace("Other   | 0.1        | 0.1        | 0.1       ", "Other   |            | 0.1        |           ")}
Total wall time: 0:00:10
"""
    assert not has_note(tmp_path / "log.lammps", alone, "processors share cores")
    assert has_note(tmp_path / "log.lammps", alone.replace("64.0%", "30.0%"), "processors share cores")


def has_note(path: Path, text: str, name: str) -> bool:
    path.write_text(text)
    return name in {note.name for note in timing_tables.advisor_read(path).notes}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("lammps.log", "  will use up to 1 GPU(s) per node"),
        ("gromacs.log", "1 GPU selected for this run."),
        ("pwscf.out", "     GPU acceleration is ACTIVE.  4 visible GPUs per MPI rank"),
        ("tiny-profiler.txt", "CUDA initialized with 8 devices."),
    ],
)
def test_programs_on_devices_hide_what_these_do(name: str, line: str, tmp_path: Path) -> None:
    text = (HERE / name).read_text()
    (tmp_path / name).write_text(f"{line}\n{text}")
    profile = timing_tables.advisor_read(tmp_path / name)
    assert DEVICES_UNSEEN in {note.name for note in profile.notes}
    assert DEVICES_UNSEEN not in {note.name for note in timing_tables.advisor_read(HERE / name).notes}


def test_the_fewest_ranks_where_the_table_does_not_tell(tmp_path: Path) -> None:
    text = (HERE / "tiny-profiler.txt").read_text()
    (tmp_path / "out.txt").write_text(text.replace("MPI initialized with 8 MPI processes\n", ""))
    profile = timing_tables.advisor_read(tmp_path / "out.txt")
    assert profile.ranks == 2
    assert profile.ranks_expected is None
    assert "number of ranks unknown" in {note.name for note in profile.notes}


def test_more_columns_and_threads(tmp_path: Path) -> None:
    """What ``timer full`` of LAMMPS adds, and what Quantum ESPRESSO says of ranks where threads run."""
    lines = (HERE / "lammps.log").read_text().split("\n")
    full = [
        line[: line.rindex("|")] + "|  99.0 " + line[line.rindex("|") :] if line.count("|") == 5 else line
        for line in lines
    ]
    (tmp_path / "log.lammps").write_text("\n".join(full))
    assert seconds(timing_tables.advisor_read(tmp_path / "log.lammps")) == seconds(
        timing_tables.advisor_read(HERE / "lammps.log")
    )
    text = (HERE / "pwscf.out").read_text()
    old = "Parallel version (MPI), running on     2 processors"
    new = (
        "Parallel version (MPI & OpenMP), running on      8 processor cores\n"
        "     Number of MPI processes:                 2\n"
        "     Threads/MPI process:                     4"
    )
    assert old in text
    (tmp_path / "pw.out").write_text(text.replace(old, new))
    profile = timing_tables.advisor_read(tmp_path / "pw.out")
    assert profile.ranks == 2
    (tmp_path / "threads.log").write_text(
        (HERE / "lammps.log").read_text().replace("x 1 OpenMP", "x 4 OpenMP").replace("0.6% CPU", "390% CPU")
    )
    notes = timing_tables.advisor_read(tmp_path / "threads.log").notes
    assert any("each rank ran 4 threads" in note.text for note in notes if note.name == quality.HIDDEN)


def test_craypat_names_ranks_and_tells_samples_in_seconds() -> None:
    """Samples every 10 ms: 43.6 of them in MPI_Recv are 0.436 s; pe.7 is least in it (13), pe.23 most (441)."""
    table = read_table("craypat.txt")
    receive = next(row for row in table.rows if row.name == "MPI_Recv")
    assert (receive.least_at, receive.most_at) == (7, 23)
    assert (receive.least_s, receive.most_s) == pytest.approx((0.13, 4.41))
    assert sum(row.mean_s for row in table.rows) == pytest.approx(10.76, abs=0.03), "groups are not counted twice"
    assert table.shortest_s == pytest.approx(10.90189)


def test_waiting_that_craypat_measures(tmp_path: Path) -> None:
    """Tracing reports hold seconds; ``f(sync)`` is the waiting before the collective ``f``."""
    (tmp_path / "lite.txt").write_text(CRAYPAT_LITE)
    profile = timing_tables.advisor_read(tmp_path / "lite.txt")
    rows = [region.name for region in profile.regions]
    arrays = {name: array[:, :, 0].mean(axis=1) for name, array in profile.phases[0].arrays.items()}
    assert profile.ranks == 16
    assert profile.actual_s == pytest.approx(2100)
    assert arrays["wait_s"][rows.index("mpi_alltoallv_(sync)")] == pytest.approx(594.643642)
    assert arrays["transfer_s"][rows.index("mpi_waitall_")] == pytest.approx(33.035489)
    assert arrays["wall_s"][rows.index("MPI: other functions")] == pytest.approx(58.51139 - 33.035489)


def test_the_mean_computation_is_known_where_nothing_hides_in_it() -> None:
    profile = timing_tables.advisor_read(HERE / "performance-report.txt")
    assert set(profile.phases[0].arrays) == {"wall_s", "cpu_s", "io_s"}
    levels = {bound.name: bound.seconds for bound in bounds.compute_bounds(profile, None)}
    assert levels["I"] == pytest.approx(32.2)
    assert levels["IPC"] is None


def test_openfoam_tells_start_up_and_long_steps() -> None:
    profile = timing_tables.advisor_read(HERE / "openfoam.log")
    notes = {note.name: note.text for note in profile.notes}
    assert "4 of 39 steps" in notes["steps of different length"]
    assert profile.outside["start-up"].sum() == pytest.approx(3.4, abs=0.05)
    assert profile.started == "2021-03-05T09:12:40"


def read_table(name: str) -> TimingTable:
    found = find_dialect(read_ends(HERE / name))
    assert found is not None
    return found.parse(read_plain_text(HERE / name))


CRAYPAT_LITE = """\
CrayPat/X:  Version 6.4.5 Revision 87dd5b8  01/23/17 15:37:24
Experiment:                   lite  lite/gpu
Number of PEs (MPI ranks):      16
Numbers of Threads per PE:   1,114
Execution start time:  Tue Mar 28 15:15:55 2017

Avg Process Time:     2,100 secs

Table 1:  Profile by Function Group and Function

  Time% |         Time |  Imb. Time |  Imb. |        Calls |Group
        |              |            | Time% |              | Function
        |              |            |       |              |  PE=HIDE

 100.0% | 2,086.808412 |         -- |    -- | 18,723,148.8 |Total
|-----------------------------------------------------------------------------
|  59.2% | 1,236.266484 | 110.728787 |  8.8% |          1.0 |USER
||----------------------------------------------------------------------------
||  59.2% | 1,236.266484 | 110.728787 |  8.8% |          1.0 |main
||============================================================================
|  31.8% |   664.415775 |         -- |    -- |     35,648.0 |MPI_SYNC
||----------------------------------------------------------------------------
||  28.5% |   594.643642 | 100.768091 | 16.9% |      5,470.0 |mpi_alltoallv_(sync)
||============================================================================
|   2.8% |    58.511390 |         -- |    -- | 14,458,788.1 |MPI
||----------------------------------------------------------------------------
||   1.6% |    33.035489 |   3.623399 | 10.5% |    128,490.0 |mpi_waitall_
|=============================================================================

Program invocation:
  /apps/cp2k.psmp H2O-256.inp
"""
