"""Programs that are run: what they write and end with, and that nothing of them stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patience import has_ended, wait_until

from advisor.support.child_process import run_child

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
