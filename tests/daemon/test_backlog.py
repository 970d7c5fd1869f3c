"""A queue of any length is drained, and nothing that goes wrong in a thread of the daemon keeps it from that."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest
from command_line import run
from daemon_runs import CONFIG, Watch, profile
from patience import PATIENCE_S, wait_until

from advisor.daemon import debounce
from advisor.daemon.daemon import Daemon
from advisor.daemon.debounce import FileDebouncer
from advisor.daemon.events import RunIngested
from advisor.daemon.intake import UnitIntake
from advisor.daemon.root_scanner import RootScanner
from advisor.history.database import HistoryWriter
from advisor.history.file_states import FileSignature, FileStates
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from advisor.daemon.intake import Ask, UnitCandidate, UnitOutcome

SIGNATURE = FileSignature(1, 2, 3, 4, 5)


def test_pr14_what_waits_is_not_gone_through_for_each_file_that_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue that gets longer while it is drained would otherwise be drained ever more slowly."""
    settling, computed = FileDebouncer(1.0), 0
    compute = debounce._PendingFolder.compute_due

    def counted(held: debounce._PendingFolder, quiet_s: float) -> float:
        nonlocal computed
        computed += held.due is None
        return compute(held, quiet_s)

    monkeypatch.setattr(debounce._PendingFolder, "compute_due", counted)
    folders = [Path(f"/data/{number}") for number in range(500)]
    for folder in folders:
        settling.observe_files(folder, {b"a": SIGNATURE}, 0.0)
    for done, folder in enumerate(folders):
        assert len(list(settling.ready_folders(2.0))) == 500 - done
        settling.forget_files(folder, {b"a"})
    assert computed == 500


def test_pr14_readers_that_have_enough_to_do_are_given_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch, looked = Watch(tmp_path), 0
    ready = FileDebouncer.ready_folders

    def counted(settling: FileDebouncer, now: float) -> object:
        nonlocal looked
        looked += 1
        return ready(settling, now)

    monkeypatch.setattr(FileDebouncer, "ready_folders", counted)
    monkeypatch.setattr("advisor.daemon.daemon._PARTS", 10)
    watch.daemon._serving = dict.fromkeys(range(6))  # type: ignore[arg-type]
    watch.daemon._submit_ready_files(once=True)
    assert looked == 0
    watch.daemon._serving = dict.fromkeys(range(5), (tmp_path, set()))  # type: ignore[arg-type]
    watch.daemon._submit_ready_files(once=True)
    assert looked == 1


def test_pr15_what_waits_below_other_directories_is_left_to_who_watches_them(tmp_path: Path) -> None:
    """Else what a killed daemon left would keep a later one waiting for files that it does not watch."""
    profile(tmp_path / "runs-of-others" / "b.json")
    with closing(HistoryWriter(tmp_path / "state")) as writer, writer.transaction() as connection:
        for name in ("elsewhere", "runs-of-others"):
            FileStates(connection).store_files(tmp_path / name, {b"b.json": SIGNATURE}, "waiting")
    watch = Watch(tmp_path)
    profile(watch.root / "a.json")
    counts = watch.once().counts()
    assert (counts["ingested"], counts["waiting"]) == (1, 2)
    with Watch(tmp_path) as again:
        again.daemon.reload_config(lambda: replace(CONFIG, roots=(again.root, tmp_path / "runs-of-others")))
        again.until(lambda: [one.path.name for one in again.runs] == ["b.json"])


def test_pr15_waiting_files_that_could_not_be_looked_up_on_a_reload_are_looked_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    profile(other / "b.json")
    with closing(HistoryWriter(tmp_path / "state")) as writer, writer.transaction() as connection:
        there = (other / "b.json").stat()  # a look at the directory does not find what has not changed since
        signature = FileSignature(there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns)
        FileStates(connection).store_files(other, {b"b.json": signature}, "waiting")
    with Watch(tmp_path) as watch:
        profile(watch.root / "a.json")
        watch.until(lambda: len(watch.runs) == 1)
        fails = _fail_once(FileStates.waiting_files, StoreError("disk I/O error"))
        monkeypatch.setattr(FileStates, "waiting_files", fails)
        watch.daemon.reload_config(lambda: replace(CONFIG, roots=(watch.root, other)))
        watch.until(lambda: [one.path.name for one in watch.runs] == ["a.json", "b.json"])


@pytest.mark.parametrize("name", ["_record_folder", "_scan_requested"])
def test_pr16_a_look_that_fails_in_an_unexpected_way_is_told_and_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The next look finds everything, and one directory keeps nobody from looking at the others."""
    monkeypatch.setattr(RootScanner, name, _fail_once(getattr(RootScanner, name)))
    watch = Watch(tmp_path)
    for each in ("one/a", "two/b"):
        profile(watch.root / f"{each}.json")
    with watch:
        watch.until(lambda: len(watch.runs) == 2)
    assert any(f"{watch.root} was not looked at in full: looking at" in text for text in watch.remarks)
    assert any(text.endswith("failed: TypeError: nobody thought of it") for text in watch.remarks)


def test_pr17_reading_that_fails_in_an_unexpected_way_ends_no_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UnitIntake, "ingest_unit", _fail_once(UnitIntake.ingest_unit))
    watch = Watch(tmp_path, replace(CONFIG, quiet_s=0.1))
    profile(watch.root / "a.json")
    with watch:
        watch.until(lambda: watch.tried("a.json") is not None)
        watch.until(lambda: len(watch.runs) == 1)


def test_pr18_what_goes_wrong_in_the_last_look_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = Daemon._scan_due_roots

    def scan_to_the_end(daemon: Daemon, once: bool) -> None:
        scan(daemon, once)
        wait_until(lambda: not any(looker.busy_s for looker in daemon._lookers.values()))

    monkeypatch.setattr(Daemon, "_scan_due_roots", scan_to_the_end)
    monkeypatch.setattr(RootScanner, "_record_folder", _fail_once(RootScanner._record_folder))
    watch = Watch(tmp_path)
    profile(watch.root / "a.json")
    watch.once()
    assert any("was not looked at in full" in text for text in watch.remarks)


@pytest.mark.parametrize("name", ["_record_folder", "ingest_unit"])
def test_pr18_what_nobody_could_look_at_leaves_a_gate_without_a_verdict(tmp_path: Path, name: str) -> None:
    """A directory or file of which nothing is known is no reason to pass, though other profiles did."""
    profile(tmp_path / "good" / "a.json")
    profile(tmp_path / "bad" / "b.json")
    kind = "root_scanner.RootScanner" if name == "_record_folder" else "intake.UnitIntake"
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from advisor.daemon import intake, root_scanner\n"
        "from advisor.cli import main\n"
        f"real = {kind}.{name}\n"
        f"def fail(self, what, *more):\n"
        "    if 'bad' in str(what.path): raise TypeError('nobody thought of it')\n"
        "    return real(self, what, *more)\n"
        f"{kind}.{name} = fail\n"
        "sys.exit(main())"
    )
    made = run("watch", "good", "bad", "--once", "--state", "state", "--fail-on", "L > 99 %", home=tmp_path, code=code)
    assert made.returncode == 2, made.stderr
    assert b"--fail-on has no verdict: " in made.stderr
    assert b"TypeError: nobody thought of it" in made.stderr


def test_pr18_a_directory_that_is_not_there_leaves_a_gate_without_a_verdict(tmp_path: Path) -> None:
    profile(tmp_path / "good" / "a.json")
    made = run("watch", "good", "bad", "--once", "--state", "state", "--fail-on", "L > 99 %", home=tmp_path)
    assert made.returncode == 2
    assert b"bad could not be read (is not there)" in made.stderr


def _fail_once(real: Callable[..., object], error: Exception | None = None) -> Callable[..., object]:
    """What does the same, but for the first time."""
    failures = [error or TypeError("nobody thought of it")]

    def fail(*arguments: object) -> object:
        if failures:
            raise failures.pop()
        return real(*arguments)

    return fail


def test_pr15_a_run_is_told_of_before_its_neighbours_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are handed out by the hundred; the last of them may take minutes, or the daemon end before."""
    watch, ingest, numbers = Watch(tmp_path), UnitIntake.ingest_unit, []
    told_first = Event()

    def tell(event: object) -> None:
        if isinstance(event, RunIngested):
            numbers.append(event.number)
            told_first.set()

    def ingest_slowly(intake: UnitIntake, unit: UnitCandidate, ask: Ask, now: datetime) -> UnitOutcome:
        if unit.path.name == "b.json":
            assert told_first.wait(PATIENCE_S), "it is told of once all are read"
        return ingest(intake, unit, ask, now)

    monkeypatch.setattr(UnitIntake, "ingest_unit", ingest_slowly)
    for moment, name in enumerate(("a.json", "b.json"), 1):
        os.utime(profile(watch.root / name, program=name), (moment, moment))
    Daemon(replace(CONFIG, roots=(watch.root,)), watch.state, tell).run_daemon(once=True)
    assert numbers == [1, 2]
