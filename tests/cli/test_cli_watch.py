"""The daemon and its history from the command line: real processes, real files, signals."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import pytest
from daemon_process import FAST, Process
from daemon_runs import profile
from patience import PATIENCE_S, has_ended, wait_until

from advisor import cli
from advisor.daemon import scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with settings of its own, in which the history is ``state`` and the profiles go to ``runs``."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GAPWATCH_STATE", str(tmp_path / "state"))
    (tmp_path / "config" / "gapwatch").mkdir(parents=True)
    (tmp_path / "config" / "gapwatch" / "gapwatch.toml").write_text(FAST)
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Shown(NamedTuple):
    """What a command gave."""

    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Shown:
    code = cli.main(arguments)
    return Shown(code, *capsys.readouterr())


def once(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert cli.main(["watch", "runs", "--once", *arguments]) == code
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Leave the handlers of this process as they were."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_each_run_is_a_line_and_changes_stand_below(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile(place / "runs" / "one.json", build="v1")
    assert once(capsys, "--format", "lines").startswith("run 1: fig4 v1: 47.0 s: Decompose")
    profile(place / "runs" / "two.json", build="v2", actual_s=50)
    lines = once(capsys, "--format", "lines").splitlines()
    assert lines[0].startswith("run 2: fig4 v2: 50.0 s: ")
    assert lines[1] == "  since v1: run time +3.00 s (one run each: noise unknown)"


def test_what_lies_there_is_read_in_the_order_of_its_writing_root_by_root(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = ["later/1", "later/10", "runs/2", "runs/11"]
    for age, name in enumerate(reversed(order), start=1):
        (place / name).mkdir(parents=True)
        file = profile(place / name / "run.json", build=f"v{name.partition('/')[2]}")
        os.utime(file, (1e9 - age, 1e9 - age))
    assert cli.main(["watch", "runs", "later", "--once", "--format", "json"]) == 0
    builds = [json.loads(line)["profile"]["build"] for line in capsys.readouterr().out.splitlines()]
    assert builds == ["v2", "v11", "v1", "v10"]


def test_a_directory_that_cannot_be_entered_is_spoken_of(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    profile(place / "runs" / "one.json")
    (place / "runs" / "private").mkdir()
    real = scan._scan_folder

    def scan_folder(path: Path) -> tuple[scan.FolderScan, list[Path]]:
        if path.name == "private":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(scan, "_scan_folder", scan_folder)
    assert f"{place}/runs/private can't be read" in once(capsys, "--format", "lines")
    assert "private can't be read" in run(capsys, "watch", "runs", "--once", "--fail-on", "L > 90 %").err


def test_as_json_there_is_one_document_a_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        profile(place / "runs" / f"{number}.json")
    documents = [json.loads(text) for text in once(capsys, "--format", "json").splitlines()]
    assert [document["schema"] for document in documents] == ["gapwatch/advice/1"] * 3


def test_the_history_tells_runs_items_and_their_life(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile(place / "runs" / "one.json", build="v1")
    once(capsys)
    shown = run(capsys, "history", "--format", "json")
    runs, items = json.loads(shown.out)["parts"]
    assert runs["rows"][0][:3] == [1, "fig4", "v1"]
    action = items["rows"][0][1]
    assert items["rows"][0][4] == "new"
    assert run(capsys, "suppress", action, "--reason", "later", "--until", "2999-01-01").code == 0
    assert json.loads(run(capsys, "history", "fig4", "--format", "json").out)["parts"][1]["rows"][0][4] == "suppressed"
    assert run(capsys, "applied", action).code == 0
    assert run(capsys, "ack", "A-99").code == 2
    assert "no run of 'nothing' in the history; there are fig4" in run(capsys, "history", "nothing").err


def test_builds_are_compared_against_their_noise(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for build, elapsed in (("v1", 47.0), ("v2", 52.0)):
        for repeat in range(3):
            profile(place / "runs" / f"{build}-{repeat}.json", build=build, actual_s=elapsed + 0.01 * repeat)
    once(capsys)
    shown = run(capsys, "compare", "v1", "v2", "--format", "json")
    table, verdict = json.loads(shown.out)["parts"]
    changes = {row[0]: row for row in table["rows"]}
    assert changes["actual"][3] == pytest.approx(5.0)
    assert sum(row[3] for name, row in changes.items() if name != "actual") == pytest.approx(5.0)
    assert "grew by 5.00 s" in verdict["text"]
    assert run(capsys, "compare", "v1", "v2", "--fail-on", "regression").code == 1
    assert run(capsys, "compare", "v2", "v1", "--fail-on", "regression").code == 0
    assert run(capsys, "compare", "v1", "v2", "--fail-on", "new", "--fail-on", "M' > 50 %").code == 0
    assert run(capsys, "compare", "v1", "v2", "--fail-on", "M' > 1 %").err.startswith("gapwatch: gate crossed: M' is")
    (place / "v1").mkdir()  # no reason to take v2 for a directory, too
    comment = run(capsys, "compare", "v1", "v2", "--format", "markdown").out
    assert comment.startswith("<!-- gapwatch: fig4 -->\n")
    assert "**Since build `v1`**: run time +5.00 s" in comment
    (place / "v1").rmdir()
    assert (
        "no run or build named 'v3'; the last builds are v1, v2; runs have the numbers 1 to 6"
        in run(capsys, "compare", "v1", "v3").err
    )


def test_the_gates_of_what_was_read_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for repeat in range(3):
        profile(place / "runs" / f"v1-{repeat}.json", build="v1", actual_s=47 + 0.01 * repeat)
    assert once(capsys, "--fail-on", "new", "--fail-on", "regression", code=2)
    profile(place / "runs" / "v2.json", build="v2", actual_s=52)
    assert once(capsys, "--fail-on", "new")
    profile(place / "runs" / "v3.json", build="v3", actual_s=60)
    assert once(capsys, "--fail-on", "regression", code=1)


def test_a_look_that_finds_no_run_says_what_the_files_are(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "watch", "runs", "--once").err == "gapwatch: no new run was read: no file was found\n"
    (place / "runs" / "notes.txt").write_text("nothing")
    (place / "runs" / "more.txt").write_text("nothing more")
    shown = run(capsys, "watch", "runs", "--once")
    assert (shown.code, shown.out) == (0, "")
    assert shown.err.startswith("gapwatch: no new run was read: 2 files ignored (in no format that is known: ")
    assert "'gapwatch status --state " in shown.err
    profile(place / "runs" / "a.json")
    assert "no new run" not in run(capsys, "watch", "runs", "--once").err
    assert "1 file ingested, 2 files ignored" in run(capsys, "watch", "runs", "--once").err


def test_what_is_exported_and_backed_up_is_complete(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile(place / "runs" / "one.json")
    once(capsys)
    assert json.loads(run(capsys, "export").out)["profile"]["program"] == "fig4"
    profile(place / "runs" / "two.json", build="v2", actual_s=52)
    once(capsys)
    metrics = run(capsys, "export", "--format", "openmetrics").out.splitlines()
    assert 'gapwatch_run_seconds{program="fig4",build="v2"} 52.0' in metrics
    assert not [line for line in metrics if 'build=""' in line], "only the newest run"
    assert metrics[-1] == "# EOF"
    assert run(capsys, "backup", "copy/../copy.sqlite").code == 2
    assert run(capsys, "backup", "copy.sqlite").code == 0
    shutil.rmtree(place / "state")
    (place / "state").mkdir()
    (place / "copy.sqlite").rename(place / "state" / "history.sqlite")
    assert json.loads(run(capsys, "history", "--format", "json").out)["parts"][0]["rows"][0][1] == "fig4"


@pytest.mark.parametrize(("form", "kept"), [("jsonl", '"program": "other"'), ("openmetrics", 'program="other"')])
def test_a_damaged_run_is_left_out_of_an_export(
    place: Path, capsys: pytest.CaptureFixture[str], form: str, kept: str
) -> None:
    profile(place / "runs" / "one.json")
    profile(place / "runs" / "two.json", program="other")
    once(capsys)
    with closing(sqlite3.connect(place / "state" / "history.sqlite")) as connection, connection:
        connection.execute("UPDATE runs SET advice = X'00' WHERE program = 'fig4'")
    shown = run(capsys, "export", "--format", form)
    assert (shown.code, kept in shown.out, "fig4" in shown.out) == (2, True, False)
    assert "left out" in shown.err


def test_status_counts_every_file_and_says_what_is_in_the_way(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "runs" / "half.json").write_bytes(profile(place / "runs" / "one.json").read_bytes()[:150])
    once(capsys)
    parts = json.loads(run(capsys, "status", "--format", "json").out)["parts"]
    assert parts[0]["text"].startswith("no process is writing to the history")
    assert dict(parts[1]["rows"])["total"] == 2
    assert [row[1] for row in parts[3]["rows"]] == ["quarantined"]


def test_without_a_history_every_command_says_how_to_get_one(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["history"], ["status"], ["compare", "a", "b"], ["export"], ["backup", "x"]):
        shown = run(capsys, *command)
        assert shown.code == 2
        assert "no history in" in shown.err


def test_directories_must_be_named_and_be_there(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no directories given" in run(capsys, "watch").err
    assert "no such directory: " in run(capsys, "watch", "nowhere").err


def test_the_configuration_is_shown_and_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(run(capsys, "config", "show", "--format", "json").out)
    assert ["quiet", '"0.1 s"'] in shown["parts"][1]["rows"]
    assert run(capsys, "config", "check").out.endswith("fine\n")
    (place / "bad.toml").write_text("quiet = 'soon'\nnise = 3\n")
    checked = run(capsys, "config", "check", "--config", "bad.toml")
    assert checked.code == 2
    assert len(checked.err.splitlines()) == 2


def test_signals_end_the_daemon_and_the_next_goes_on(place: Path) -> None:
    with Process("--format", "lines") as daemon:
        profile(place / "runs" / "one.json")
        assert daemon.line().startswith("run 1: fig4")
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(PATIENCE_S) == 0
    with Process("--format", "lines", "--once") as daemon:
        profile(place / "runs" / "two.json")
        assert daemon.line().startswith("run 2: fig4")
        assert daemon.process.wait(PATIENCE_S) == 0


def test_a_hangup_reads_the_configuration_again_and_a_broken_one_changes_nothing(place: Path) -> None:
    settings = place / "config" / "gapwatch" / "gapwatch.toml"
    with Process("--format", "lines") as daemon:
        profile(place / "runs" / "one.json")
        assert daemon.line().startswith("run 1")
        settings.write_text("quiet = nonsense")
        daemon.process.send_signal(signal.SIGHUP)
        assert daemon.line().startswith("the configuration stays as it was: ")
        settings.write_text(FAST + "jobs = 2\n")
        daemon.process.send_signal(signal.SIGHUP)
        assert daemon.line().startswith("the configuration was read again")
        profile(place / "runs" / "two.json")
        assert daemon.line().startswith("run 2")


def test_the_daemon_ends_with_its_terminal(place: Path) -> None:
    screen, terminal = os.openpty()
    command = [sys.executable, "-m", "gapwatch", "watch", "runs", "--format", "lines"]
    daemon = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}
    )
    os.close(terminal)
    profile(place / "runs" / "a.json")
    said = b""
    while b"run 1" not in said:
        said += os.read(screen, 4096)
    os.close(screen)
    daemon.send_signal(signal.SIGHUP)
    assert daemon.wait(PATIENCE_S) == 0


def test_a_killed_daemon_leaves_no_children_and_loses_nothing(place: Path) -> None:
    with Process("--format", "lines") as daemon:
        profile(place / "runs" / "one.json")
        assert daemon.line().startswith("run 1")
        children = daemon.children()
        assert children
        daemon.process.kill()
        daemon.process.wait()
    wait_until(lambda: all(has_ended(child.pid) for child in children))
    with Process("--format", "lines", "--once") as daemon:
        profile(place / "runs" / "two.json")
        assert daemon.line().startswith("run 2")


def test_what_was_stopped_misses_nothing(place: Path) -> None:
    """A stopped daemon hears no events of what happens; a few files here, 20,000 in benchmarks."""
    with Process("--format", "lines") as daemon:
        profile(place / "runs" / "one.json")
        assert daemon.line().startswith("run 1")
        daemon.process.send_signal(signal.SIGSTOP)
        for number in range(50):
            profile(place / "runs" / f"d{number % 7}" / f"{number}.json")
        daemon.process.send_signal(signal.SIGCONT)
        assert sorted(daemon.line().split(":")[0] for _ in range(50)) == sorted(f"run {n}" for n in range(2, 52))


def test_the_live_screen_is_drawn_on_a_terminal(place: Path) -> None:
    profile(place / "runs" / "one.json", build="v1")
    script = (
        "import pty, sys, os\n"
        "def read(descriptor):\n"
        "    return os.read(descriptor, 65536)\n"
        f"command = [{sys.executable!r}, '-m', 'gapwatch', 'watch', 'runs', '--once']\n"
        "sys.exit(os.waitstatus_to_exitcode(pty.spawn(command, read)))\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, env={**os.environ, "TERM": "xterm"}
    )
    text = made.stdout.decode()
    assert made.returncode == 0
    assert "fig4 v1: 47.0 s" in text
    assert "IPCO" in text
    assert "files: 1 ingested" in text
