"""Runs other programs: no shell, no input, a limit on time, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from advisor.support.descriptors import LONGEST_S, has_input

#: A program that was asked to end gets so long before it is killed (seconds).
GRACE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ChildResult:
    """What a program wrote and the status it ended with; ``failure`` says why there is none."""

    status: int | None
    output: bytes = b""
    errors: bytes = b""
    failure: str = ""

    @property
    def text(self) -> str:
        """The output as text, whatever it holds."""
        return self.output.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """What it wrote as errors, as text."""
        return self.errors.decode("utf-8", "replace")


def name_signal(number: int) -> str:
    """Return the name of a signal: ``SIGKILL``, or ``signal 40`` if it has none, as most real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run_child(
    words: Sequence[str],
    limit_s: float | None,
    *,
    folder: Path | None = None,
    extra: Mapping[str, str] | None = None,
    merged: bool = False,
) -> ChildResult:
    """Return what a program wrote and how it ended; one that takes longer is ended with all that it started.

    ``extra`` are variables of its environment beside those of this process; with ``merged`` its errors stand in its
    output.
    """
    try:
        process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            cwd=folder,
            env={**os.environ, **(extra or {})},
            start_new_session=True,
        )
    except OSError as error:
        return ChildResult(None, failure=f"{words[0]}: {error.strerror}")
    with process:
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            end_group(process)
            return ChildResult(None, failure=f"{words[0]} did not end within {limit_s:g} s")
        except BaseException:
            end_group(process)
            raise
    return ChildResult(process.returncode, output or b"", errors or b"")


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """How a program ran: wall seconds from its start to its end, and its status; None where it had to be ended."""

    seconds: float
    status: int | None


def run_program(
    words: Sequence[str],
    output: IO[bytes],
    limit_s: float | None,
    *,
    folder: Path | None = None,
    extra: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
) -> ProgramRun:
    """Run a user's program, all that it prints into ``output``, and return how it ended.

    One that takes longer than ``limit_s`` is asked to end, then killed; so is what it leaves in the background.
    ``OSError`` and ``ValueError`` where it can't be started.
    """
    started = time.perf_counter()
    process = subprocess.Popen(
        list(words), stdin=stdin, stdout=output, stderr=subprocess.STDOUT, cwd=folder,
        env={**os.environ, **(extra or {})}, start_new_session=True,
    )  # fmt: skip
    try:
        ended = _await_end(process, LONGEST_S if limit_s is None else limit_s)
        seconds = time.perf_counter() - started
        status = process.poll() if ended else None
    finally:
        end_group(process, GRACE_S)
    return ProgramRun(seconds, status)


def _await_end(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for a program and return whether it ended in time.

    ``Popen.wait`` with a limit looks every 50 ms only, which would be the resolution of all times.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:  # older than Linux 5.3
        with suppress(subprocess.TimeoutExpired):
            process.wait(limit_s)
        return process.returncode is not None
    try:
        return has_input(handle, limit_s)
    finally:
        os.close(handle)


def end_group(process: subprocess.Popen[bytes], grace_s: float = 0.0) -> None:
    """End what is left of a program that leads a session, and what it started in the background; wait for it.

    With ``grace_s`` it is asked to end first, and killed if it takes longer than that.
    """
    if grace_s:
        with suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            if process.poll() is None:
                process.wait(grace_s)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.poll() is None:
        process.wait()


def read_tail(output: IO[bytes], most: int) -> str:
    """Return the last bytes of a program's output in a file."""
    size = os.fstat(output.fileno()).st_size
    return os.pread(output.fileno(), most, max(0, size - most)).decode("utf-8", "replace")
