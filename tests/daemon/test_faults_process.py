"""What happens to the process of the daemon: signals, limits, clocks, a crowded machine, logs that are full."""

from __future__ import annotations

import configparser
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from daemon_process import FAST, UNHURRIED, Process, settle
from daemon_runs import CONFIG, Watch, profile
from patience import PATIENCE_S

from advisor.daemon import reader_pool, throttling

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

ADVISOR = Path(__file__).parents[2] / "advisor"


def status(env: Mapping[str, str]) -> str:
    command = [sys.executable, "-m", "gapwatch", "status"]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | env, check=True).stdout


def test_pr3_pr6_children_end_with_the_daemon_and_offer_themselves_when_memory_runs_out(tmp_path: Path) -> None:
    with Process("--format", "lines", env=settle(tmp_path), cwd=tmp_path) as daemon:
        profile(tmp_path / "runs" / "a.json")
        assert daemon.line().startswith("run 1")
        (child,) = daemon.children()
        scores = [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (child.pid, daemon.process.pid)]
        assert scores[0] > scores[1]
        daemon.process.kill()
        daemon.process.wait()
        assert child.wait(PATIENCE_S) is None or not child.is_running()


def test_pr4_clocks_that_jump_change_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting uses a clock that only runs forward; runs are in the order in which they came."""

    class Jumping(datetime):
        turns = 0

        @classmethod
        def now(cls, tz: object = None) -> Jumping:
            cls.turns += 1
            return cls.fromtimestamp(2e9, UTC) - timedelta(hours=cls.turns)

    monkeypatch.setattr(reader_pool, "datetime", Jumping)
    with Watch(tmp_path) as watch:
        for number in range(2):
            profile(watch.root / f"{number}.json")
            watch.until(lambda number=number: len(watch.runs) == number + 1)
    entries = watch.entries()
    assert [entry.run for entry in entries] == ["0", "1"]
    assert [entry.added for entry in entries] == sorted((entry.added for entry in entries), reverse=True)


def test_pr5_without_descriptors_reading_pauses_and_nothing_is_lost(tmp_path: Path) -> None:
    env = settle(tmp_path)
    with Process("--format", "lines", env=env, cwd=tmp_path) as daemon:
        profile(tmp_path / "runs" / "a.json")
        assert daemon.line().startswith("run 1")
        for child in daemon.children():
            child.kill()
        pid = daemon.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (psutil.Process(pid).num_fds() - 2, before[1]))
        profile(tmp_path / "runs" / "b.json")
        turned = psutil.Process(pid).num_ctx_switches().voluntary
        daemon.until(lambda: psutil.Process(pid).num_ctx_switches().voluntary >= turned + 20)
        assert daemon.process.poll() is None
        assert daemon.counts()["ingested"] == 1
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        daemon.until(lambda: daemon.counts()["ingested"] == 2)


def test_pr7_a_log_that_is_full_stops_nothing(tmp_path: Path) -> None:
    env = settle(tmp_path)
    command = [sys.executable, "-m", "gapwatch", "watch", "runs", "--format", "lines"]
    with open("/dev/full", "wb") as full, Process("--format", "lines", "--once", env=env, cwd=tmp_path) as done:
        done.process.wait()
        process = subprocess.Popen(command, stdout=full, stderr=full, env=os.environ | env, cwd=tmp_path)
        try:
            profile(tmp_path / "runs" / "0.json")
            done.until(lambda: done.counts()["ingested"] == 1)
            profile(tmp_path / "runs" / "1.json")
            done.until(lambda: done.counts()["ingested"] == 2)
            assert process.poll() is None
        finally:
            process.terminate()
            assert process.wait(PATIENCE_S) == 0


def test_pr9_without_the_variables_of_a_session_there_is_once(tmp_path: Path) -> None:
    profile(tmp_path / "runs" / "a.json")
    command = [sys.executable, "-m", "gapwatch", "watch", "runs", "--once", "--format", "lines"]
    bare = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    made = subprocess.run(command, capture_output=True, text=True, env=bare, cwd=tmp_path, check=True)
    assert made.stdout.startswith("run 1")
    assert (tmp_path / ".local" / "state" / "gapwatch" / "history.sqlite").is_file()


def test_pr10_it_is_a_guest_and_its_children_are(tmp_path: Path) -> None:
    with Process("--format", "lines", env=settle(tmp_path, FAST.replace("nice = 0\n", "")), cwd=tmp_path) as daemon:
        profile(tmp_path / "runs" / "a.json")
        assert daemon.line().startswith("run 1")
        for process in (psutil.Process(daemon.process.pid), *daemon.children()):
            assert process.nice() == 19
            assert process.ionice().ioclass == psutil.IOPRIO_CLASS_IDLE
            assert process.num_fds() <= 64


def test_pr10_where_others_need_the_machine_it_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(throttling, "monotonic", lambda: now)
    monkeypatch.setattr(throttling.psutil, "getloadavg", lambda: (0.0, 0.0, 0.0))
    pace = throttling.BacklogThrottle(1.5)
    assert pace.allows_part(busy=True, own=2)
    assert not pace.begin_part(), "more parts may follow"
    monkeypatch.setattr(throttling.psutil, "getloadavg", lambda: (999.0, 0.0, 0.0))
    assert not pace.allows_part(busy=True, own=2), "one part at a time"
    assert pace.allows_part(busy=False, own=2)
    assert pace.begin_part()
    now = 102.0
    assert not pace.allows_part(busy=False, own=2), "a rest after it"
    assert pace.resting_until == 108.0
    now = 108.0
    assert pace.allows_part(busy=False, own=2)
    assert pace.begin_part()
    monkeypatch.setattr(throttling.psutil, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert pace.allows_part(busy=True, own=2)


def test_pr10_a_backlog_on_a_crowded_machine_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttling, "is_crowded", lambda own, max_load: True)
    monkeypatch.setattr(throttling, "FEW", 1)
    with Watch(tmp_path, replace(CONFIG, jobs=2)) as watch:
        for number in range(3):
            profile(watch.root / f"{number}" / "a.json", run=str(number))
        watch.until(lambda: len(watch.runs) == 3)


def test_ho12_a_name_with_line_breaks_is_one_line(tmp_path: Path) -> None:
    env = settle(tmp_path)
    half = profile(tmp_path / "a.json").read_bytes()[:150]
    name = "f\n2026-01-01 CRITICAL all is lost\x1b]0;title\x07"
    (tmp_path / "runs" / name).write_bytes(half)
    with Process("--format", "lines", "--once", env=env, cwd=tmp_path) as daemon:
        assert daemon.process.wait(PATIENCE_S) == 0
        assert daemon.process.stdout is not None
        said = daemon.process.stdout.read()
    assert [line.split(":")[0] for line in said.splitlines()] == ["set aside", "gapwatch"]
    shown = status(env)
    assert "\x1b" not in said + shown
    assert not re.search(r"^2026-01-01", shown, re.MULTILINE)


def test_ho19_secrets_of_the_environment_reach_nothing(tmp_path: Path) -> None:
    env = settle(tmp_path) | {"AWS_SECRET_ACCESS_KEY": "canary-4711", "TOKEN": "canary-4711"}
    profile(tmp_path / "runs" / "a.json")
    (tmp_path / "runs" / "half.json").write_bytes(profile(tmp_path / "a.json").read_bytes()[:150])
    with Process("--format", "json", "--once", env=env, cwd=tmp_path) as daemon:
        assert daemon.process.wait(PATIENCE_S) == 0
        assert daemon.process.stdout is not None
        said = daemon.process.stdout.read() + status(env)
    assert "canary" not in said
    assert not [path for path in (tmp_path / "state").iterdir() if b"canary" in path.read_bytes()]


def test_the_unit_for_systemd_starts_the_daemon(tmp_path: Path) -> None:
    env = settle(tmp_path, FAST + f'roots = ["{tmp_path}/runs"]\n')
    profile(tmp_path / "runs" / "a.json")
    settings = str(tmp_path / "config" / "gapwatch" / "gapwatch.toml")
    command = [sys.executable, "-m", "gapwatch", "config", "systemd", "--config", settings]
    text = subprocess.run(command, capture_output=True, text=True, env=os.environ | env, check=True).stdout
    unit = configparser.RawConfigParser()
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(text)
    assert unit["Service"]["Type"] == "notify"
    assert float(unit["Service"]["WatchdogSec"]) >= 10
    assert unit["Service"]["ExecReload"] == "/bin/kill -HUP $MAINPID"
    started = [*shlex.split(unit["Service"]["ExecStart"]), "--once"]
    made = subprocess.run(started, capture_output=True, text=True, env=os.environ | env, cwd="/", check=True)
    assert made.stdout.startswith("run 1")


def test_pl14_nothing_is_ever_unpickled() -> None:
    """Children and files may be hostile: what they send is JSON and arrays, and nothing is executed."""
    words = re.compile(r"\b(import|from) (pickle|shelve|dill)\b|allow_pickle=True|\beval\(|\bexec\(")
    assert [path for path in ADVISOR.rglob("*.py") if words.search(path.read_text(encoding="utf-8"))] == []


def test_pr1_a_signal_ends_it_also_while_it_reads_and_waits_for_no_reader(tmp_path: Path) -> None:
    env = settle(tmp_path, UNHURRIED)
    with Process("--format", "lines", env=env, cwd=tmp_path) as daemon:
        for number in range(40):
            profile(tmp_path / "runs" / f"{number}.json")
        daemon.line()
        for reader in daemon.children():
            reader.suspend()
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.process.stdout is not None
        daemon.process.stdout.read()
        assert daemon.process.wait(PATIENCE_S) == 0
    counts = daemon.counts()
    assert counts["waiting"] + counts["ingested"] == 40
