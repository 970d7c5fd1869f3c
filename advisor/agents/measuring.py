"""Measuring a command for an agent: recorded runs in child processes, within a budget, into the history."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from advisor.collect import builds, sidecar
from advisor.daemon.child_tasks import hash_content
from advisor.history.database import HistoryWriter
from advisor.history.run_storage import store_run
from advisor.history.runs import ProfileUnit
from advisor.model.errors import AdvisorError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.agents.workplace import Workplace
    from advisor.model.records import Advice

#: A child that was asked to end gets so long before it is killed (seconds).
_GRACE_S: Final = 5.0
#: So much of the end of a program's output is handed back (bytes).
_TAIL_B: Final = 600


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run in the history: its number and the advice on it."""

    number: int
    advice: Advice


@dataclass(frozen=True, slots=True)
class Measurement:
    """The runs of one command under one build; ``stopped`` says why there are fewer than were asked for."""

    build: str
    runs: tuple[MeasuredRun, ...]
    stopped: str | None
    output: str


def measure_command(
    workplace: Workplace, words: Sequence[str], folder: Path, build: str | None, repeats: int, budget_s: float
) -> Measurement:
    """Run an allowed command in ``folder`` so many times, recorded, and store each run; raises ``AdvisorError``.

    No shell is between. What still runs when the budget is spent is ended with all its children.
    """
    workplace.check_command(words)
    name = build or builds.identify_build(folder)
    if name is None:
        raise UsageError("the directory is in no git repository: name the build")
    until = time.monotonic() + min(budget_s, workplace.budget_s)
    top = workplace.recordings / secrets.token_hex(6)
    top.mkdir(parents=True, mode=0o700)
    sidecar.write_sidecar(top, {"build": name}, {})
    runs: list[MeasuredRun] = []
    stopped, output = None, ""
    for number in range(repeats):
        if runs and time.monotonic() + runs[-1].advice.profile.actual_s > until:
            stopped = f"the budget was spent after {len(runs)} of {repeats} runs"
            break
        target = top / f"run-{number + 1}"
        output = _record(words, folder, target, until)
        runs.append(_store(workplace, target))
    return Measurement(name, tuple(runs), stopped, output)


def _record(words: Sequence[str], folder: Path, target: Path, until: float) -> str:
    """Run ``gapwatch run`` on the command and return the end of what it printed; ``AdvisorError`` if it failed."""
    advice = target.with_name(f"{target.name}.advice")
    command = [sys.executable, "-m", "gapwatch", "run", "--profile", str(target), "-o", str(advice), "--", *words]
    with tempfile.TemporaryFile() as output:
        try:
            child = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise AdvisorError(f"can't start the command: {error.strerror}") from error
        code = _await_child(child, until)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - _TAIL_B))
        tail = output.read().decode("utf-8", "replace").strip()
    if code is None:
        raise AdvisorError("the budget was spent before the command ended; it was stopped")
    if code:
        raise AdvisorError(f"the command failed with status {code}; it printed at last: {tail}")
    return tail


def _await_child(child: subprocess.Popen[bytes], until: float) -> int | None:
    """Return the exit status of a child, None where it had to be ended; its process group is gone afterwards."""
    try:
        return child.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
                child.wait(_GRACE_S)
            except (ProcessLookupError, PermissionError):
                break
            except subprocess.TimeoutExpired:
                continue


def _store(workplace: Workplace, target: Path) -> MeasuredRun:
    """Advise on a recording and add it to the history."""
    if not target.exists():
        raise AdvisorError("nothing was recorded")
    study = workplace.study_run(target)
    unit = ProfileUnit(target, study.advice.profile.reader, hash_content(target))
    writer = HistoryWriter(workplace.state)
    try:
        with writer.transaction() as connection:
            number = store_run(connection, study.advice, [unit], datetime.now(UTC))
    finally:
        writer.close()
    return MeasuredRun(number, study.advice)
