"""Running the program under test once: no shell, a time limit, and nothing left behind."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError
from advisor_coupling.cases import SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from advisor_coupling.manifest import Measured

#: So much of what a program prints is searched for numbers, the end of it.
_OUTPUT: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run, and where."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    time_limit_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run took by the clock, and what it printed on both streams."""

    seconds: float
    printed: str


def run(launch: Launch, manifest: Path) -> Outcome:
    """Return the outcome; ``InputError`` where the program can't be started, fails, or takes too long."""
    with tempfile.TemporaryFile() as stream:
        start = time.perf_counter()
        try:
            process = subprocess.Popen(
                launch.words, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, cwd=launch.directory,
                env={**os.environ, **launch.environment}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise InputError(manifest, f"can't run {shown(launch.words)}: {error.strerror}") from error
        try:
            status = process.wait(launch.time_limit_s)
        except subprocess.TimeoutExpired:
            reason = f"{shown(launch.words)} took longer than time_limit, {launch.time_limit_s:g} s"
            raise InputError(manifest, reason) from None
        finally:
            _end(process)
        seconds = time.perf_counter() - start
        printed = _printed(stream.fileno())
    if status:
        raise InputError(manifest, f"{shown(launch.words)} {_ended(status)}; it printed: {_last(printed)}")
    return Outcome(seconds, printed)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program and what it started, and wait for it."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _printed(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, _OUTPUT, max(0, size - _OUTPUT)).decode("utf-8", "replace")


def _ended(status: int) -> str:
    return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"


def _last(printed: str) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return " / ".join(lines[-3:])[-300:] or "nothing"


def shown(words: Sequence[str]) -> str:
    """Return the command as one would type it, cut where it is long."""
    text = shlex.join(words)
    return text if len(text) <= 200 else f"{text[:197]}..."


def values(outcome: Outcome, metrics: Sequence[Measured], launch: Launch, manifest: Path) -> dict[str, float]:
    """Return the metrics of a run: what it printed, and the clock's seconds unless it prints its own."""
    found = {SECONDS: outcome.seconds}
    for metric in metrics:
        numbers = metric.prints.found_in(outcome.printed)
        if not numbers:
            reason = (
                f"{shown(launch.words)} printed nothing like '{metric.prints}'; it printed: {_last(outcome.printed)}"
            )
            raise InputError(manifest, reason, f"{metric.mark.line}:{metric.mark.column}")
        pick = {"last": numbers[-1], "max": max(numbers), "sum": sum(numbers)}
        found[str(metric.name)] = pick[metric.take]
    return found
