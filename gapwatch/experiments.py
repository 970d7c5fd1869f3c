"""Settings and commits tried from Python: ``gapwatch tune`` and ``gapwatch bisect``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import bisect as bisect_command
from advisor.cli import option_types, user_folders
from advisor.cli import tune as tune_command
from advisor.experiments.commit_search import SearchRequest, search_commits
from advisor.experiments.trials import Check
from advisor.experiments.tuning_session import TuningRequest, run_tuning
from advisor.history.location import working_folder
from gapwatch.arguments import PathLike, check_option, split_command
from gapwatch.histories import History, open_history

if TYPE_CHECKING:
    from advisor.experiments.commit_search import FoundCommit
    from advisor.experiments.tuning_session import TunedCommand

#: Is told of each run, in one line.
Progress = Callable[[str], None]


def tune(
    command: PathLike | Sequence[PathLike],
    *,
    build: str | None = None,
    check: str | None = None,
    check_file: PathLike | None = None,
    tolerance: float = 1e-9,
    fast_math: bool = False,
    runs: int = tune_command.RUNS,
    budget_s: float = tune_command.BUDGET_S,
    advice: PathLike | None = None,
    session: PathLike | None = None,
    again: bool = False,
    history: History | None = None,
    progress: Progress | None = None,
) -> TunedCommand:
    """Try settings of a command that need no edit of its source, and return what each gains, measured.

    The arguments are the options of ``gapwatch tune`` (docs/tuning.md); the command runs in the current directory, no
    shell between. The gain of the best setting is noted in the history (default: the user's own). Raises
    ``AdvisorError`` where the command as it is fails, and ``UsageError`` for a wrong argument.
    """
    checked = Check(
        check,
        None if check_file is None else Path(check_file),
        check_option("tolerance", tune_command.parse_tolerance, str(tolerance)),
    )
    request = TuningRequest(
        words=tuple(split_command(command)),
        folder=Path.cwd(),
        runs=check_option("runs", tune_command.parse_runs, str(runs)),
        budget_s=check_option("budget_s", option_types.parse_budget, f"{budget_s}s"),
        build=build,
        check=checked,
        fast_math=fast_math,
        advice=None if advice is None else Path(advice),
        session=None if session is None else Path(session),
        again=again,
    )
    place = (history or open_history()).folder
    sessions = working_folder(place) / tune_command.NAME
    return run_tuning(request, place, sessions, user_folders.advise_path, progress or _ignore)


def bisect(
    span: str,
    command: PathLike | Sequence[PathLike],
    *,
    build: str | None = None,
    gap: str | None = None,
    runs: int = bisect_command.RUNS,
    limit_s: float = bisect_command.LONGEST_S,
    progress: Progress | None = None,
) -> FoundCommit:
    """Return which commit of ``span`` (``OLD..NEW``) changed the run time of a command, or a gap, despite noise.

    The arguments are the options of ``gapwatch bisect`` (docs/tuning.md); the repository is that of the current
    directory, whose own tree is not touched. Raises ``AdvisorError`` where OLD or NEW does not build or run, and
    ``UsageError`` for a wrong argument.
    """
    request = SearchRequest(
        repository=Path.cwd(),
        span=span,
        words=tuple(split_command(command)),
        runs=check_option("runs", bisect_command.parse_runs, str(runs)),
        limit_s=check_option("limit_s", option_types.parse_budget, f"{limit_s}s"),
        build=build,
        gap=None if gap is None else check_option("gap", bisect_command.parse_gap, gap),
    )
    return search_commits(request, user_folders.advise_path, progress or _ignore)


def _ignore(line: str) -> None:
    """Show nothing."""
