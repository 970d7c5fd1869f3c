"""The accounting of GROMACS on many ranks: rows are means over ranks of a kind, and need not add up exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor import pipeline
from advisor.cli.next_commands import fill_commands
from advisor.extension.host.plugin_host import load_plugins
from advisor.formats import timing_tables
from advisor.model.errors import InputError
from advisor.model.records import DEVICES_UNSEEN
from advisor.output.wording import select_command

TITLE = "     R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G\n\n"
RULE = "-" * 77 + "\n"
HEAD = (
    " Computing:          Num   Num      Call    Wall time         Giga-Cycles\n"
    "                     Ranks Threads  Count      (s)         total sum    %\n"
)
LOST = " Part of the total run time spent waiting due to load imbalance: 5.0%.\n\n"


def row(name: str, ranks: int, wall_s: float, calls: int = 100) -> str:
    return f" {name:19}{ranks:5}{1:5}{calls:11}{wall_s:12.3f}{wall_s * 9:15.3f}   1.0\n"


def log(total_s: float, *rows: str, on: str = "On 4 MPI ranks\n\n", before: str = "") -> str:
    total = f" Total                                  {total_s:12.3f}{900:15.3f} 100.0\n"
    return before + TITLE + on + HEAD + RULE + "".join(rows) + RULE + total + RULE + "Finished mdrun on rank 0 \n"


def test_rows_that_take_longer_than_the_run_fit_into_it(tmp_path: Path) -> None:
    output = tmp_path / "md.log"
    output.write_text(log(100.0, row("Force", 4, 60), row("Comm. energies", 4, 43)))
    profile = timing_tables.advisor_read(output)
    assert profile.actual_s == pytest.approx(100)
    output.write_text(log(100.0, row("Force", 4, 60), row("Comm. energies", 4, 53)))
    with pytest.raises(InputError, match="add up to 113 s"):
        timing_tables.advisor_read(output)


def test_the_slowest_rank_of_forces_does_not_exceed_the_run(tmp_path: Path) -> None:
    both = "On 3 MPI ranks doing PP, and\non 1 MPI rank doing PME\n\n"
    rows = (
        row("Force", 3, 70),
        row("Wait + Comm. F", 3, 30),
        row("PME mesh *", 1, 60),
        row("PME wait for PP *", 1, 40),
    )
    output = tmp_path / "md.log"
    output.write_text(log(100.0, *rows, on=both, before=LOST))
    profile = timing_tables.advisor_read(output)
    assert profile.actual_s == pytest.approx(100)
    wall = profile.phases[0].arrays["wall_s"].sum(axis=(0, 2))
    assert wall == pytest.approx([100] * 4)


def test_a_rank_that_does_everything_waits_for_no_other(tmp_path: Path) -> None:
    rest = f" PME wait for PP                       {80:12.3f}{900:15.3f}  80.0\n"
    rows = (row("Force", 1, 60), row("PME GPU mesh", 1, 20), rest, row("Update", 1, 18))
    output = tmp_path / "md.log"
    output.write_text(log(100.0, *rows, on="On 1 MPI rank\n\n"))
    profile = timing_tables.advisor_read(output)
    assert {region.name for region in profile.regions} >= {"Force", "PME GPU mesh", "Update"}
    assert "PME wait for PP" not in {region.name for region in profile.regions}


def test_a_rank_that_waits_for_its_device_does_not_compute(tmp_path: Path) -> None:
    rows = (row("Force", 1, 30), row("Wait GPU state copy", 1, 50), row("Wait Bonded GPU", 1, 5), row("Update", 1, 15))
    output = tmp_path / "md.log"
    output.write_text(log(100.0, *rows, on="On 1 MPI rank\n\n", before="1 GPU selected for this run.\n"))
    advice = pipeline.advise([output], pipeline.Options(), load_plugins())
    gaps = {gap.name: gap.seconds for gap in advice.gaps}
    assert gaps["C'"] == 0
    assert gaps["W+X"] == pytest.approx(55, rel=0.01)
    note = next(note for note in advice.grade.notes if note.name == DEVICES_UNSEEN)
    assert "55.0 %" in note.text
    assert (select_command(advice) or "").startswith("nsys profile ")


def test_devices_that_were_not_recorded_are_recorded_next(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "profiles" / "timing_tables" / "gromacs.log").read_text()
    (tmp_path / "md.log").write_text(f"1 GPU selected for this run.\n{text}")
    advice = pipeline.advise([tmp_path / "md.log"], pipeline.Options(), load_plugins())
    assert (select_command(advice) or "").startswith("nsys profile ")
    command = select_command(fill_commands(advice, [tmp_path / "md.log"])) or ""
    assert command.startswith("nsys profile ")
    assert " -o run mpirun -n 4 gmx_mpi mdrun -s t.tpr " in command


@pytest.mark.parametrize(("host_s", "wait_s", "most_s"), [(60, 40, 40), (20, 80, 20)])
def test_host_and_device_that_wait_for_each_other_could_work_at_the_same_time(
    host_s: float, wait_s: float, most_s: float, tmp_path: Path
) -> None:
    rows = (row("Force", 1, host_s), row("Wait GPU state copy", 1, wait_s))
    output = tmp_path / "md.log"
    output.write_text(log(100.0, *rows, on="On 1 MPI rank\n\n", before="1 GPU selected for this run.\n"))
    advice = pipeline.advise([output], pipeline.Options(), load_plugins())
    item = next(item for item in advice.recommendations if item.action == "G-120")
    assert item.ceiling_s == pytest.approx(most_s, rel=0.01)


@pytest.mark.parametrize("where", ["", "On host n1 "])
def test_a_rank_that_waits_for_its_device_does_no_serial_part(where: str, tmp_path: Path) -> None:
    both = "On 1 MPI rank doing PP, and\non 1 MPI rank doing PME\n\n"
    of_pme = (row("PME mesh *", 1, 3), row("PME wait for PP *", 1, 97))
    rows = (row("Force", 1, 55), row("Wait GPU state copy", 1, 45), *of_pme)
    output = tmp_path / "md.log"
    output.write_text(log(100.0, *rows, on=both, before=f"{where}2 GPUs selected for this run.\n"))
    advice = pipeline.advise([output], pipeline.Options(), load_plugins())
    assert DEVICES_UNSEEN in [note.name for note in advice.grade.notes]
    assert "G-1" not in [item.action for item in advice.recommendations]


def test_waiting_of_ranks_for_pme_is_in_their_row(tmp_path: Path) -> None:
    both = "On 3 MPI ranks doing PP, and\non 1 MPI rank doing PME\n\n"
    rows = (row("Force", 3, 100), row("Wait PME GPU gather", 3, 30), row("PME mesh *", 1, 100))
    output = tmp_path / "md.log"
    output.write_text(log(100.0, *rows, on=both))
    profile = timing_tables.advisor_read(output)
    assert profile.actual_s == pytest.approx(100)
    assert "Wait PME GPU gather" not in {region.name for region in profile.regions}
