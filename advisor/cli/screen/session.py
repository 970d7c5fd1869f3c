"""The screen and the daemon beside it: a process of its own, so that neither keeps the other waiting.

The daemon writes a line for each event; what it read is in the history, which the screen shows. Where another process
writes to the history already, such as a daemon of systemd, the screen shows what that one does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from advisor.cli.screen.actions import ScreenActions
from advisor.cli.screen.app import DaemonMessage, WatchApp
from advisor.history.program_views import HistoryViews
from advisor.support.containment import die_with_parent

if TYPE_CHECKING:
    import argparse

    from advisor.history.location import HistoryLocation
    from advisor.output.page import Page

#: A daemon that was asked to end is killed after so long (seconds).
_ENDING_S: Final = 10.0


def build_daemon_command(args: argparse.Namespace, state: HistoryLocation) -> list[str]:
    """Return the command of the daemon: the same directories and settings, a line for each event."""
    command = [sys.executable, "-m", "gapwatch", "watch", *map(str, args.roots), "--format", "lines"]
    command += ["--state", str(state)]
    for option in ("config", "jobs", "machine"):
        value = getattr(args, option)
        command += [] if value is None else [f"--{option}", str(value)]
    return command


def run_screen(command: Sequence[str], roots: Sequence[Path], state: HistoryLocation, page: Page) -> int:
    """Show the history in ``state`` while ``command`` reads into it; return the exit code once the user ends it."""
    daemon = _DaemonProcess(command)
    app = WatchApp(HistoryViews(state), ScreenActions(state), page, [*map(_shorten_root, roots)], daemon.report_to)
    try:
        signal.signal(signal.SIGTERM, lambda *_: _end_app(app))
        signal.signal(signal.SIGHUP, lambda *_: _end_app(app))
        app.run()
    finally:
        daemon.stop()
    return app.return_code or 0


def _shorten_root(root: Path) -> str:
    """Return a directory as it is called from here, where it lies below."""
    here = Path.cwd()
    return str(root.relative_to(here)) if here in root.parents else str(root)


def _end_app(app: WatchApp) -> None:
    """End the screen from a signal handler."""
    app.call_later(app.exit)


class _DaemonProcess:
    """The daemon, tied to this process, and the thread that hands its lines to the screen."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            encoding="utf-8", errors="replace", env=os.environ | {"PYTHONIOENCODING": "utf-8"},
            start_new_session=True, preexec_fn=die_with_parent,
        )  # fmt: skip
        self._stopping = False
        self._thread: Thread | None = None

    def report_to(self, app: WatchApp) -> None:
        """Hand every line to the screen from now on."""
        self._thread = Thread(target=self._read_lines, args=(app,), daemon=True)
        self._thread.start()

    def _read_lines(self, app: WatchApp) -> None:
        last = ""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            last = line.strip().removeprefix("gapwatch: ") or last
            app.post_message(DaemonMessage(last))
        code = self._process.wait()
        if not self._stopping:
            reason = last or f"it ended with status {code}"
            app.post_message(DaemonMessage(f"this gapwatch reads nothing: {reason}; shown is the history", ended=True))

    def stop(self) -> None:
        """Ask the daemon to end, and wait."""
        self._stopping = True
        self._process.terminate()
        try:
            self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._thread is not None:
            self._thread.join(_ENDING_S)
