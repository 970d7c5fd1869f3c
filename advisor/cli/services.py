"""What a plugin's command may ask for: the host reads, the pipeline advises, the store remembers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from advisor.cli import progress, user_folders
from advisor.model.errors import AdvisorError, InputError
from advisor.support.disk_cache import system_folder

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from advisor.advice.earlier_runs import AppliedAction
    from advisor.analysis.machines import Machine
    from advisor.extension.host import PluginHost
    from advisor.history.history_queries import StoredHistory
    from advisor.model.records import Advice, Profile
    from advisor.model.reports import Picture
    from advisor.trace.events import Trace

#: So many runs of a program are handed over, the newest.
HISTORY_LIMIT: Final = 1_000


@dataclass(frozen=True, slots=True)
class HostServices:
    """The services of ``advisor.extension.commands``, with the plugins of ``host``."""

    host: PluginHost

    def read(self, path: Path) -> Profile:
        """Return the newest run recorded at ``path``."""
        return self.read_all(path)[-1]

    def read_all(self, path: Path) -> tuple[Profile, ...]:
        """Return every run recorded at ``path``, the oldest first."""
        from advisor import pipeline

        with progress.show_progress(f"reading {path}"):
            return tuple(pipeline.read_runs([path], pipeline.Options(), self.host)[0])

    def advise(self, path: Path) -> Advice:
        """Return the advice on the run recorded at ``path``."""
        from advisor import pipeline

        with progress.show_progress(f"reading {path}"):
            return pipeline.advise(
                [path], pipeline.Options(rules=user_folders.rule_files()), self.host, self._open_history()
            )

    def read_trace(self, path: Path) -> Trace:
        """Return the events of the one trace at ``path``."""
        with progress.show_progress(f"reading {path}"):
            found = self.host.find_profiles(path)
            traces = [one for one in found if self.host.is_trace(one)]
            if len(traces) > 1:
                raise InputError(path, f"holds {len(traces)} traces, such as {traces[0].path}; choose one")
            return self.host.read_trace((traces or found)[0])

    def load_history(self, program: str) -> tuple[Advice, ...]:
        """Return the advice on the newest runs of a program in the history, the oldest first."""
        return self._open_history().load_advice(program, HISTORY_LIMIT)

    def find_applied_actions(self) -> tuple[AppliedAction, ...]:
        """Return what was applied to any program of the history, and what it won there."""
        return self._open_history().find_applied_actions()

    @staticmethod
    def _open_history() -> StoredHistory:
        from advisor.cli import history_location
        from advisor.history.history_queries import StoredHistory

        return StoredHistory(history_location.locate_default_history())

    def load_machine(self, name: str | None) -> Machine:
        """Return a model of a machine, of this host for None."""
        from advisor.analysis import machines

        name = name or machines.HOST
        return machines.load_machine(
            user_folders.resolve_machine(name) or name, (*user_folders.machine_folders(), *self.host.machine_files())
        )

    def show_progress(self, words: str, total: int | None = None) -> AbstractContextManager[Callable[[int], None]]:
        """Show what takes long on a terminal, with the steps that are done where they are counted."""
        return progress.show_progress(words, total)

    def write_picture(self, picture: Picture, path: Path) -> None:
        """Draw a part of a report into a PNG or SVG file."""
        from advisor.output.html import charts

        charts.write_picture(picture, path)

    def find_service(self, name: str) -> Callable[..., object]:
        """Return what a plugin offers to others under ``name``."""
        return self.host.find_service(name)

    def user_folder(self, purpose: Literal["cache", "data", "config"]) -> Path:
        """Return the user's directory for that purpose, made where it is missing."""
        path = user_folders.config_folder() if purpose == "config" else system_folder(purpose)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
        except OSError as error:
            raise AdvisorError(f"{path}: {error.strerror}") from error
        return path
