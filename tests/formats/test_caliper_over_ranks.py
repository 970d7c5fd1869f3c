"""Caliper's sums over ranks, and its old files: what least, mean and most allow, and what no unit leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from caliper_files import native, write_split

from advisor import pipeline
from advisor.analysis import bounds, loads
from advisor.extension import host
from advisor.formats import caliper
from advisor.formats.rank_extremes import Extremes, longest_run_s, spread_over_ranks
from advisor.model.records import RANKS_ADDED_UP
from advisor.trace.callpaths.records import CallPathNode
from advisor.trace.events import Role

if TYPE_CHECKING:
    from pathlib import Path

#: A spot file as Caliper writes it: least, most, mean and sum over ranks of what regions took with all below them.
SPOT = """\
__rec=node,id=18,attr=10,data=276,parent=3
__rec=node,id=20,attr=8,data=region,parent=18
__rec=node,id=21,attr=8,data=mpi.function,parent=18
__rec=node,id=24,attr=10,data=588,parent=3
__rec=node,id=25,attr=8,data=jobsize,parent=24
__rec=node,id=26,attr=8,data=spot.format.version,parent=24
__rec=node,id=19,attr=8,data=attribute.unit,parent=18
__rec=node,id=38,attr=10,data=85,parent=5
__rec=node,id=39,attr=19,data=sec,parent=38
__rec=node,id=40,attr=8,data=min#inclusive#sum#time.duration,parent=39
__rec=node,id=41,attr=8,data=max#inclusive#sum#time.duration,parent=39
__rec=node,id=42,attr=8,data=avg#inclusive#sum#time.duration,parent=39
__rec=node,id=43,attr=8,data=sum#inclusive#sum#time.duration,parent=39
__rec=node,id=50,attr=20,data=main
__rec=node,id=51,attr=20,data=solve,parent=50
__rec=node,id=52,attr=21,data=MPI_Allreduce,parent=50
__rec=ctx,ref=50,attr=40=41=42=43,data=10.0=10.0=10.0=40.0
__rec=ctx,ref=51,attr=40=41=42=43,data=4.0=9.0=6.0=24.0
__rec=ctx,ref=52,attr=40=41=42=43,data=0.5=5.0=3.0=12.0
__rec=node,id=60,attr=25,data=4
__rec=node,id=61,attr=26,data=2,parent=60
__rec=globals,ref=61
"""


def spot(file: Path) -> Path:
    file.write_text(SPOT)
    return file


def test_the_imbalance_is_the_least_that_the_extremes_allow(tmp_path: Path) -> None:
    profile = caliper.advisor_read(spot(tmp_path / "spot.cali"))
    assert (profile.ranks, profile.actual_s) == (4, pytest.approx(10.0))
    levels = {one.name: one for one in bounds.compute_bounds(profile, None, loads.summarize_loads(profile))}
    assert levels["IPCO"].seconds == pytest.approx(7.0 + 0.5)
    # The rank that waits least in MPI_Allreduce, 0.5 s of 10 s, works the rest; of solve alone 9 s would be certain.
    assert levels["IPCOL"].seconds == pytest.approx(9.5 + 0.5)
    assert levels["IPCOL"].status == "estimated"
    assert RANKS_ADDED_UP in {note.name for note in profile.notes}
    assert profile.ranks_expected == 4


def test_nobody_is_named_where_ranks_are_added_up(tmp_path: Path) -> None:
    advice = pipeline.advise([spot(tmp_path / "spot.cali")], pipeline.Options(), host.load_plugins())
    assert advice.verdict == "advice"
    assert advice.grade.letter == "C"
    assert not any(gap.processors for gap in advice.gaps)
    assert not any(item.processors for item in advice.recommendations)


def test_means_stay_what_they_are() -> None:
    nodes = (
        CallPathNode("main"),
        CallPathNode("a", parent=0),
        CallPathNode("MPI_Barrier", Role.BARRIER, parent=0),
        CallPathNode("b", parent=0),
    )
    found = Extremes(np.array([8.0, 1, 0, 2]), np.array([9.0, 3, 2, 3]), np.array([10.0, 5, 4, 4]))
    wall = spread_over_ranks(found, nodes, 8)
    np.testing.assert_allclose(wall.mean(axis=1), [1, 3, 2, 3])
    assert wall.min() >= 0
    assert wall[[0, 1, 3], 0].sum() == pytest.approx(max(7.0, 5 + 2, 8.0 - 4 + 4))
    assert longest_run_s(found, nodes) == 10.0


@pytest.mark.parametrize("names", [("0.cali", "1.cali"), ("rank-0.cali", "rank-1.cali")])
def test_files_over_all_ranks_are_so_many_runs(tmp_path: Path, names: tuple[str, str]) -> None:
    spot(tmp_path / names[0])
    (tmp_path / names[1]).write_text(SPOT.replace("0.5", "0.75"))  # the same file twice would be a copy of one run
    assert caliper.advisor_sniff(tmp_path) is None
    runs, _ = pipeline.read_runs([tmp_path], pipeline.Options(), host.load_plugins())
    assert [run.ranks for run in runs] == [4, 4]


def test_the_value_on_the_null_path_is_that_row_s_own(tmp_path: Path) -> None:
    nodes = [{"label": "main", "column": "path"}, {"label": "solve", "column": "path", "parent": 0}]
    names = ["inclusive#sum#time.duration", "mpi.rank", "sum#time.duration", "path"]
    rows = [[700.0, 0, 700.0, None], [3e6, 0, 1e6, 0], [2e6, 0, 2e6, 1]]
    file = write_split(tmp_path / "profile.json", rows, names, nodes, [True, True, True, False])
    profile = caliper.advisor_read(file)
    assert profile.actual_s == pytest.approx(3.0007)
    assert "contradictory times" not in {note.name for note in profile.notes}
    rows[1][0] = 5e6
    damaged = caliper.advisor_read(write_split(file, rows, names, nodes, [True, True, True, False]))
    assert "contradictory times" in {note.name for note in damaged.notes}


@pytest.mark.parametrize(("value", "seconds"), [("0.25", 0.25), ("250000.0", 0.25)])
def test_times_without_a_unit_are_what_they_can_be(tmp_path: Path, value: str, seconds: float) -> None:
    least = "0.000003" if value == "0.25" else "12.0"
    body = (
        "__rec=node,id=107,attr=8,data=sum#time.duration,parent=39\n"
        "__rec=node,id=200,attr=20,data=main\n__rec=node,id=201,attr=20,data=tiny,parent=200\n"
        f"__rec=ctx,ref=200,attr=107,data={value}\n__rec=ctx,ref=201,attr=107,data={least}\n"
    )
    profile = caliper.advisor_read(native(tmp_path / "old.cali", body))
    assert profile.actual_s == pytest.approx(seconds, rel=1e-3)
    assert ("unit of times unknown" in {note.name for note in profile.notes}) is (least == "12.0")
