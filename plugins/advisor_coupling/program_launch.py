"""Running the program under test once: no shell, a time limit, and nothing left behind."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError
from advisor.support import child_process
from advisor_coupling.cases import SECONDS

if TYPE_CHECKING:
    from advisor_coupling.manifest import PrintedMetric

#: So much of what a program prints is searched for numbers, the end of it.
_OUTPUT: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class ProgramLaunch:
    """What to run, and where."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    time_limit_s: float


@dataclass(frozen=True, slots=True)
class LaunchOutcome:
    """What a run took by the clock, and what it printed on both streams."""

    seconds: float
    printed: str


def run_program(launch: ProgramLaunch, manifest: Path) -> LaunchOutcome:
    """Return the outcome; ``InputError`` where the program can't be started, fails, or takes too long."""
    with tempfile.TemporaryFile() as stream:
        try:
            run = child_process.run_program(
                launch.words, stream, launch.time_limit_s, folder=launch.directory, extra=launch.environment
            )
        except OSError as error:
            raise InputError(manifest, f"can't run {format_command(launch.words)}: {error.strerror}") from error
        printed = child_process.read_tail(stream, _OUTPUT)
    if run.status is None:
        reason = f"{format_command(launch.words)} took longer than time_limit, {launch.time_limit_s:g} s"
        raise InputError(manifest, reason)
    if run.status:
        raise InputError(
            manifest,
            f"{format_command(launch.words)} {_describe_status(run.status)}; it printed: {_last_lines(printed)}",
        )
    return LaunchOutcome(run.seconds, printed)


def _describe_status(status: int) -> str:
    return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"


def _last_lines(printed: str) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return " / ".join(lines[-3:])[-300:] or "nothing"


def format_command(words: Sequence[str]) -> str:
    """Return the command as one would type it, cut where it is long."""
    text = shlex.join(words)
    return text if len(text) <= 200 else f"{text[:197]}..."


def extract_metrics(
    outcome: LaunchOutcome, metrics: Sequence[PrintedMetric], launch: ProgramLaunch, manifest: Path
) -> dict[str, float]:
    """Return the metrics of a run: what it printed, and the clock's seconds unless it prints its own."""
    found = {SECONDS: outcome.seconds}
    for metric in metrics:
        numbers = metric.prints.find_values(outcome.printed)
        if not numbers:
            printed = _last_lines(outcome.printed)
            reason = f"{format_command(launch.words)} printed nothing like '{metric.prints}'; it printed: {printed}"
            raise InputError(manifest, reason, f"{metric.mark.line}:{metric.mark.column}")
        pick = {"last": numbers[-1], "max": max(numbers), "sum": sum(numbers)}
        found[str(metric.name)] = pick[metric.take]
    return found
