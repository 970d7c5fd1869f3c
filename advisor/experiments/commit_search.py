"""Which commit of a git repository changed the run time, or a gap, and which gaps moved with it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.analysis.comparison import Comparison, compare_builds
from advisor.experiments.change_point import FoundChange, find_change
from advisor.experiments.commits import CommitRunner, list_commits, run_git
from advisor.model.errors import AdvisorError, UsageError

if TYPE_CHECKING:
    from advisor.model.records import Advice

#: Runs of the commit and of its parent that are recorded at the end, to tell which gaps moved.
_RECORDED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to search: the commits of ``span`` (``OLD..NEW``), by running ``words`` in the tree of each.

    The run time is followed, or the ``gap`` of that name. ``build`` builds a commit. A run is ended after ``limit_s``
    seconds; ``runs`` is the most that are made.
    """

    repository: Path
    span: str
    words: tuple[str, ...]
    runs: int
    limit_s: float
    build: str | None = None
    gap: str | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as people know it: the short form of its hash, its author, its subject."""

    name: str
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class FoundCommit:
    """What the search found: the commits that hold the change, the most likely one first where it is certain.

    ``gaps`` compares recorded runs of the commit with those of its parent; None where nothing is certain, or where
    ``problem`` says why the runs could not be recorded.
    """

    change: FoundChange
    candidates: tuple[Commit, ...]
    gaps: Comparison | None = None
    problem: str | None = None

    @property
    def is_certain(self) -> bool:
        """Whether one commit has almost all of the probability, and the test against its parent agrees."""
        return self.change.version is not None and self.change.reason is None and self.change.change is not None


def search_commits(request: SearchRequest, study: Callable[[Path], Advice], tell: Callable[[str], None]) -> FoundCommit:
    """Search the commits; their worktrees lie in a temporary directory and are removed.

    ``study`` returns the advice on a recording; ``tell`` is told of each run. Raises ``UsageError`` for a span that is
    none, and ``AdvisorError`` where OLD or NEW does not build or run.
    """
    if not request.words or not request.words[0]:
        raise UsageError("no program given")
    commits = list_commits(request.repository, request.span)
    session = Path(tempfile.mkdtemp(prefix="gapwatch-bisect-")) / "session"
    runner = CommitRunner(
        request.repository, commits, request.words, session, request.build, request.gap, request.limit_s, study, tell
    )
    try:
        change = find_change(runner.measure_commit, len(commits) - 1, request.runs)
        failed = [number for number in (0, len(commits) - 1) if number in runner.failures]
        if failed:
            ends = "; ".join(f"{commits[number][:10]}: {runner.failures[number]}" for number in failed)
            raise AdvisorError(f"nothing to search between: {ends}")
        listed = () if change.version is None else change.candidates
        found = FoundCommit(change, tuple(_describe_commit(request.repository, commits[one]) for one in listed))
        if change.version is None or not found.is_certain:
            return found
        try:
            return replace(found, gaps=compare_with_parent(change.version, runner))
        except AdvisorError as error:
            return replace(found, problem=str(error))
    finally:
        runner.close()
        session.parent.rmdir()


def _describe_commit(repository: Path, commit: str) -> Commit:
    text = run_git(repository, "show", "--no-patch", "--format=%h%x00%an%x00%s", commit)
    return Commit(*text.strip().split("\0"))


def compare_with_parent(version: int, runner: CommitRunner) -> Comparison:
    """Return which gaps moved with a commit, from recorded runs of it and of its parent, in turns."""
    groups: tuple[list[Advice], list[Advice]] = ([], [])
    for _ in range(_RECORDED):
        for side, number in zip(groups, (version - 1, version), strict=True):
            side.append(runner.record_commit(number))
    return compare_builds(*groups)
