"""Measuring a command for an agent: recorded runs in child processes, within a budget, into the history."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.collect import builds, sidecar
from advisor.collect.binaries.executables import find_program
from advisor.daemon.child_tasks import hash_content
from advisor.experiments.processes import record_run
from advisor.history.access import open_writer
from advisor.history.run_storage import store_run
from advisor.history.runs import ProfileUnit
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from advisor.agents.workplace import Workplace
    from advisor.model.records import Advice


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
            stopped = f"the budget ran out after {len(runs)} of {repeats} runs"
            break
        target = top / f"run-{number + 1}"
        output = record_run(words, folder, target, until - time.monotonic())
        runs.append(_store(workplace, target, find_program(words, folder)))
    return Measurement(name, tuple(runs), stopped, output)


def _store(workplace: Workplace, target: Path, binary: Path | None) -> MeasuredRun:
    """Advise on a recording and add it to the history."""
    study = workplace.study_run(target, binary)
    unit = ProfileUnit(target, study.advice.profile.reader, hash_content(target))
    writer = open_writer(workplace.state, watches=False)
    try:
        with writer.transaction() as connection:
            number = store_run(connection, study.advice, [unit], datetime.now(UTC))
    finally:
        writer.close()
    return MeasuredRun(number, study.advice)
