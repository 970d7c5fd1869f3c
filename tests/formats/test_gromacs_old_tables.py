"""Logs of GROMACS before 5.0 name nodes instead of ranks, and have their columns in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from advisor.formats import timing_tables
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "     R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G\n\n"
RULE = "-" * 71 + "\n"
#: As 4.0 prints it, with seconds behind cycles.
CYCLES_FIRST = (
    TITLE + " Computing:         Nodes     Number     G-Cycles    Seconds     %\n" + RULE
    + " Domain decomp.         4        100        2.000        0.8    10.0\n"
    + " Force                  4       1000       12.000        4.8    60.0\n"
    + " Wait + Comm. F         4       1000        4.000        1.6    20.0\n"
    + " Rest                   4                   2.000        0.8    10.0\n" + RULE
    + " Total                  4                  20.000        8.0   100.0\n" + RULE
    + "\nFinished mdrun on node 0 Fri Apr 24 17:59:11 2009\n"
)  # fmt: skip
#: As 4.6 prints it, with threads.
SECONDS_FIRST = (
    TITLE + " Computing:         Nodes   Th.     Count  Wall t (s)     G-Cycles       %\n" + RULE
    + " Domain decomp.         4    2        100       0.800        2.000    10.0\n"
    + " Force                  4    2       1000       4.800       12.000    60.0\n"
    + " Wait + Comm. F         4    2       1000       1.600        4.000    20.0\n"
    + " Rest                   4                       0.800        2.000    10.0\n" + RULE
    + " Total                  4                       8.000       20.000   100.0\n" + RULE
    + "\nFinished mdrun on node 0 Fri Apr 24 17:59:11 2013\n"
)  # fmt: skip


@pytest.mark.parametrize("table", [CYCLES_FIRST, SECONDS_FIRST])
def test_both_orders_of_columns(table: str, tmp_path: Path) -> None:
    (tmp_path / "md.log").write_text(table)
    paths = timing_tables.read_call_paths(tmp_path / "md.log")
    assert len(paths.processors) == 4
    assert paths.actual_s == pytest.approx(8.0)
    assert paths.wall_s is not None
    seconds = dict(zip((node.name for node in paths.nodes), paths.wall_s[:, 0], strict=True))
    assert (seconds["Force"], seconds["Wait + Comm. F"]) == pytest.approx((4.8, 1.6))


def test_a_table_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    for lines in range(3, 9):
        (tmp_path / "md.log").write_text("\n".join(CYCLES_FIRST.split("\n")[:lines]) + "\n")
        with pytest.raises(InputError):
            timing_tables.advisor_read(tmp_path / "md.log")
