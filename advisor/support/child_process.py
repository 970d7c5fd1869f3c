"""Runs other programs: no shell, no input, a limit on time, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from advisor.model.record_class import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


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


def run_child(
    words: Sequence[str],
    limit_s: float,
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


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a program that leads a session, and what it started in the background; wait for it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
