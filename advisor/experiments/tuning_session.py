"""One command tuned from beginning to end: what to try, by a recorded run, then the runs, then the history."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from advisor.collect import builds, sidecar
from advisor.collect.binaries.executables import find_program
from advisor.experiments import candidates
from advisor.experiments.build_trees import find_sources
from advisor.experiments.processes import record_run
from advisor.experiments.sources import SourceFiles
from advisor.experiments.trials import Check, TrialRunner, identify_work
from advisor.experiments.tuned_history import store_tuned_run
from advisor.experiments.tuning import REFERENCE, TuningResult, tune_command
from advisor.model.errors import AdvisorError, UsageError
from advisor.model.lists import join_names
from advisor.support.launchers import find_rank_option

if TYPE_CHECKING:
    from advisor.experiments.candidates import ProgramFacts
    from advisor.history.location import HistoryLocation
    from advisor.model.records import Advice

#: Settings that are tried: with the two starts of the first block that is eight runs.
_SETTINGS: Final = 6
#: So many lines of results that are not compared are named.
_LINES: Final = 8


class Study(Protocol):
    """Reads and judges a recording."""

    def __call__(self, path: Path, binary: Path | None = None, /) -> Advice:
        """Return the advice on the recording; ``binary`` is the program's file, where the recording names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRequest:
    """What to tune, and within which limits.

    ``words`` run in ``folder``. ``build`` is a command with ``{flags}`` in it. ``advice`` is a recording that says what
    to try; without one the command is recorded first. Builds and runs are kept in ``session``, by default below the
    history, and taken up from there unless ``again`` is set. ``outputs`` are files of the caller beside the sources.
    """

    words: tuple[str, ...]
    folder: Path
    runs: int
    budget_s: float
    build: str | None = None
    check: Check = field(default_factory=Check)
    fast_math: bool = False
    advice: Path | None = None
    session: Path | None = None
    again: bool = False
    outputs: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class TunedCommand:
    """The outcome, the directory of the builds and runs, and what was not compared or not tried, and why."""

    request: TuningRequest
    result: TuningResult
    session: Path
    limits: tuple[str, ...]


def run_tuning(
    request: TuningRequest, history: HistoryLocation, sessions: Path, study: Study, tell: Callable[[str], None]
) -> TunedCommand:
    """Tune a command; what it won is noted in the history. Sessions that the request does not name lie in ``sessions``.

    ``tell`` is told of each run. Raises ``UsageError`` for a request that cannot be met, and ``AdvisorError`` where the
    command as it is fails or the budget ends before anything is known.
    """
    if not request.words or not request.words[0]:
        raise UsageError("no program given")
    if request.build is not None and "{flags}" not in request.build:
        raise UsageError("--build says nowhere where the flags go: write {flags}")
    session, sources = _open_session(request, sessions)
    until = time.monotonic() + request.budget_s
    with sources.watch_run() if sources is not None else nullcontext():
        advice = _advise(request, session, study, tell)
    checked = request.check.command is not None or request.check.file is not None
    rebuilds = sources is not None
    facts = candidates.describe_program(request.words, request.folder, advice, rebuilds=rebuilds, checked=checked)
    most = max(2, min(_SETTINGS, request.runs // 3))
    settings = candidates.propose_settings(facts, advice, fast_math=request.fast_math, most=most)
    runner = TrialRunner(request.words, request.folder, session, request.build, request.check, sources)
    runs = request.runs
    if request.check.file is not None:
        runs -= 1
        first = runner.run_trial(REFERENCE, until - time.monotonic())
        if first.failure is not None:
            raise AdvisorError(f"the command as it is fails: {first.failure}")
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise AdvisorError("the budget ran out before anything could be tried; increase --budget")
    result = tune_command(runner, settings, runs, left_s, tell)
    if result is None:
        raise AdvisorError("the command as it is fails, or its --check does; mend that first")
    if result.best is not None and advice is not None and request.advice is None:
        try:
            recorded = session / "recorded"
            store_tuned_run(runner, advice, result.best.setting, recorded, history, study, request.budget_s)
        except AdvisorError as error:
            tell(f"the gain is not in the history: {error}")
    return TunedCommand(request, result, session, _describe_limits(facts, runner))


def _open_session(request: TuningRequest, sessions: Path) -> tuple[Path, SourceFiles | None]:
    """Return the directory of this command's runs, emptied if it is to begin anew, and the files that its builds read.

    Runs of another program, build or environment are none of this one, nor are those of sources that changed since.
    Raises ``UsageError`` for a directory of these.
    """
    check = request.check
    key = identify_work(request.words, request.folder, request.build, check.command, check.file, check.tolerance)
    session = request.session or sessions / key[:16]
    if request.again and session.exists():
        if not (session / "key").exists():
            raise UsageError(f"{session} was not written by gapwatch tune; remove it yourself")
        shutil.rmtree(session)
    try:
        session.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{session}: {error.strerror}; name a directory for the runs with --session") from error
    stated = session / "key"
    if stated.exists() and stated.read_text("utf-8") != key:
        raise UsageError(
            f"{session} holds runs of another command, program or environment; --again starts over, or name another one"
        )
    stated.write_text(key, "utf-8")
    place = find_sources(request.words, request.folder, request.build)
    if place is None:
        return session, None
    sources = SourceFiles(place[0], session, (*place[1], *request.outputs))
    changed = sources.find_changed()
    if changed:
        raise UsageError(f"{changed[0]} changed since the runs in {session} were made; --again starts over")
    return session, sources


def _advise(request: TuningRequest, session: Path, study: Study, tell: Callable[[str], None]) -> Advice | None:
    """Return the advice on a recorded run of the command; None, and a sentence why, where it cannot be recorded."""
    if request.advice is not None:
        return study(request.advice)
    path = session / "recorded" / "start"
    try:
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            build = builds.identify_build(request.folder) or "start"
            sidecar.write_sidecar(path.parent, {"build": build}, {})
            record_run(request.words, request.folder, path, request.budget_s)
        return study(path, find_program(request.words, request.folder))
    except AdvisorError as error:
        tell(f"not recorded, so it is unknown which settings matter: {error}")
        return None


def _describe_limits(facts: ProgramFacts, runner: TrialRunner) -> tuple[str, ...]:
    """Return what was not compared or not tried, and why."""
    limits = []
    if runner.varying_lines:
        lines = join_names([*map(str, runner.varying_lines)], _LINES)
        limits.append(f"Not compared, since they differ from run to run: lines {lines} of the results.")
    if not facts.checked:
        limits.append("Results were not checked: use --check or --check-file, so that a faster run is not a wrong one.")
        if facts.mpi and find_rank_option(facts.words):
            limits.append("Other numbers of ranks are tried only with a check: they may solve another problem.")
    return tuple(limits)
