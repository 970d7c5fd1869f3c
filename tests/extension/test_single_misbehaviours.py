"""One plugin at a time does to its process what it likes, in each command that asks it: the others' results are kept,
it is named where it lost its own, and a gate has its verdict.

The tests take what outlasts an answer, once each; with ``GAPWATCH_DEEDS=all``, as ``make soak`` does, everything in
every command.
"""

from __future__ import annotations

import json
import os
from itertools import cycle
from typing import TYPE_CHECKING

import psutil
import pytest
from command_line import run
from daemon_runs import FIG4, profile
from misbehaving_plugins import AFTERMATHS, ANSWERS, DEEDS, IMPORTS, write_plugin
from patience import wait_until
from site_folder import plugin

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

COMMANDS = ("advise", "watch", "report")
#: Those that lose their own result, and have to be named: all but what is undone, or nobody else notices.
NAMED = {
    *DEEDS,
    *IMPORTS,
    "interrupt",
    "recurse_c",
    "endless",
    "hang_in_generator",
    "unknown_object",
    "listen",
    "writable",
    "audit",
}
ALL = [*DEEDS, *ANSWERS, *AFTERMATHS, *IMPORTS]
CASES = (
    [(deed, command) for deed in ALL for command in COMMANDS]
    if os.environ.get("GAPWATCH_DEEDS") == "all"
    else [*zip([*AFTERMATHS, *IMPORTS], cycle(COMMANDS), strict=False)]
)


@pytest.mark.parametrize(("deed", "command"), CASES)
def test_pl3_pl4_pl5_pl19_each_deed_costs_nobody_else_anything(tmp_path: Path, deed: str, command: str) -> None:
    write_plugin(tmp_path / "plugins", deed, tmp_path)
    (tmp_path / "runs").mkdir()
    file = profile(tmp_path / "runs" / "a.json")
    made = _run_command(command, tmp_path)
    said = made.stderr.decode("utf-8", "replace") + made.stdout.decode("utf-8", "replace")
    if command == "report":
        assert made.returncode == 0, said[-2000:]
        page = (tmp_path / "out" / "pages" / "run-0001.html").read_text()
        assert page.count("all is well") >= 2
        said += page
    else:
        assert made.returncode == 1, said[-2000:]
        assert "gate crossed: L is" in said
        assert said.count("all is well") >= 2 or command == "watch"
    if command == "watch":
        found = run("export", "--state", "state", home=tmp_path)
        advice = json.loads(found.stdout.splitlines()[-1])
        assert said.count("run 1") == 1
        kept = json.dumps(advice)
        assert kept.count("all is well") >= 2
        said += kept + run("status", "--state", "state", home=tmp_path).stdout.decode()
    if deed in NAMED:
        assert "m_bad" in said, said[-3000:]
    assert json.loads(file.read_text()) == FIG4 | {"run": "a"}
    wait_until(lambda: not _left_behind(tmp_path), lambda: _left_behind(tmp_path))


READER = """
    import os
    @hookimpl
    def advisor_sniff(path):
        return 1.0 if path.read_bytes()[:5] == b"ticks" else None
    @hookimpl
    def advisor_read(path):
        os._exit(0)
"""


def test_a_reader_that_ends_its_process_is_named_and_its_gate_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    plugin(tmp_path / "plugins", "m_bad", READER)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.json").write_text("ticks 1", encoding="utf-8")
    for command in ("advise", "watch"):
        made = _run_command(command, tmp_path)
        assert made.returncode == 2, command
        assert b"run 1" not in made.stdout
        assert b"m_bad" in made.stderr
        assert b"left out" in made.stderr


def _run_command(command: str, top: Path) -> subprocess.CompletedProcess[bytes]:
    known = {"GAPWATCH_PLUGINS": str(top / "plugins"), "GAPWATCH_PLUGIN_TIME": "3", "LEFT_BEHIND": str(top)}
    if command == "advise":
        return run("advise", "runs/a.json", "--format", "json", "--fail-on", "L > 1 %", home=top, **known)
    if command == "report":
        (top / "out").mkdir()  # what a plugin may change is the directory in which the result is made
        return run("report", "runs", "-o", "out/pages", home=top, **known)
    (top / "gapwatch.toml").write_text('plugin = "3 s"\nmemory = "1 GiB"\nquiet = "0.1 s"\n')
    where = ("--state", "state", "--config", "gapwatch.toml")
    return run("watch", "runs", "--once", *where, "--format", "lines", "--fail-on", "L > 1 %", home=top, **known)


def _left_behind(top: Path) -> list[psutil.Process]:
    """Return the processes that a command of this test left behind."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get("LEFT_BEHIND") == str(top) and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue
    return found
