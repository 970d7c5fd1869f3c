"""Commits of a git repository as versions to measure: each in a worktree of its own, built once."""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.experiments.processes import read_tail, record_run, run_timed
from advisor.model.errors import AdvisorError, UsageError
from advisor.support.child_process import run_child

if TYPE_CHECKING:
    from advisor.model.records import Advice

_GIT: Final = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
#: The longest that a build may take (seconds).
_BUILD_S: Final = 3600.0


def list_commits(repository: Path, span: str) -> tuple[str, ...]:
    """Return the commits of ``OLD..NEW``, OLD first, then the first parents from NEW back to it, the oldest first.

    Raises ``UsageError`` where the span is none, or OLD is no ancestor.
    """
    old, dots, new = span.partition("..")
    if not dots or not old or new.startswith(".") or old.startswith("-") or new.startswith("-"):
        raise UsageError(f"expected OLD..NEW, found {span!r}")
    first, last = (
        run_git(repository, "rev-parse", "--verify", f"{name}^{{commit}}").strip() for name in (old, new or "HEAD")
    )
    if first == last:
        raise UsageError(f"{old} and {new or 'HEAD'} are the same commit: there is nothing to search")
    inside = run_git(repository, "rev-list", "--first-parent", "--reverse", f"{first}..{last}").split()
    if not inside or not _is_ancestor(repository, first, last):
        raise UsageError(f"{old} is not an ancestor of {new or 'HEAD'}")
    return (first, *inside)


def run_git(repository: Path, *arguments: str) -> str:
    """Return what git says; raises ``UsageError`` where it fails. No hook of the repository is run."""
    done = run_child([*_GIT, "-C", str(repository), *arguments], None)
    if done.failure:
        raise UsageError(done.failure)
    if done.status:
        raise UsageError(f"git {arguments[0]}: {done.error_text.strip()}")
    return done.text


def _is_ancestor(repository: Path, first: str, last: str) -> bool:
    return run_child([*_GIT, "-C", str(repository), "merge-base", "--is-ancestor", first, last], None).status == 0


class CommitRunner:
    """Builds and measures commits below ``session``; ``close`` removes their worktrees.

    ``gap`` is measured if it is given, in seconds of recorded runs, else the logarithm of the run time. ``study``
    returns the advice on a recording.
    """

    def __init__(
        self,
        repository: Path,
        commits: Sequence[str],
        words: Sequence[str],
        session: Path,
        build: str | None,
        gap: str | None,
        limit_s: float,
        study: Callable[[Path], Advice],
        tell: Callable[[str], None],
    ) -> None:
        self._top = Path(run_git(repository, "rev-parse", "--show-toplevel").strip())
        self._inside = repository.resolve().relative_to(self._top.resolve())
        self._commits, self._words, self._session = commits, words, session
        self._build, self._gap, self._limit_s, self._study, self._tell = build, gap, limit_s, study, tell
        self._built: dict[int, Path | None] = {}
        self.failures: dict[int, str] = {}
        self._records = 0
        session.mkdir(parents=True, exist_ok=True)

    def measure_commit(self, number: int) -> float | None:
        """Return the value of one more run of a commit, None where it does not build or run."""
        try:
            folder = self._prepare(number)
            value = None if folder is None else self._run(folder)
        except AdvisorError as error:
            self._tell(f"{self._commits[number][:10]} is left out: {error}")
            self.failures[number] = str(error)
            self._built[number] = None
            return None
        if value is not None:
            shown = f"{math.exp(value):.4g} s" if self._gap is None else f"{self._gap} {value:.4g} s"
            self._tell(f"{self._commits[number][:10]}: {shown}")
        return value

    def record_commit(self, number: int) -> Advice:
        """Return the advice on a recorded run of a commit; raises ``AdvisorError``."""
        folder = self._prepare(number)
        if folder is None:
            raise AdvisorError(f"{self._commits[number][:10]} does not build")
        return self._record(folder)

    def close(self) -> None:
        """Remove the worktrees."""
        for folder in self._session.glob("commit-*"):
            if folder.is_dir():
                run_git(self._top, "worktree", "remove", "--force", str(folder))
        shutil.rmtree(self._session, ignore_errors=True)

    def _prepare(self, number: int) -> Path | None:
        """Return the directory to run a commit in, built when it is asked for first; None where that failed before."""
        if number not in self._built:
            self._built[number] = None
            tree = self._session / f"commit-{number}"
            run_git(self._top, "worktree", "add", "--detach", str(tree), self._commits[number])
            folder = tree / self._inside
            if self._build is not None:
                log = self._session / "build.log"
                run = run_timed(shlex.split(self._build), folder, log, _BUILD_S)
                if run.status != 0:
                    raise AdvisorError(f"the build failed: {(read_tail(log).splitlines() or [''])[-1]}")
            self._built[number] = folder
        return self._built[number]

    def _run(self, folder: Path) -> float:
        if self._gap is not None:
            return sum_gap(self._record(folder), self._gap)
        output = self._session / "output"
        run = run_timed(self._words, folder, output, self._limit_s)
        if run.status != 0:
            raise AdvisorError(f"the command failed: {(read_tail(output).splitlines() or [''])[-1]}")
        return math.log(run.seconds)

    def _record(self, folder: Path) -> Advice:
        self._records += 1
        target = self._session / f"run-{self._records}"
        record_run(self._words, folder, target, self._limit_s)
        return self._study(target)


def sum_gap(advice: Advice, name: str) -> float:
    """Return the seconds of a gap; raises ``AdvisorError`` where the run does not show it by itself."""
    for gap in advice.gaps:
        if gap.name == name:
            return gap.seconds
    shown = ", ".join(gap.name for gap in advice.gaps)
    raise AdvisorError(f"the run shows no gap {name}; there are {shown}")
