"""What file systems do to the daemon: limits, mounts, errors, servers that hang, very many files."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest
from daemon_process import FAST, UNHURRIED, Process, settle
from daemon_runs import CONFIG, Watch, profile, tried
from patience import PATIENCE_S
from site_folder import plugin
from system_needs import needs

from advisor.daemon import inotify_events, root_scanner, scan
from advisor.daemon.debounce import FileDebouncer
from advisor.history.database import HistoryWriter

if TYPE_CHECKING:
    from pathlib import Path

#: Opens fail with the error that a file says, for paths with "faulty" in them.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int fails(const char *path) {
    if (!strstr(path, "faulty")) return 0;
    FILE *file = fopen(getenv("FAULT"), "r");
    int error = 0;
    if (!file) return 0;
    if (fscanf(file, "%d", &error) != 1) error = 0;
    fclose(file);
    if (error && (file = fopen(getenv("TRIED"), "a"))) {
        fputc('x', file);
        fclose(file);
    }
    errno = error;
    return error != 0;
}
int open64(const char *path, int flags, ...) {
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest);
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    return fails(path) ? -1 : real(path, flags, mode);
}
int open(const char *path, int flags, ...) {
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest);
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    return fails(path) ? -1 : real(path, flags, mode);
}
"""


def test_fs2_what_20000_files_did_to_a_stopped_daemon(tmp_path: Path) -> None:
    """More than the queue of events holds: that they were lost starts a scan, which finds them all.

    Most of the files are empty here; ``benchmarks/daemon_figures.py stopped`` does it with content in all of them.
    """
    env = settle(tmp_path, FAST.replace("scan = 0.3", "scan = 600") + "jobs = 2\n")
    with Process("--format", "lines", env=env, cwd=tmp_path) as daemon:
        profile(tmp_path / "runs" / "first.json")
        assert daemon.line().startswith("run 1")
        daemon.process.send_signal(signal.SIGSTOP)
        for number in range(20_000):
            folder = tmp_path / "runs" / f"d{number % 40}" / "deep"
            if number < 40:
                folder.mkdir(parents=True)
            if number % 400 == 0:
                profile(folder / f"{number}.json")
            else:
                (folder / f"{number}.log").write_text(f"nothing {number}" if number % 40 == 1 else "")
        daemon.process.send_signal(signal.SIGCONT)
        daemon.until(lambda: daemon.counts().get("total") == 20_001)
        daemon.until(lambda: daemon.counts()["waiting"] == 0)
        assert daemon.counts() == {
            "waiting": 0, "ingested": 51, "duplicate": 0, "quarantined": 0, "ignored": 19_950, "total": 20_001,
        }  # fmt: skip


def test_fs3_without_inotify_the_daemon_scans_and_says_so(tmp_path: Path) -> None:
    needs("unshare", "-Ur", "true")
    limited = ["unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_inotify_instances; exec "$@"', "sh"]
    with Process("--format", "lines", before=limited, env=settle(tmp_path), cwd=tmp_path) as daemon:
        assert "is scanned every 0.3 s: " in daemon.line()
        profile(tmp_path / "runs" / "late.json")
        assert daemon.line().startswith("run 1")


@pytest.mark.parametrize("when", ["schedule", "start"])
def test_fs3_too_many_watches_are_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    class Full(inotify_events.Observer):  # type: ignore[misc, valid-type]
        pass

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Full, when, refuse)
    monkeypatch.setattr(inotify_events, "Observer", Full)
    with Watch(tmp_path) as watch:
        profile(watch.root / "a.json")
        watch.until(lambda: len(watch.runs) == 1)
    assert any("too many directories are watched" in text for text in watch.remarks)


def test_fs4_writes_below_an_overlay_are_found_without_an_event(tmp_path: Path) -> None:
    needs("unshare", "-Urm", "true")
    env = settle(tmp_path)
    for name in ("lower", "upper", "work"):
        (tmp_path / name).mkdir()
    mount = "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work runs"
    needs("unshare", "-Urm", "sh", "-c", f"cd '{tmp_path}' && {mount}")
    mounted = ["unshare", "-Urm", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    with Process("--format", "lines", before=mounted, env=env, cwd=tmp_path) as daemon:
        assert "overlay announces no changes" in daemon.line()
        profile(tmp_path / "lower" / "late.json")
        assert daemon.line().startswith("run 1")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that lets opens fail."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc here: apt-get install gcc")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "shim.so", "shim.c", "-ldl"], cwd=folder, check=True)
    return folder / "shim.so"


@pytest.mark.parametrize("error", [116, 5, 13], ids=["ESTALE", "EIO", "EACCES"])
def test_fs8_what_cannot_be_opened_for_now_waits_and_is_read_later(tmp_path: Path, shim: Path, error: int) -> None:
    fault, tried_file = tmp_path / "fault", tmp_path / "cache" / "gapwatch" / "tried"  # where children may write
    fault.write_text(str(error))
    tried_file.parent.mkdir(parents=True)
    tried_file.touch()
    env = settle(tmp_path) | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TRIED": str(tried_file)}
    env |= {"LD_PRELOAD": str(shim), "FAULT": str(fault)}
    profile(tmp_path / "runs" / "faulty.json")
    with Process("--format", "lines", env=env, cwd=tmp_path) as daemon:
        profile(tmp_path / "runs" / "sound.json")
        assert daemon.line().startswith("run 1"), "another file is read all the same"
        daemon.until(lambda: tried_file.stat().st_size >= 3)
        counts = daemon.counts()
        assert (counts["waiting"], counts["quarantined"], counts["ignored"]) == (1, 0, 0)
        fault.unlink()
        assert daemon.line().startswith("run 2")


def test_fs8_a_directory_that_cannot_be_looked_at_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Watch(tmp_path) as watch:
        profile(watch.root / "deep" / "er" / "a.json")
        profile(watch.root / "b.json")
        watch.until(lambda: len(watch.runs) == 2)
        look = scan._scan_folder

        def stale(path: Path) -> object:
            if path.name == "deep":
                raise OSError(116, "Stale file handle")
            return look(path)

        with monkeypatch.context() as patch:
            patch.setattr(scan, "_scan_folder", stale)
            watch.scan_again(3)
            assert watch.counts()["ingested"] == 2
        watch.scan_again()
    assert len(watch.runs) == 2, "and nothing is read again"


def test_fs9_pr2_pr13_status_answers_and_the_watchdog_is_fed_while_a_reader_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        monkeypatch.chdir(tmp_path)
        manager.bind("notify")
        manager.settimeout(PATIENCE_S)
        env = settle(tmp_path, UNHURRIED) | {"NOTIFY_SOCKET": str(address)}
        with Process("--format", "lines", env=env, cwd=tmp_path) as daemon:
            assert manager.recv(100) == b"READY=1"
            profile(tmp_path / "runs" / "one.json")
            assert daemon.line().startswith("run 1")
            (reader,) = daemon.children()
            reader.suspend()
            profile(tmp_path / "runs" / "two.json")
            daemon.until(lambda: daemon.counts()["waiting"] == 1)
            manager.setblocking(False)
            with suppress(BlockingIOError):
                while manager.recv(100):
                    pass  # from before the reader was suspended
            manager.settimeout(PATIENCE_S)
            assert [manager.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3, "it goes on being fed"
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(PATIENCE_S) == 0
            said = {manager.recv(100)}
            while b"STOPPING=1" not in said:
                said.add(manager.recv(100))
            assert not psutil.pid_exists(reader.pid) or reader.status() == psutil.STATUS_ZOMBIE


def test_fs9_a_root_that_hangs_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hung, fine = tmp_path / "hung", tmp_path / "runs"
    hung.mkdir()
    walk = scan.walk_folders

    def hanging(root: Path, without: list[Path]) -> object:
        if root == hung:
            time.sleep(3600)
        return walk(root, without)

    monkeypatch.setattr(root_scanner.scan, "walk_folders", hanging)
    monkeypatch.setattr("advisor.daemon.daemon._HANGS_S", 0.5)
    watch = Watch(tmp_path)
    watch.daemon._config = replace(CONFIG, roots=(hung, fine))
    with watch:
        profile(fine / "a.json")
        watch.until(lambda: len(watch.runs) == 1)
        watch.until(lambda: any("has not answered" in text for text in watch.remarks))


def test_fs12_a_file_that_is_deleted_and_made_again_is_new(tmp_path: Path) -> None:
    with Watch(tmp_path) as watch:
        path = profile(watch.root / "a.json", run="1")
        watch.until(lambda: len(watch.runs) == 1)
        path.unlink()
        profile(watch.root / "b.json", run="2")
        watch.until(lambda: len(watch.runs) == 2)
        profile(path, run="3")
        watch.until(lambda: len(watch.runs) == 3)
    assert sorted(entry.run for entry in watch.entries()) == ["2", "3"]


def test_fs16_what_may_not_be_read_waits_until_it_may(tmp_path: Path) -> None:
    before: list[str] = []
    if os.geteuid() == 0:
        before = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
        needs(*before, "true")
    path = profile(tmp_path / "runs" / "a.json")
    path.chmod(0)
    with Process("--format", "lines", before=before, env=settle(tmp_path), cwd=tmp_path) as daemon:
        daemon.until(lambda: daemon.counts().get("waiting") == 1)
        daemon.until(lambda: tried(tmp_path / "state", "a.json") is not None)
        before_that = daemon.commits()
        daemon.until(lambda: daemon.commits() >= before_that + 3)
        assert daemon.counts()["quarantined"] == 0
        path.chmod(0o600)
        assert daemon.line().startswith("run 1")


def test_fs17_what_finds_no_room_to_wait_is_read_in_its_turn(tmp_path: Path) -> None:
    """A million files at the start take the memory of so many as wait at a time."""
    watch = Watch(tmp_path)
    watch.daemon._settling.room = 6
    for number in range(30):
        profile(watch.root / f"{number % 7}" / f"{number}.json")
    watch.once()
    assert watch.counts()["ingested"] == 30
    assert len(watch.daemon._settling) == 0


def test_fs17_no_more_files_settle_than_there_is_room_for(tmp_path: Path) -> None:
    writer, settling = HistoryWriter(tmp_path / "state"), FileDebouncer(1.0, room=50)
    (tmp_path / "runs").mkdir()
    for number in range(200):
        (tmp_path / "runs" / f"{number}").touch()
    looker = root_scanner.RootScanner(tmp_path / "runs", writer, settling, tmp_path / "state", lambda: None)
    looker._scan_root()
    assert (len(settling), settling.overflowed) == (50, True)
    looker.stop_scanning()
    writer.close()


def test_pc7_an_empty_file_is_ignored_until_it_has_content(tmp_path: Path) -> None:
    with Watch(tmp_path) as watch:
        (watch.root / "a.json").touch()
        watch.until(lambda: watch.counts()["ignored"] == 1)
        profile(watch.root / "a.json")
        watch.until(lambda: len(watch.runs) == 1)
    assert watch.counts()["ignored"] == 0


def test_pc8_the_content_says_the_format_and_not_the_name(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    profile(watch.root / "profile.xml")
    (watch.root / "trace.otf2").write_text("no trace at all")
    assert [one.path.name for one in watch.once().runs] == ["profile.xml"]
    assert watch.counts()["ignored"] + watch.counts()["quarantined"] == 1


def test_pc13_what_no_version_could_read_is_tried_again_by_the_next(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    profile(watch.root / "a.json", schema="gapwatch/profile/99")
    assert watch.once().counts()["quarantined"] == 1
    assert Watch(tmp_path).once().settled == [], "the same version does not try again"
    folder = tmp_path / "plugins"
    folder.mkdir()
    plugin(folder, "more", "@hookimpl\ndef advisor_findings(profile): return []")
    newer = Watch(tmp_path, replace(CONFIG, plugins=(folder,))).once()
    assert [one.state for one in newer.settled] == ["quarantined"], "it was tried"


def test_pc15_what_is_overwritten_while_it_is_read_ends_with_what_lies_there(tmp_path: Path) -> None:
    with Watch(tmp_path) as watch:
        for number in range(25):
            profile(watch.root / "a.json", run=str(number))
            time.sleep(0.08)
        watch.until(lambda: bool(watch.entries()) and watch.entries()[0].run == "24")
        watch.until(lambda: watch.counts()["waiting"] == 0)
    assert len(watch.entries()) == 1
