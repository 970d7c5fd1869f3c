"""What an agent may touch: directories to read and run in, commands by their first words, and the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor import pipeline
from advisor.history.history_queries import StoredHistory
from advisor.history.location import HistoryLocation, working_folder
from advisor.model.errors import UsageError
from advisor.support.launchers import split_line

if TYPE_CHECKING:
    from advisor.extension.host import PluginHost
    from advisor.model.records import Advice, Profile
    from advisor.model.reports import Report

#: Where the recordings of measured commands are kept, below the directory of the history.
RECORDINGS: Final = "recordings"
#: A variable that a recorded command is shown with.
#: So many studied runs are kept for the next question about them.
_KEPT_STUDIES: Final = 12


@dataclass(frozen=True, slots=True)
class Workplace:
    """The limits of an agent, and what answers it.

    ``roots`` are absolute directories without links. ``commands`` are the beginnings of allowed commands, word by word.
    ``budget_s`` is the longest that one measurement may take. ``run_report`` runs a plugin's command, and
    ``fill_commands`` returns advice whose commands can be run as they stand.
    """

    roots: tuple[Path, ...]
    commands: tuple[tuple[str, ...], ...]
    state: HistoryLocation
    host: PluginHost
    options: pipeline.Options
    run_report: Callable[[str, Sequence[str]], Report]
    fill_commands: Callable[[Advice, Sequence[Path]], Advice] = lambda advice, _: advice
    budget_s: float = 600.0
    studies: dict[tuple[object, ...], pipeline.Study] = field(default_factory=dict, compare=False)

    def resolve_path(self, text: str) -> Path:
        """Return the real path of what lies below a root; ``UsageError`` for what does not, or is not there.

        A relative path starts at the first root. Links are followed before the roots are compared.
        """
        try:
            path = (self.roots[0] / text).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            raise UsageError("no such file or directory below the allowed roots") from None
        if not any(path.is_relative_to(root) for root in (*self.roots, self.recordings)):
            raise UsageError("no such file or directory below the allowed roots")
        return path

    @property
    def recordings(self) -> Path:
        """Where measured commands are recorded."""
        return working_folder(self.state).resolve() / RECORDINGS

    def check_command(self, words: Sequence[str]) -> None:
        """Raise ``UsageError`` unless the command begins with the words of an allowed one."""
        if any("\0" in word for word in words):
            raise UsageError("a word of a command must not contain a null byte")
        if not self.allows_command(words):
            allowed = "; ".join(" ".join(prefix) for prefix in self.commands) or "none"
            raise UsageError(f"this command is not allowed. Allowed are commands that begin with: {allowed}")

    def find_command(self, profile: Profile) -> list[str] | None:
        """Return the words of the command that a run is of, None for one that is unknown or not allowed."""
        _, words = split_line(profile.parameters.get("command"))
        return words if words and self.allows_command(words) else None

    def allows_command(self, words: Sequence[str]) -> bool:
        """Return whether the command begins with the words of an allowed one."""
        return any(tuple(words[: len(prefix)]) == prefix for prefix in self.commands)

    def study_run(self, path: Path, binary: Path | None = None) -> pipeline.Study:
        """Return the advice on the run at ``path`` with all it is made of; raises ``AdvisorError``.

        ``binary`` is the program that ran, where no recording names it; later it may be another one.
        """
        key = (path, path.stat().st_mtime_ns)
        if key not in self.studies:
            options = replace(self.options, binary=binary)
            study = pipeline.study_newest([path], options, self.host, StoredHistory(self.state))
            while len(self.studies) >= _KEPT_STUDIES:
                del self.studies[next(iter(self.studies))]
            self.studies[key] = study
        return self.studies[key]
