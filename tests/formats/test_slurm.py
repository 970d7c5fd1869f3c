"""Slurm's accounts: elapsed and CPU time, cores and tasks as printed, and nothing concluded from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import gapwatch
from advisor.analysis import bounds, soundness
from advisor.analysis.merging.recordings import merge_recordings
from advisor.analysis.merging.runs import group_by_run
from advisor.formats import slurm
from advisor.formats.job_accounts import read_account
from advisor.model.errors import InputError
from advisor.model.records import RANKS_ADDED_UP, Profile, Region
from advisor.support import contract

HERE = Path(__file__).parents[1] / "profiles" / "slurm"


def test_what_sacct_prints() -> None:
    account = read_account(HERE / "sacct.txt")
    assert (account.job, account.name, account.cores, account.nodes, account.tasks) == ("4712", "heat", 32, 1, 32)
    assert (account.elapsed_s, account.cpu_s) == (600.0, 5 * 3600 + 4 * 60 + 30.25)
    assert account.memory == 812340 * 1024


def test_the_job_script_is_no_task_of_the_program() -> None:
    """Recorded with Slurm 22.05, whose batch step held the most memory."""
    account = read_account(HERE / "sacct-22.05.txt")
    assert (account.job, account.name, account.cores, account.nodes, account.tasks) == ("7", "heat", 2, 1, 2)
    assert (account.elapsed_s, account.cpu_s, account.memory) == (17.0, 4.51, 18268 * 1024)
    assert account.folder == "/home/user/heat"


def test_beside_a_recording_of_the_job_an_account_adds_cores_and_what_was_used() -> None:
    account = slurm.advisor_read(HERE / "sacct-22.05.txt")
    [recording] = [replace(account, program="app", reader="recording", run="1", cores=None, notes=(), actual_s=12.0)]
    recording = replace(recording, regions=(*recording.regions, Region("main")), started=None)
    [[first, second]] = group_by_run([recording, account])
    merged = merge_recordings([first, second])
    assert (merged.program, merged.cores, merged.job) == ("app", 2, "7")
    assert merged.parameters["memory_bytes"] == 18268 * 1024
    said = "slurm: the job used 0.265 of its 2 cores (13.3 %), at most 17.8 MiB in memory of a task"
    assert said in [note.text for note in merged.notes]
    assert len(group_by_run([replace(recording, job="8"), account])) == 2


WIDE = """\
$ sacct -j 4712
JobID           JobName  AllocCPUS    Elapsed   TotalCPU      State
------------ ---------- ---------- ---------- ---------- ----------
4711               prep          1   00:00:10  00:00.500  COMPLETED
4711.batch        batch          1   00:00:10  00:00.500  COMPLETED
4712               heat         32   00:10:00   05:04:30  COMPLETED
4712.ba+          batch         32   00:10:00  00:01.250  COMPLETED
4712.0             heat         32   00:09:58   05:04:29  COMPLETED
4713              later          8   00:00:00   00:00:00    PENDING

$ exit
"""


def test_a_table_without_delimiters_is_cut_where_its_rule_says(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(WIDE)
    assert slurm.advisor_sniff(tmp_path / "a.txt") == 0.9
    account = read_account(tmp_path / "a.txt")
    assert (account.job, account.name, account.cores) == ("4712", "heat", 32)
    assert (account.elapsed_s, account.cpu_s, account.others) == (600.0, 5 * 3600 + 4 * 60 + 30, 2)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_any_delimiter_that_sacct_was_given_is_one(delimiter: str, tmp_path: Path) -> None:
    text = (HERE / "sacct.txt").read_text()
    (tmp_path / "a.txt").write_text(text.replace("|", delimiter))
    assert slurm.advisor_sniff(tmp_path / "a.txt") == 0.9
    assert read_account(tmp_path / "a.txt") == read_account(HERE / "sacct.txt")


def test_of_several_jobs_it_is_the_one_whose_cores_were_idle_longest(tmp_path: Path) -> None:
    head, job, *steps = (HERE / "sacct.txt").read_text().splitlines(keepends=True)
    idle = job.replace("4712", "4800").replace("05:04:30.250", "00:10:00.000")
    never = job.replace("4712", "4801").replace("00:10:00", "00:00:00")
    (tmp_path / "a.txt").write_text("".join([head, job, *steps, idle, never]))
    profile = slurm.advisor_read(tmp_path / "a.txt")
    assert profile.run == "job 4800"
    assert "of 3 jobs" in next(note.text for note in profile.notes if note.name == "job account")


def test_cores_that_nobody_used_are_the_first_advice() -> None:
    run = gapwatch.load(HERE / "seff.txt")
    assert run.verdict == "advice"
    assert run.grade.letter == "D"
    first = run.recommendations[0]
    assert (first.action, round(first.ceiling_s)) == ("G-111", 1742)


def test_one_core_that_was_used_holds_nothing_to_spread(tmp_path: Path) -> None:
    text = (HERE / "seff.txt").read_text()
    for old, new in (("Nodes: 2\n", ""), ("Cores per node: 32", "Cores: 1"), ("01:02:24", "00:29:51"),
                     ("3.25%", "99.50%"), ("1-08:00:00", "00:30:00")):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "a.txt").write_text(text)
    run = gapwatch.load(tmp_path / "a.txt")
    assert run.grade.letter == "C"
    assert not run.recommendations


def test_what_seff_prints() -> None:
    account = read_account(HERE / "seff.txt")
    assert (account.job, account.cores, account.nodes, account.tasks) == ("4711", 64, 2, None)
    assert (account.elapsed_s, account.cpu_s) == (1800.0, 3744.0)


@pytest.mark.parametrize("name", ["sacct.txt", "seff.txt"])
def test_computation_is_all_that_is_known(name: str) -> None:
    assert slurm.advisor_sniff(HERE / name) == 0.9
    profile = slurm.advisor_read(HERE / name)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    known = {bound.name: bound.seconds for bound in bounds.compute_bounds(profile, None) if bound.seconds is not None}
    account = read_account(HERE / name)
    assert known == pytest.approx({"I": account.cpu_s / account.cores, "actual": account.elapsed_s})


def test_unused_cores_are_named() -> None:
    notes = {note.name: note for note in slurm.advisor_read(HERE / "seff.txt").notes}
    assert "2.08 of its 64 cores (3.2 %)" in notes["job account"].text
    assert "OMP_NUM_THREADS" in (notes[RANKS_ADDED_UP].collect or "")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("sacct.txt", "05:04:30.250", "none", "is not a time"),
        ("sacct.txt", "|32|1||||", "|32|1|||", "11 cells below 12 titles"),
        ("sacct.txt", "|05:04:30.250|32|", "|15:04:30.250|32|", "do not fit"),
        ("seff.txt", "3.25%", "4.25%", "are not 4.25 %"),
        ("seff.txt", "01:02:24", "01:02:x4", "is not a time"),
        ("seff.txt", "Job Wall-clock time: 00:30:00\n", "", "lacks 'Job Wall-clock time'"),
    ],
)
def test_mistakes(tmp_path: Path, name: str, old: str, new: str, message: str) -> None:
    text = (HERE / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        slurm.advisor_read(tmp_path / name)


def test_other_tables_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("JobID|Elapsed|State\n1|00:10:00|COMPLETED\n")
    assert slurm.advisor_sniff(tmp_path / "a.txt") is None
