"""Processes of experiments: timed or recorded, in a process group of their own that ends with them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: A process that was asked to end gets so long before it is killed (seconds).
_GRACE_S: Final = 5.0
#: The longest wait that the system takes (seconds).
_LONGEST_S: Final = 1e7
#: So much of the end of a program's output is handed back (bytes).
_TAIL_B: Final = 600


@dataclass(frozen=True, slots=True)
class TimedRun:
    """A run: wall seconds from its start to its end, and its exit status; None where it had to be ended."""

    seconds: float
    code: int | None


def run_timed(
    words: Sequence[str], folder: Path, output: Path, limit_s: float, variables: Mapping[str, str] | None = None
) -> TimedRun:
    """Run a command in ``folder`` with ``variables`` beside our own; what it prints goes to ``output``.

    It has no standard input and no shell. Raises ``AdvisorError`` where it cannot be started.
    """
    environment = {**os.environ, **(variables or {})}
    with output.open("wb") as stream:
        started = time.perf_counter()
        try:
            child = subprocess.Popen(
                words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stream,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise AdvisorError(f"can't start {words[0]}: {why}") from error
        try:
            ended = _await_end(child, max(0.1, limit_s))
        finally:
            seconds = time.perf_counter() - started
            code = child.poll()
            end_group(child)
    if not ended:
        code = None
    return TimedRun(seconds, code)


def _await_end(child: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for a child and return whether it ended in time.

    ``Popen.wait`` with a limit looks every 50 ms only, which would be the resolution of all times.
    """
    try:
        handle = os.pidfd_open(child.pid)
    except OSError:  # older than Linux 5.3
        with suppress(subprocess.TimeoutExpired):
            child.wait(limit_s)
        return child.returncode is not None
    try:
        return bool(select.select([handle], [], [], min(limit_s, _LONGEST_S))[0])
    finally:
        os.close(handle)


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End all processes of the child's group: first they are asked to, then killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(_GRACE_S)
        except (ProcessLookupError, PermissionError):
            return
        except subprocess.TimeoutExpired:
            continue


def record_run(
    words: Sequence[str], folder: Path, target: Path, limit_s: float, variables: Mapping[str, str] | None = None
) -> str:
    """Record a command into ``target`` by ``gapwatch run``; return the end of what it printed.

    Raises ``AdvisorError`` for a command that fails, does not end in time, or leaves no recording.
    """
    advice, output = (target.with_name(f"{target.name}.{kind}") for kind in ("advice", "output"))
    command = [sys.executable, "-m", "gapwatch", "run", "--profile", str(target), "-o", str(advice), "--", *words]
    run = run_timed(command, folder, output, limit_s, variables)
    tail = read_tail(output)
    if run.code is None:
        raise AdvisorError("the budget was spent before the command ended; it was stopped")
    if run.code:
        raise AdvisorError(f"the command failed with status {run.code}; it printed at last: {tail}")
    if not target.exists():
        raise AdvisorError(f"nothing was recorded: {tail}")
    return tail


def read_tail(output: Path) -> str:
    """Return the end of what a program printed."""
    with output.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL_B))
        return stream.read().decode("utf-8", "replace").strip()
