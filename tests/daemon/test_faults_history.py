"""What happens to the history and its disk: full, copied, moved to a network, of another version, too large."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from daemon_process import FAST, Process, settle
from daemon_runs import CONFIG, Watch, profile
from patience import PATIENCE_S
from site_folder import plugin
from stored_runs import ADVICE, unit
from system_needs import needs

from advisor.daemon.config import DaemonConfig
from advisor.daemon.retention import HistoryRetention
from advisor.history import filesystems
from advisor.history.database import NAME, HistoryWriter, open_read_only, open_transaction
from advisor.history.runs import RunStore
from advisor.history.schema import STEPS, VERSION
from advisor.history.writer_lock import LOCK, find_writer
from advisor.model.errors import StoreError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_st1_st15_a_daemon_that_is_killed_at_any_moment_loses_nothing_and_reads_nothing_twice(tmp_path: Path) -> None:
    env = settle(tmp_path)
    chance, acknowledged = random.Random(3), set()
    for turn in range(4):
        for number in range(10):
            profile(tmp_path / "runs" / f"{turn}{number}.json")
        with Process("--format", "lines", env=env, cwd=tmp_path) as daemon:
            acknowledged.add(daemon.line().split(":")[0])
            time.sleep(chance.uniform(0.0, 0.3))
            daemon.process.send_signal(signal.SIGKILL)
            assert daemon.process.stdout is not None
            acknowledged |= {line.split(":")[0] for line in daemon.process.stdout if line.startswith("run ")}
    with Process("--format", "lines", "--once", env=env, cwd=tmp_path) as daemon:
        assert daemon.process.wait(PATIENCE_S) == 0
        assert daemon.counts()["ingested"] == 40
    with closing(open_read_only(tmp_path / "state")) as connection:
        entries = RunStore(connection).list_entries()
    assert sorted(entry.run for entry in entries) == sorted(
        f"{turn}{number}" for turn in range(4) for number in range(10)
    )
    assert acknowledged - {""} <= {f"run {entry.number}" for entry in entries}


def test_st3_on_a_network_there_is_no_write_ahead_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystems, "filesystem_type", lambda path, mounts=None: "nfs4")
    made = HistoryWriter(tmp_path / "state")
    try:
        assert made.connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        extra = (3,)  # without a log the directory is synced too
        assert made.connection.execute("PRAGMA synchronous").fetchone() == extra
    finally:
        made.close()


def test_st4_a_full_disk_pauses_reading_and_loses_nothing(tmp_path: Path) -> None:
    """SQLite says the same of a database that may not grow as of a disk that is full."""
    with Watch(tmp_path) as watch:
        profile(watch.root / "a.json")
        watch.until(lambda: len(watch.runs) == 1)
        connection = watch.daemon._writer.connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        for number in range(20):
            profile(watch.root / "more" / f"{number}.json")
        watch.until(lambda: any("reading pauses" in text and "full" in text for text in watch.remarks))
        assert len(watch.entries()) >= 1, "what is there can be read"
        connection.execute("PRAGMA max_page_count = 1000000")
        watch.until(lambda: len(watch.entries()) == 21)
    assert watch.counts()["ingested"] == 21


def test_st4_a_file_system_that_is_full_pauses_reading_until_there_is_room(tmp_path: Path) -> None:
    """Of 200 profiles some find no room; when a file beside the history goes, each of them is there once."""
    env = settle(tmp_path)
    (tmp_path / "state").mkdir()
    needs("unshare", "-Urm", "sh", "-c", f"mount -t tmpfs -o size=16m tmpfs '{tmp_path}/state'")
    script = 'mount -t tmpfs -o size=16m tmpfs state && head -c 15900k /dev/zero > state/ballast && exec "$@"'
    for number in range(200):
        profile(tmp_path / "runs" / f"{number}.json")
    with Process(
        "--format", "lines", before=["unshare", "-Urm", "sh", "-c", script, "sh"], env=env, cwd=tmp_path
    ) as daemon:
        lines: list[str] = []
        while not any("reading pauses" in line for line in lines):
            lines.append(daemon.line())
            assert lines[-1], lines
        assert any("full" in line for line in lines), lines
        assert daemon.process.poll() is None, "it goes on"
        inside = Path(f"/proc/{daemon.process.pid}/root") / tmp_path.relative_to("/") / "state"
        (inside / "ballast").unlink()
        while len({line.split(":")[0] for line in lines if line.startswith("run ")}) < 200:
            lines.append(daemon.line())
            assert lines[-1], lines
        shutil.copytree(inside, tmp_path / "seen")  # SQLite would look up the path outside of the mount
        with closing(open_read_only(tmp_path / "seen")) as connection:
            runs = [entry.run for entry in RunStore(connection).list_entries()]
        assert sorted(runs) == sorted(map(str, range(200)))
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(PATIENCE_S) == 0


def test_st8_a_second_daemon_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    env = settle(tmp_path)
    with Process("--format", "lines", env=env, cwd=tmp_path) as daemon:
        profile(tmp_path / "runs" / "a.json")
        assert daemon.line().startswith("run 1")
        with Process("--format", "lines", env=env, cwd=tmp_path) as second:
            said = second.line()
            assert f"in use by another gapwatch (process {daemon.process.pid} on {os.uname().nodename})" in said
            assert second.process.wait(PATIENCE_S) == 2
        profile(tmp_path / "runs" / "b.json")
        assert daemon.line().startswith("run 2"), "the first goes on"
    assert find_writer(tmp_path / "state") is None


def test_st9_a_daemon_on_another_node_is_refused_and_told_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = settle(tmp_path)
    elsewhere = ["unshare", "-Ur", "--uts", "sh", "-c", 'echo node-a > /proc/sys/kernel/hostname; exec "$@"', "sh"]
    needs(*elsewhere[:-2], "echo node-a > /proc/sys/kernel/hostname")
    with Process("--format", "lines", before=elsewhere, env=env, cwd=tmp_path) as daemon:
        profile(tmp_path / "runs" / "a.json")
        assert daemon.line().startswith("run 1")
        with Process("--format", "lines", env=env, cwd=tmp_path) as second:
            assert f"(process {daemon.process.pid} on node-a)" in second.line()
            assert second.process.wait(PATIENCE_S) == 2
        with open_transaction(tmp_path / "state") as connection:
            assert RunStore(connection).count_runs() == 1, "on a local disk it is the same machine"
        monkeypatch.setattr(filesystems, "filesystem_type", lambda path, mounts=None: "nfs4")
        with pytest.raises(StoreError, match=r"on another host .*node-a"), open_transaction(tmp_path / "state"):
            pass


def test_pr8_a_lock_file_that_a_dead_process_left_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / LOCK).write_text("process 1 on elsewhere")
    HistoryWriter(tmp_path / "state").close()


def test_st11_an_older_history_is_copied_and_brought_up_to_date(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    old = sqlite3.connect(folder / NAME)
    old.executescript(STEPS[0] + "PRAGMA user_version = 1; INSERT INTO folders (path) VALUES (x'2f61');")
    old.close()
    made = HistoryWriter(folder)
    assert made.set_aside is None
    assert made.connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert made.connection.execute("SELECT count(*) FROM folders").fetchone() == (1,)
    made.close()
    kept = sqlite3.connect(folder / "history.version-1")
    assert kept.execute("PRAGMA user_version").fetchone() == (1,)
    kept.close()


@pytest.mark.parametrize("keep", [DaemonConfig(keep_runs=20), DaemonConfig(keep_B=1 << 20)], ids=["runs", "size"])
def test_st14_the_history_keeps_within_its_bounds(tmp_path: Path, keep: DaemonConfig) -> None:
    made = HistoryWriter(tmp_path / "state")
    with made.transaction() as connection:
        for number in range(500):
            RunStore(connection).add_run(ADVICE, [unit(str(number), str(number))], NOW)
    dropped = HistoryRetention(made, keep).drop_excess_runs()
    runs = RunStore(made.connection)
    assert runs.count_runs() == 500 - dropped
    assert runs.list_entries()[-1].number == 500
    if keep.keep_B is None:
        assert runs.count_runs() == 20
    else:
        assert runs.size_B() <= keep.keep_B
        (pages, size) = (
            made.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
        assert pages * size <= keep.keep_B + (64 << 10), "the file gets smaller"
    made.close()


def test_pl6_what_failed_three_times_is_left_out_by_the_next_daemon_until_it_changes(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "bad", "@hookimpl\ndef advisor_findings(profile):\n    import os; os._exit(0)")
    config = replace(CONFIG, plugins=(folder,))
    for number in range(4):
        profile(tmp_path / "runs" / f"{number}.json")
    Watch(tmp_path, config).once()
    profile(tmp_path / "runs" / "later.json")
    later = Watch(tmp_path, config).once()
    assert any("bad is left out" in text for text in later.runs[0].advice.problems)
    plugin(folder, "bad", "@hookimpl\ndef advisor_findings(profile):\n    return [Finding('', 'k', 's', 'well again')]")
    profile(tmp_path / "runs" / "last.json")
    last = Watch(tmp_path, config).once()
    assert "well again" in [finding.text for run in last.runs for finding in run.advice.findings]


def test_pl6_what_raises_in_three_runs_on_end_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "bad", "@hookimpl\ndef advisor_findings(profile):\n    raise ValueError('no idea')")
    for number in range(5):
        profile(tmp_path / "runs" / f"{number}.json")
    watch = Watch(tmp_path, replace(CONFIG, plugins=(folder,))).once()
    said = [" ".join(run.advice.problems) for run in watch.runs]
    assert ["no idea" in text for text in said] == [True, True, True, False, False]
    assert ["bad is left out" in text for text in said] == [False, False, False, True, True]


def test_st10_who_reads_while_another_writes_waits_no_longer_than_it_takes(tmp_path: Path) -> None:
    made = HistoryWriter(tmp_path / "state")
    with made.transaction() as connection:
        RunStore(connection).add_run(ADVICE, [unit("a")], NOW)
    reader = open_read_only(tmp_path / "state")
    assert reader.execute("PRAGMA busy_timeout").fetchone()[0] >= 1000
    with made.transaction() as connection:
        RunStore(connection).add_run(ADVICE, [unit("b")], NOW)
        assert len(RunStore(reader).list_entries()) == 1
    reader.close()
    made.close()


def test_ho16_names_are_parameters_and_never_sql(tmp_path: Path) -> None:
    evil = "x'); DROP TABLE runs; --"
    watch = Watch(tmp_path)
    profile(watch.root / "a'; DELETE FROM files; --.json", program=evil)
    watch.once()
    assert [entry.program for entry in watch.entries()] == [evil]
    assert watch.counts()["ingested"] == 1


def test_a_history_that_cannot_be_written_once_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, no directory")
    with pytest.raises((StoreError, OSError)):
        Watch(tmp_path).once()


def test_pr11_pr1_a_configuration_that_is_broken_changes_nothing(tmp_path: Path) -> None:
    env = settle(tmp_path)
    with Process("--format", "lines", env=env, cwd=tmp_path) as daemon:
        daemon.until(lambda: bool(daemon.counts()))
        (tmp_path / "config" / "gapwatch" / "gapwatch.toml").write_text("quiet = [[[")
        daemon.process.send_signal(signal.SIGHUP)
        assert daemon.line().startswith("the configuration stays as it was")
        profile(tmp_path / "runs" / "a.json")
        assert daemon.line().startswith("run 1")
        (tmp_path / "config" / "gapwatch" / "gapwatch.toml").write_text(FAST + f'roots = ["{tmp_path}/runs"]\n')
        said = subprocess.run(
            [sys.executable, "-m", "gapwatch", "status", "--format", "json"],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | env,
        )
        assert said.returncode == 0
        assert any("stays as it was" in part.get("text", "") for part in json.loads(said.stdout)["parts"])
