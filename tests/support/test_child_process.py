"""Programs that are run: what they write and end with, and that nothing of them stays."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from patience import has_ended, wait_until

from advisor.support.child_process import read_tail, run_child, run_program

if TYPE_CHECKING:
    from pathlib import Path


def test_output_errors_and_status_are_kept_apart_or_together() -> None:
    words = ["sh", "-c", "echo out; echo $WORD >&2; exit 3"]
    done = run_child(words, 60, extra={"WORD": "wrong"})
    assert (done.status, done.text, done.error_text, done.failure) == (3, "out\n", "wrong\n", "")
    assert run_child(words, 60, extra={"WORD": "wrong"}, merged=True).text == "out\nwrong\n"


def test_a_program_that_is_not_there_is_a_failure() -> None:
    done = run_child(["no-such-program"], 60)
    assert (done.status, done.failure) == (None, "no-such-program: No such file or directory")


def test_it_runs_in_the_folder_and_reads_nothing(tmp_path: Path) -> None:
    assert run_child(["sh", "-c", "pwd; cat"], 60, folder=tmp_path).text == f"{tmp_path}\n"


def test_one_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    done = run_child(["sh", "-c", "sleep 1000 & echo $! > started; wait"], 3, folder=tmp_path)
    assert (done.status, done.failure) == (None, "sh did not end within 3 s")
    started = int((tmp_path / "started").read_text())
    wait_until(lambda: has_ended(started))


def test_the_end_of_a_program_is_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``Popen.wait`` with a limit looks every 50 ms only, which would be the resolution of all times."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("this Python has no pidfd_open")
    monkeypatch.setattr(subprocess.Popen, "wait", lambda *_: pytest.fail("Popen.wait was called"))
    with (tmp_path / "output").open("wb") as stream:
        assert run_program(["true"], stream, 60).status == 0


def test_a_user_program_prints_into_a_file_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with (tmp_path / "output").open("w+b") as stream:
        run = run_program(["sh", "-c", "sleep 1000 & echo $!; echo wrong >&2; exit 3"], stream, 60)
        started, said = read_tail(stream, 100).split()
        assert read_tail(stream, 3) == "ng\n"
    assert (run.status, said) == (3, "wrong")
    wait_until(lambda: has_ended(int(started)))


def test_a_user_program_that_takes_too_long_is_asked_to_end(tmp_path: Path) -> None:
    with (tmp_path / "output").open("w+b") as stream:
        run = run_program(["sh", "-c", "trap 'echo asked; exit 0' TERM; echo up; sleep 1000 & wait"], stream, 3)
        assert (run.status, read_tail(stream, 100)) == (None, "up\nasked\n")
    assert run.seconds >= 3
