"""What a plugin's command may ask for: the host reads, the pipeline advises, the store remembers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from advisor.cli import places, progress
from advisor.model.errors import AdvisorError, InputError
from advisor.support.kept import system_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from advisor.advice.past import Applied
    from advisor.analysis.machines import Machine
    from advisor.extension.host import Host
    from advisor.history.past import StoredPast
    from advisor.model.records import Advice, Profile
    from advisor.trace.events import Trace

#: So many runs of a program are handed over, the newest.
HISTORY_LIMIT: Final = 1_000


@dataclass(frozen=True, slots=True)
class Services:
    """The services of ``advisor.extension.commands``, with the plugins of ``host``."""

    host: Host

    def read(self, path: Path) -> Profile:
        """Return the newest run recorded at ``path``."""
        return self.read_all(path)[-1]

    def read_all(self, path: Path) -> tuple[Profile, ...]:
        """Return every run recorded at ``path``, the oldest first."""
        from advisor import pipeline

        with progress.working(f"reading {path}"):
            return tuple(pipeline.read([path], pipeline.Options(), self.host)[0])

    def advise(self, path: Path) -> Advice:
        """Return the advice on the run recorded at ``path``."""
        from advisor import pipeline

        with progress.working(f"reading {path}"):
            return pipeline.advise([path], pipeline.Options(rules=places.rule_files()), self.host, self._past())

    def trace(self, path: Path) -> Trace:
        """Return the events of the one trace at ``path``."""
        with progress.working(f"reading {path}"):
            found = self.host.find(path)
            traces = [one for one in found if self.host.is_trace(one)]
            if len(traces) > 1:
                raise InputError(path, f"holds {len(traces)} traces, {traces[0].path} for example; name one of them")
            return self.host.trace((traces or found)[0])

    def history(self, program: str) -> tuple[Advice, ...]:
        """Return the advice on the newest runs of a program in the history, the oldest first."""
        return self._past().advice(program, HISTORY_LIMIT)

    def applied(self) -> tuple[Applied, ...]:
        """Return what was applied to any program of the history, and what it won there."""
        return self._past().applied()

    @staticmethod
    def _past() -> StoredPast:
        from advisor.cli import history_places
        from advisor.history.past import StoredPast

        return StoredPast(history_places.default())

    def machine(self, name: str | None) -> Machine:
        """Return a model of a machine, of this host for None."""
        from advisor.analysis import machines

        if name is None:
            return machines.host()
        return machines.load(places.machine(name) or name, (*places.machine_folders(), *self.host.machines()))

    def working(self, words: str, total: int | None = None) -> AbstractContextManager[Callable[[int], None]]:
        """Show what takes long on a terminal, with the steps that are done where they are counted."""
        return progress.working(words, total)

    def service(self, name: str) -> Callable[..., object]:
        """Return what a plugin offers to others under ``name``."""
        return self.host.service(name)

    def folder(self, purpose: Literal["cache", "data", "config"]) -> Path:
        """Return the user's directory for that purpose, made where it is missing."""
        path = places.config() if purpose == "config" else system_folder(purpose)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
        except OSError as error:
            raise AdvisorError(f"{path}: {error.strerror}") from error
        return path
