"""What sums over a run allow to advise: extremes over ranks, shares of communication, stated parts, idle threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fact_sheets import site_values
from timing_profiles import HERE

import gapwatch
from advisor.analysis.measures import COMMUNICATION_S
from advisor.formats import timing_tables

if TYPE_CHECKING:
    from pathlib import Path

#: Clocks of one run of Quantum ESPRESSO on 16 ranks.
CLOCKS = """     Program PWSCF v.6.7 starts on 10Jan2024 at 12: 0: 0
     This program is part of the open-source Quantum ESPRESSO suite
{ranks}
     number of k points=    {points}
{pools}
     init_run     :      1.00s CPU      1.00s WALL (       1 calls)
     electrons    :     99.00s CPU     99.00s WALL (       1 calls)

     PWSCF        :   {cpu:6.2f}s CPU    100.00s WALL

   JOB DONE.
"""
RANKS = "     Parallel version (MPI), running on    16 processors\n"
HYBRID = (
    "     Parallel version (MPI & OpenMP), running on      64 processor cores\n"
    "     Number of MPI processes:                16\n"
    "     Threads/MPI process:                     4\n"
)
POOLS = "     K-points division:     npool     =       {}\n"
CLOVER = """Task Count {ranks}
Wall clock 10.0

Profiler Output                 Time            Percentage
PdV                   : 7.0 70.0
MPI Halo Exchange     : 2.9 29.0
Total                 : 9.9 99.0
The Rest              : 0.1 1.0
"""


def write_clocks(place: Path, ranks: str = RANKS, points: int = 12, pools: str = "", cpu: float = 99.0) -> Path:
    place.write_text(CLOCKS.format(ranks=ranks, points=points, pools=pools, cpu=cpu))
    return place


def actions_of(path: Path) -> list[str]:
    return [item.action for item in gapwatch.load(path).recommendations]


def test_extremes_over_the_ranks_that_prove_an_imbalance_are_advice(tmp_path: Path) -> None:
    rows = "Pair    | 40.0  | 60.0  | 90.0  |  50.0 | 60.00\nComm    | 5.0  | 38.0  | 58.0  | 400.0 | 38.00\n"
    text = (
        "Loop time of 100 on 16 procs for 1000 steps with 32000 atoms\n\n"
        "99.0% CPU use with 16 MPI tasks x 1 OpenMP threads\n"
        "\nMPI task timing breakdown:\nSection |  min time  |  avg time  |  max time  |%varavg| %total\n" + "-" * 63
        + f"\n{rows}Other   |            | 2.0  |            |       |  2.00\n\nTotal wall time: 0:01:40\n"
    )  # fmt: skip
    (tmp_path / "log.lammps").write_text(text)
    run = gapwatch.load(tmp_path / "log.lammps")
    assert actions_of(tmp_path / "log.lammps")[0] == "G-108"
    assert run.recommendations[0].expected_s is None
    assert run.recommendations[0].ceiling_s == pytest.approx(next(gap.seconds for gap in run.gaps if gap.name == "L"))
    assert site_values(timing_tables.advisor_read(tmp_path / "log.lammps"))["phase.untold_imbalance"] > 1.04


@pytest.mark.parametrize(
    ("ranks", "points", "pools", "ratio"),
    [(RANKS, 12, "", 12), (RANKS, 40, "", 16), (RANKS, 12, POOLS.format(4), 3), (RANKS, 12, POOLS.format(16), 1),
     ("", 12, "", 1), (HYBRID, 12, POOLS.format(2), 6)],
)  # fmt: skip
def test_k_points_that_wait_for_each_other_are_counted(
    ranks: str, points: int, pools: str, ratio: float, tmp_path: Path
) -> None:
    path = write_clocks(tmp_path / "pw.out", ranks, points, pools, 99.0 * (4 if ranks == HYBRID else 1))
    assert site_values(timing_tables.advisor_read(path))["run.undivided_parts"] == ratio
    assert ("G-109" in actions_of(path)) == (ratio >= 2)


def test_vasp_states_its_k_points_and_groups(tmp_path: Path) -> None:
    text = (HERE / "OUTCAR").read_text().replace("running on    1 total", "running on   16 total")
    text = text.replace("each k-point on    1 cores,    1 groups", "each k-point on   16 cores,    1 groups")
    (tmp_path / "OUTCAR").write_text(
        text.replace("distr:", "   k-points           NKPTS =      4   k-points\n distr:", 1)
    )
    profile = timing_tables.advisor_read(tmp_path / "OUTCAR")
    assert (profile.parameters["k-points"], profile.parameters["k-point groups"]) == (4, 1)
    assert actions_of(tmp_path / "OUTCAR")[0] == "G-109"


@pytest.mark.parametrize(("cpu", "share"), [(388.0, 0.97), (100.0, 0.25)])
def test_threads_that_were_on_no_core_are_idle(cpu: float, share: float, tmp_path: Path) -> None:
    """CPU clocks of a rank add its threads up; without them a hybrid run tells nothing."""
    path = write_clocks(tmp_path / "pw.out", HYBRID, 1, cpu=cpu)
    run = gapwatch.load(path)
    assert run.grade.letter == "D"
    assert f"its 4 threads were on {4 * share:.3g} cores" in run.to_text().replace("\n", " ")
    assert next(one.seconds for one in run.bounds if one.name == "I") == pytest.approx(share * 100.0)
    assert (actions_of(path) == ["G-111"]) == (share < 0.5)


def test_threads_of_one_rank_are_idle_as_well(tmp_path: Path) -> None:
    path = write_clocks(
        tmp_path / "pw.out", HYBRID.replace("    16\n", "     1\n").replace("  64", "   4"), 1, cpu=110.0
    )
    run = gapwatch.load(path)
    assert (run.grade.letter, actions_of(path)) == ("D", ["G-111"])
    busy = write_clocks(
        tmp_path / "busy.out", HYBRID.replace("    16\n", "     1\n").replace("  64", "   4"), 1, cpu=390.0
    )
    assert not actions_of(busy)


def test_a_rated_share_of_communication_is_advice_on_many_ranks(tmp_path: Path) -> None:
    text = (HERE / "al3x3.castep").read_text()
    profile = timing_tables.advisor_read(HERE / "al3x3.castep")
    known = float(profile.counts[COMMUNICATION_S].sum()) / (profile.actual_s * len(profile.processors))
    assert site_values(profile)["comm.whole_share"] == pytest.approx(known)
    assert "Overall parallel efficiency rating" in text


@pytest.mark.parametrize(("ranks", "communicates"), [(1, False), (16, True)])
def test_one_rank_alone_has_nobody_to_communicate_with(ranks: int, communicates: bool, tmp_path: Path) -> None:
    (tmp_path / "a.out").write_text(CLOVER.format(ranks=ranks))
    profile = timing_tables.advisor_read(tmp_path / "a.out")
    assert (COMMUNICATION_S in profile.counts) == communicates
    assert gapwatch.load(tmp_path / "a.out").verdict == ("advice" if communicates else "nothing significant")
