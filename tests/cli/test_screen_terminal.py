"""The screen to work with in a real terminal, by tmux: builds arrive, keys are pressed, the terminal is resized."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
from command_line import environment
from daemon_process import settle
from daemon_runs import profile
from patience import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("textual", reason="there is no Textual here: pip install textual")
if shutil.which("tmux") is None:
    pytest.skip("there is no tmux here: apt-get install tmux", allow_module_level=True)

GOLDEN = Path(__file__).parents[1] / "golden"
#: Seconds that a screen is given to be drawn to the last scroll bar, once its texts stand there.
DRAWN_WITHIN_S = 60.0


class Tmux:
    """A terminal of tmux with a command in it; ``folder`` is where the command runs."""

    def __init__(self, command: str, folder: Path, env: dict[str, str], size: tuple[int, int]) -> None:
        self._socket = f"gapwatch-{uuid.uuid4().hex}"
        self._env = env
        columns, lines = map(str, size)
        settings = ["-f", "/dev/null", "new-session", "-d", "-s", "screen", "-x", columns, "-y", lines]
        self._call(*settings, "-c", str(folder), f"{command}; echo ended with status $?; exec cat")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._call("kill-server")

    def _call(self, *words: str) -> str:
        command = ["tmux", "-u", "-L", self._socket, *words]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, check=True).stdout

    def text(self) -> str:
        """What stands on the terminal."""
        lines = self._call("capture-pane", "-p", "-t", "screen").split("\n")
        return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux gives them."""
        self._call("send-keys", "-t", "screen", *keys)

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self._call("resize-window", "-t", "screen", "-x", str(columns), "-y", str(lines))

    def until(self, *texts: str, gone: str | None = None) -> str:
        """Wait until all of these stand on the terminal, and ``gone`` does not; return what does."""
        return self._until(lambda shown: all(text in shown for text in texts) and (gone is None or gone not in shown))

    def until_same(self, name: str, *texts: str, gone: str | None = None) -> str:
        """Wait as ``until`` does, then for the golden file of that name; return what stands there where it never comes.

        Textual draws a screen in several steps, scroll bars last: texts that stand there don't tell that all does.
        """
        self.until(*texts, gone=gone)
        whole = (GOLDEN / name).read_text() if (GOLDEN / name).is_file() else ""
        with suppress(AssertionError):
            return self._until(lambda shown: shown == whole, DRAWN_WITHIN_S)
        return self.text()

    def text_at_rest(self) -> str:
        """What stands on the terminal once it has not changed for a second."""
        seen = [""] * 10

        def look() -> bool:
            time.sleep(0.1)
            seen.append(self.text())
            return len(set(seen[-10:])) == 1

        wait_until(look, self.text)
        return seen[-1]

    def _until(self, holds: Callable[[str], bool], patience_s: float = PATIENCE_S) -> str:
        shown = ""

        def look() -> bool:
            nonlocal shown
            shown = self.text()
            return holds(shown)

        wait_until(look, lambda: shown, patience_s)
        return shown


def test_a_session_from_the_first_build_to_the_end(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    env = environment(tmp_path, TERM="xterm-256color", **settle(tmp_path))
    command = f"{sys.executable} -m gapwatch watch runs"
    with Tmux(command, tmp_path, env, (100, 36)) as terminal:
        terminal.until("Waiting for the first profile", "? Help")
        for build, seconds in (("v1", 47.0), ("v2", 48.0), ("v3", 52.0)):
            profile(tmp_path / "runs" / f"{build}.json", build=build, actual_s=seconds)
            terminal.until(f"fig4 {build}: {seconds:.1f} s")
        profile(tmp_path / "runs" / "other.json", build="v1", program="other")
        terminal.until("other", "4 ingested; 1 new item", "· first")
        terminal.press("Down", "Up")
        terminal.until("other v1: 47.0 s")
        terminal.press("Down")
        name = "tmux-programs.txt"
        golden(terminal.until_same(name, "fig4 v3: 52.0 s", "since v2: run time +4.00 s", "? no repeat"), name)
        terminal.press("Enter")
        wait_until(lambda: terminal.press("Enter") or "a Acknowledge" in terminal.text(), terminal.text)
        name = "tmux-item.txt"
        golden(terminal.until_same(name, "A-35", "phase.rank_imbalance", "a Acknowledge"), name)
        terminal.press("a")
        terminal.until("region 2: acknowledged", "a Acknowledge")
        terminal.press("Escape")
        terminal.until("acknowledged  1 Decompose", "fig4 v3: 52.0 s")
        terminal.press("s")
        terminal.until("Suppress this item", "Enter goes to the day")
        terminal.press("known", "Enter")
        terminal.until("known", "Enter suppresses the item")
        terminal.press("2999-01-31", "Enter")
        name, texts = "tmux-suppressed.txt", ("suppressed until 2999-01-31", "suppressed    1")
        golden(terminal.until_same(name, *texts, gone="Suppress this item"), name)
        terminal.press("c")
        name = "tmux-compared.txt"
        golden(terminal.until_same(name, "fig4: from v2 (1 run) to v3 (1 run)", "esc Back"), name)
        terminal.press("Escape")
        terminal.until("fig4 v3: 52.0 s", "suppressed    1", "q Quit", gone="more than noise")
        wide = terminal.text_at_rest()
        terminal.resize(60, 20)
        name = "tmux-narrow.txt"
        narrow = terminal.until_same(name, "fig4 v3: 52.0 s", "IPCO: all work", " 3.00 s", gone="other")
        assert max(map(len, narrow.split("\n"))) <= 60
        golden(narrow, name)
        terminal.press("Escape")
        terminal.until("other", "? no repeat", gone="fig4 v3: 52.0 s")
        terminal.resize(100, 36)
        wait_until(lambda: terminal.text() == wide, lambda: f"{terminal.text()}is not\n{wide}")
        terminal.resize(120, 40)
        name = "tmux-beside.txt"
        golden(terminal.until_same(name, "fig4 v3: 52.0 s", "suppressed    1", "other", "│"), name)
        terminal.press("q")
        terminal.until("ended with status 0")


def test_beside_another_daemon_the_screen_shows_its_history(tmp_path: Path) -> None:
    from advisor.history.database import HistoryWriter

    env = environment(tmp_path, TERM="xterm-256color", **settle(tmp_path))
    writer = HistoryWriter(tmp_path / "state")
    try:
        with Tmux(f"{sys.executable} -m gapwatch watch runs", tmp_path, env, (120, 30)) as terminal:
            terminal.until("! this gapwatch reads nothing:", "shown is the history")
            terminal.press("C-c")
            terminal.until("ended with status 0")
    finally:
        writer.close()
