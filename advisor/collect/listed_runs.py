"""The runs that lie at a path: which there are, in which order, and which one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from advisor.model.errors import UsageError
from advisor.model.units import format_seconds

if TYPE_CHECKING:
    from advisor.model.records import Profile


class Recorded(Protocol):
    """What a run was read from."""

    @property
    def path(self) -> Path:
        """The file or directory."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run: what tells it from others. ``started`` is empty and ``seconds`` None where no tool recorded it."""

    program: str
    run: str
    started: str
    ranks: int
    host: str
    seconds: float | None
    paths: tuple[Path, ...]

    @property
    def summary(self) -> str:
        """The run in a line."""
        took = "no run time" if self.seconds is None else format_seconds(self.seconds)
        ranks = "1 rank" if self.ranks == 1 else f"{self.ranks} ranks"
        parts = (self.program, self.started, ranks, self.host, took, str(self.paths[0]) if self.paths else "")
        return ", ".join(part for part in parts if part)


def list_runs(runs: Sequence[tuple[Profile, Sequence[Recorded]]]) -> list[ListedRun]:
    """Return what tells the runs apart, in their order."""
    return [
        ListedRun(
            profile.program,
            profile.run,
            profile.started or "",
            profile.ranks,
            next((one.host for one in profile.processors if one.host), ""),
            profile.actual_s if profile.has_run_time else None,
            tuple(one.path for one in recorded),
        )
        for profile, recorded in runs
    ]


def run_order(profile: Profile, recorded: Sequence[Recorded]) -> tuple[bool, bool, float]:
    """Return what orders runs, the oldest first, by start, else by the age of the files.

    Before all others are those of which nothing but the whole command was timed, then those without times.
    """
    try:
        started = datetime.fromisoformat(profile.started or "")
        age_s = (started if started.tzinfo else started.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        age_s = max((_changed_s(one.path) for one in recorded), default=0.0)
    return profile.command is None, profile.has_run_time, age_s


def choose_run(runs: Sequence[ListedRun], wanted: str | None, path: Path) -> int:
    """Return the place of the run that is ``wanted``: its number from 1 on, its name, or a part of its file's path.

    That is the path below ``path``, whose own name says nothing. The newest is the last. Raises ``UsageError`` where
    none or several fit.
    """
    if wanted is None:
        return len(runs) - 1
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted[:9]) <= len(runs):
        return int(wanted) - 1
    exact = [n for n, one in enumerate(runs) if one.run == wanted]
    found = exact or [n for n, one in enumerate(runs) if any(wanted in _path_below(file, path) for file in one.paths)]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} runs fit" if found else "no run fits"
    raise UsageError(f"--run {wanted}: {many}; {path} holds runs 1 to {len(runs)}, which advise without --run lists")


def format_runs(runs: Sequence[ListedRun], most: int = 40) -> list[str]:
    """Return the runs, a numbered line each, the newest ``most`` of them."""
    first = max(len(runs) - most, 0)
    width = len(str(len(runs)))
    lines = [f"  {n:{width}}  {one.summary}" for n, one in enumerate(runs, 1) if n > first]
    return ([f"  … {first} older ones"] if first else []) + lines


def _path_below(file: Path, path: Path) -> str:
    return str(file.relative_to(path)) if file != path and file.is_relative_to(path) else file.name


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
