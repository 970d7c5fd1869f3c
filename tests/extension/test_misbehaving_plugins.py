"""Forty plugins at once do to their process what they like: each command has its result, and says who was left out.

The tests ask all of them in one command; with ``GAPWATCH_DEEDS=all``, as ``make soak`` does, in every command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from command_line import environment, run
from daemon_runs import CONFIG, Watch, profile
from misbehaving_plugins import write_plugins
from native_documents import PROFILES
from patience import PATIENCE_S, has_ended, wait_until
from site_folder import plugin

from advisor.history.database import open_read_only
from advisor.history.remarks import RemarkStore

if TYPE_CHECKING:
    from pathlib import Path

FIG4 = str(PROFILES / "fig4.json")
#: For a minute and more: 40 plugins, of which eight take all the time that they may.
every_command = pytest.mark.skipif(os.environ.get("GAPWATCH_DEEDS") != "all", reason="make soak asks in every command")


def test_pl3_pl4_pl5_advise_and_its_gate_have_their_result(tmp_path: Path) -> None:
    bad = write_plugins(tmp_path / "plugins")
    known = {"GAPWATCH_PLUGINS": str(tmp_path / "plugins"), "GAPWATCH_PLUGIN_TIME": "3"}
    made = run("advise", FIG4, "--format", "json", "--fail-on", "L > 1 %", home=tmp_path, **known)
    assert (made.returncode, b"gate crossed: L is" in made.stderr) == (1, True), made.stderr[-2000:]
    advice = json.loads(made.stdout)
    assert {one["plugin"] for one in advice["findings"]} >= {"a_good", "z_good"}
    named = {one.split()[1].rstrip(":") for one in advice["problems"] if one.startswith("plugin ")}
    assert bad <= named
    assert any("say_network" in one and "Permission denied" in one for one in advice["problems"])
    # a thread can't be started where the user's other processes leave no room for it
    allowed = ("text", "not_a_number", "many", "long", "network", "patch", "thread")
    assert named - bad <= {f"say_{name}" for name in allowed}


@every_command
def test_pl3_pl4_pl5_report_has_its_pages(tmp_path: Path) -> None:
    bad = write_plugins(tmp_path / "plugins")
    (tmp_path / "runs").mkdir()
    profile(tmp_path / "runs" / "a.json")
    known = {"GAPWATCH_PLUGINS": str(tmp_path / "plugins"), "GAPWATCH_PLUGIN_TIME": "3"}
    made = run("report", "runs", "-o", "pages", home=tmp_path, **known)
    assert made.returncode == 0, made.stderr[-2000:]
    page = (tmp_path / "pages" / "run-0001.html").read_text()
    assert "all is well" in page
    assert not [name for name in bad if name.encode() not in made.stderr]


@every_command
def test_pl3_pl4_pl5_watch_reads_on(tmp_path: Path) -> None:
    bad = write_plugins(tmp_path / "plugins")
    config = replace(CONFIG, plugins=(tmp_path / "plugins",), plugin_s=3.0, memory_B=1 << 30)
    profile(tmp_path / "runs" / "a.json")
    watch = Watch(tmp_path, config).once()
    assert watch.counts()["ingested"] == 1
    for one in watch.runs:
        assert {finding.plugin for finding in one.advice.findings} >= {"a_good", "z_good"}
    said = " ".join(text for one in watch.runs for text in one.advice.problems)
    with closing(open_read_only(watch.state)) as connection:
        failed = {name for name, _, _ in RemarkStore(connection).failed_plugins()}
    assert not [name for name in bad if name not in said and name not in failed]


@pytest.mark.parametrize("when", ["in the result", "reading"])
def test_a_gate_without_a_verdict_ends_in_2(tmp_path: Path, when: str) -> None:
    """What ends the process where nothing can be done again is an error, and never a gate that passed."""
    (tmp_path / "plugins").mkdir()
    if when == "reading":
        body = """
        @hookimpl
        def advisor_sniff(path):
            return 1.0
        @hookimpl
        def advisor_read(path):
            import os
            os._exit(0)
        """
    else:
        body = """
        import advisor.cli.advise as advise
        import os
        advise.render_advice = lambda *_: os._exit(0)
        @hookimpl
        def advisor_facts():
            return []
        """
    plugin(tmp_path / "plugins", "bad", body)
    (tmp_path / "own.profile").write_text("nobody else reads this")
    file = str(tmp_path / "own.profile") if when == "reading" else FIG4
    made = run("advise", file, "--fail-on", "L > 99 %", home=tmp_path, GAPWATCH_PLUGINS=str(tmp_path / "plugins"))
    if when == "reading":
        assert (made.returncode, made.stdout) == (2, b"")
        assert b"is in no format that is known here" in made.stderr
    else:
        assert made.returncode == 0, "it is done without whoever was asked before"
        said = b" ".join(made.stdout.split())
        assert b"left out: the process ended with exit code 0 after it was asked" in said


def test_a_process_that_ends_without_having_asked_anybody_has_no_verdict(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from advisor.cli import advise, main\n"
        "advise.render_advice = lambda *_: os._exit(0)\n"
        "sys.exit(main())"
    )
    made = run("advise", FIG4, "--fail-on", "L > 99 %", home=tmp_path, code=code)
    assert (made.returncode, made.stdout) == (2, b"")
    assert made.stderr == (
        b"gapwatch: the command ended before it was done, without a result: its process ended with exit code 0\n"
    )


def test_a_profile_that_cannot_be_read_leaves_watch_without_a_verdict(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    profile(tmp_path / "runs" / "good.json")
    bad = profile(tmp_path / "runs" / "bad.json")
    bad.write_text(bad.read_text()[:200])
    made = run("watch", "runs", "--once", "--state", "state", "--fail-on", "L > 99 %", home=tmp_path)
    assert made.returncode == 2
    assert b"--fail-on has no verdict: " in made.stderr
    assert b"bad.json could not be read" in made.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_takes_its_child_along(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "plugins").mkdir()
    body = f"""
    @hookimpl
    def advisor_findings(profile):
        import os, time
        with open({str(tmp_path / "asked")!r}, "w") as file:
            file.write(str(os.getpid()))
        time.sleep(3600)
    """
    plugin(tmp_path / "plugins", "slow", body)
    asked = tmp_path / "asked"
    command = subprocess.Popen(
        [sys.executable, "-m", "gapwatch", "advise", FIG4, "-o", str(tmp_path / "advice.txt")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(tmp_path, GAPWATCH_PLUGINS=str(tmp_path / "plugins"), GAPWATCH_PLUGIN_TIME="3600"),
    )  # fmt: skip
    wait_until(lambda: asked.exists() and bool(asked.read_text()))
    child = int(asked.read_text())
    assert child != command.pid
    command.send_signal(number)
    out, err = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == (130 if number == signal.SIGINT else -number)
    assert (out, err) == (b"", b"" if number == signal.SIGKILL else b"gapwatch: interrupted\n")
    wait_until(partial(has_ended, child))
