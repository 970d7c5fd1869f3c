"""Slurm's accounts: elapsed and CPU time, cores and tasks as printed, and nothing concluded from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

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
        ("sacct.txt", "4712.batch", "4713", "2 jobs"),
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
