"""What the daemon and its commands say of files, directories and settings: true words, once."""

from __future__ import annotations

import json
import re
import signal
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemon_process import FAST, UNHURRIED, Process, settle
from daemon_runs import PATIENCE_S, Watch, profile

from advisor import cli
from advisor.daemon.config import DaemonConfig
from advisor.daemon.debounce import FileDebouncer
from advisor.daemon.events import Remark
from advisor.daemon.reader_pool import ReaderPool
from advisor.extension.sandbox import TaskFailed
from advisor.history.database import HistoryWriter, open_read_only
from advisor.output import watch_screen

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in settle(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def ask(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        return (code, *capsys.readouterr())

    return ask


def test_status_says_why_files_are_ignored(place: Path, says: Callable[..., tuple[int, str, str]]) -> None:
    (place / "runs" / "notes.txt").write_text("no profile")
    (place / "runs" / "empty").touch()
    says("stamp", "runs", "--build", "v1")
    says("watch", "runs", "--once")
    parts: list[dict[str, Any]] = json.loads(says("status", "--format", "json")[1])["parts"]
    [ignored] = [part for part in parts if part.get("title") == "Ignored"]
    assert {Path(path).name: (why, many) for why, many, path in ignored["rows"]} == {
        "notes.txt": ("in no format that is known", 1),
        "empty": ("is empty", 1),
        "gapwatch.json": ("says of the profiles beside it which build they are of", 1),
    }
    assert "no run yet" in says("status")[1]
    profile(place / "runs" / "one.json")
    says("watch", "runs", "--once")
    assert "1 run of fig4" in says("status")[1]


def test_a_directory_that_is_not_there_is_named(place: Path, says: Callable[..., tuple[int, str, str]]) -> None:
    assert f"{place / 'mistyped'} is not there\n" in says("watch", "runs", "mistyped", "--once")[1]


def test_a_root_that_goes_and_comes_back_is_spoken_of(tmp_path: Path) -> None:
    with Watch(tmp_path) as watch:
        told = [f"{watch.root} is not there; it is waited for", f"{watch.root} is there again"]
        watch.root.rmdir()
        watch.until(lambda: Remark(told[0]) in watch.told)
        watch.root.mkdir()
        watch.until(lambda: Remark(told[1]) in watch.told)
        watch.scan_again()
    assert [event.text for event in watch.told if isinstance(event, Remark) and "there" in event.text] == told


def test_gates_without_anything_new_to_judge_say_so(place: Path, says: Callable[..., tuple[int, str, str]]) -> None:
    profile(place / "runs" / "one.json")
    assert "no new run was read" not in says("watch", "runs", "--once", "--fail-on", "L > 99 %")[2]
    code, _, complaint = says("watch", "runs", "--once", "--fail-on", "L > 99 %")
    assert (code, complaint.count("\n")) == (2, 1)
    assert complaint.startswith("gapwatch: --fail-on has no verdict: no new run was read: 1 file ingested; ")


def unwrapped(text: str) -> str:
    """Return a text in which long paths are whole again."""
    return "".join(text.split())


def test_the_history_lies_where_the_configuration_says(
    place: Path, says: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GAPWATCH_STATE")
    (place / "config" / "gapwatch" / "gapwatch.toml").write_text(f'{FAST}state = "{place / "elsewhere"}"\n')
    profile(place / "runs" / "one.json")
    says("watch", "runs", "--once")
    assert str(place / "elsewhere") in unwrapped(says("status")[1])
    monkeypatch.setenv("GAPWATCH_STATE", str(place / "mine"))
    says("watch", "runs", "--once")
    assert str(place / "mine") in unwrapped(says("status")[1])


def test_settings_are_shown_as_the_file_states_them(place: Path, says: Callable[..., tuple[int, str, str]]) -> None:
    (place / "config" / "gapwatch" / "gapwatch.toml").write_text('scan = "90 s"\nkeep_size = "1.5 GiB"\nroots = ["a"]')
    lines = says("config", "show")[1].splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines if len(line.split(maxsplit=1)) == 2)
    assert (shown["scan"], shown["keep_size"], shown["memory"]) == ('"90 s"', '"1536 MiB"', '"2 GiB"')
    names = "scan", "poll", "quiet", "patience", "task", "memory", "keep_size", "jobs", "nice"
    (place / "again.toml").write_text("".join(f"{name} = {shown[name]}\n" for name in names))
    assert says("config", "check", "again.toml") == says("config", "check", "--config", "again.toml")
    assert says("config", "check", "again.toml")[:2] == (0, "again.toml: fine\n")
    assert says("config", "check", "missing.toml")[0] == 2


def test_options_of_stamp_behind_the_directory_are_complained_of_like_all(
    place: Path, says: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, complaint = says("stamp", "runs", "--parameter", "N")
    wanted = "gapwatch: argument --parameter: expected NAME=VALUE, found 'N' (see gapwatch stamp --help)\n"
    assert (code, complaint) == (2, wanted)


def test_a_path_is_said_once() -> None:
    assert watch_screen.render_quarantine_line(Path("/a/b"), "/a/b: damaged") == "set aside: /a/b: damaged"
    assert watch_screen.render_quarantine_line(Path("/a/b"), "/a/b.c: damaged") == "set aside: /a/b: /a/b.c: damaged"


def test_what_ends_with_the_daemon_counts_against_nobody(place: Path) -> None:
    writer = HistoryWriter(place / "state")
    readers = ReaderPool(DaemonConfig(), writer, FileDebouncer(0.1))
    readers.close()
    with pytest.raises(TaskFailed) as failed:
        readers._ask_worker({"do": "identify"})
    writer.close()
    assert failed.value.kind == "unreachable"


def test_a_profile_that_was_being_read_at_the_end_is_in_nobodys_way(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(place, UNHURRIED)
    begun = place / "cache" / "gapwatch" / "begun"  # where children may write
    begun.parent.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    folder = place / "config" / "gapwatch" / "plugins"
    folder.mkdir()
    (folder / "slow.py").write_text(
        "import time\nfrom pathlib import Path\nfrom advisor.extension.hookspecs import hookimpl\n\n"
        "@hookimpl\ndef advisor_findings(profile, bounds, gaps, machine, history):\n"
        f"    Path({str(begun)!r}).touch()\n    time.sleep(36000)\n    return []\n"
    )
    profile(place / "runs" / "one.json")
    with Process() as daemon:
        daemon.until(begun.exists)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.wait(PATIENCE_S)
        assert daemon.counts()["waiting"] == 1
    with closing(open_read_only(place / "state")) as connection:
        assert connection.execute("SELECT reason FROM files").fetchall() == [(None,)]


def test_many_programs_with_strange_names_take_one_line(place: Path, says: Callable[..., tuple[int, str, str]]) -> None:
    for number in range(14):
        profile(place / "runs" / f"{number}.json", program=f"heat\n{number:02}")
    says("watch", "runs", "--once")
    told = " ".join(says("status")[1].split())
    assert re.search(r"14 runs of (heat\\n\d\d, ){11}heat\\n\d\d and 2 more", told)
    code, _, complaint = says("history", "heat 07")
    assert (code, len(complaint.splitlines())) == (2, 1)
    assert complaint.endswith("2 more\n")
    assert r"(did you mean 'heat\n07'?)" in complaint
