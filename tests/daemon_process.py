"""``gapwatch watch`` as a process of its own, over ``runs`` here with the history in ``state``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil
from patience import PATIENCE_S, wait_until

from advisor.history.database import open_read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Settings with which everything happens soon.
FAST = "scan = 0.3\npoll = 0.3\nquiet = 0.1\npatience = 0.5\nnice = 0\nmax_load = inf\n"
#: The same, and a reader that hangs is given up after longer than any test waits.
UNHURRIED = FAST + f"task = {6 * PATIENCE_S}\n"


def settle(top: Path, settings: str = FAST) -> dict[str, str]:
    """Make the directories of a daemon below ``top``; return the variables that lead it there."""
    for name in ("runs", "config/gapwatch"):
        (top / name).mkdir(parents=True, exist_ok=True)
    (top / "config" / "gapwatch" / "gapwatch.toml").write_text(settings)
    return {"XDG_CONFIG_HOME": str(top / "config"), "GAPWATCH_STATE": str(top / "state")}


class Process:
    """The daemon in a directory; ``before`` is what starts it, such as ``unshare``."""

    def __init__(
        self, *arguments: str, before: Sequence[str] = (), env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        command = [*before, sys.executable, "-m", "gapwatch", "watch", "runs", *arguments]
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._env, cwd=cwd
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def line(self) -> str:
        """The next line that it writes."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def children(self) -> list[psutil.Process]:
        """The children that read."""
        return psutil.Process(self.process.pid).children()

    def counts(self) -> dict[str, int]:
        """The files by state, as ``gapwatch status`` tells them; nothing before there is a history."""
        command = [sys.executable, "-m", "gapwatch", "status", "--format", "json"]
        made = subprocess.run(command, capture_output=True, text=True, env=self._env, cwd=self._cwd, check=False)
        return dict(json.loads(made.stdout)["parts"][1]["rows"]) if made.returncode == 0 else {}

    def commits(self) -> int:
        """How often something was written into the history."""
        with closing(open_read_only(Path(self._env["GAPWATCH_STATE"]))) as connection:
            return int(connection.execute("SELECT value FROM meta WHERE name = 'commits'").fetchone()[0])

    def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something is so."""
        wait_until(happened, self.counts)
