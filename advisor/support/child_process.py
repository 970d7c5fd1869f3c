"""Runs other programs: no shell, a limit on time, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def run_program(
    words: Sequence[str], limit_s: float, *, folder: Path | None = None, extra: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Return exit code and output of a program; -1 and what happened where it does not start or end in time."""
    try:
        process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **(extra or {})},
            start_new_session=True,
        )
    except OSError as error:
        return -1, f"{words[0]}: {error.strerror}"
    with process:
        try:
            said = process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return -1, f"{words[0]} did not end within {limit_s:.0f} s"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said.decode("utf-8", "replace")
