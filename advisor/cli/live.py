"""The live screen of the daemon: drawn anew when something changed, as large as the terminal is at that moment."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Final, Self

from advisor.advice.past import change_since
from advisor.cli import output
from advisor.cli.progress import time_left
from advisor.daemon.events import Backlog, FileSettled, Remark, RunTaken
from advisor.history.database import read
from advisor.history.ledger import Ledger
from advisor.history.past import StoredPast
from advisor.model.errors import StoreError
from advisor.output import watching
from advisor.output.page import draw, live

if TYPE_CHECKING:
    from pathlib import Path
    from sqlite3 import Connection

    from rich.live import Live

    from advisor.daemon.config import Config
    from advisor.daemon.events import Event
    from advisor.output.page import Page

_PROGRAMS: Final = 3
_TROUBLES: Final = 3
#: Files are counted no more often than that (seconds), and rest so many times as long as a count takes.
_COUNT_S: Final = 0.5
_COUNT_REST: Final = 20
#: How long a backlog of fewer files takes is not worth a word, nor is what its first seconds tell.
_BACKLOG: Final = 20
_EARLY_S: Final = 3.0


@dataclass(slots=True)
class _Pace:
    """How fast a backlog shrinks."""

    since: float = 0.0
    most: int = 0

    def left(self, files: int, now: float) -> str | None:
        """Return how long the files may still take; None while nobody can tell."""
        if files > self.most or files == 0:
            self.since, self.most = now, files
        done, passed = self.most - files, now - self.since
        if files < _BACKLOG or not done or passed < _EARLY_S:
            return None
        return time_left(passed / done * files)


class LiveScreen:
    """What happens, on the whole terminal; when it ends, the last state stays on the terminal like any other output."""

    def __init__(self, config: Config, state: Path, page: Page) -> None:
        self._state, self._page = state, page
        self._roots = tuple(str(root) for root in config.roots)
        self._programs: dict[str, watching.Program] = {}
        self._troubles: list[str] = []
        self._told = 0
        self._last: tuple[object, ...] = ()
        self._live: Live | None = None
        self._history: Connection | None = None
        self._counted: tuple[float, int, dict[str, int]] | None = None
        self._pace = _Pace()

    def __enter__(self) -> Self:
        self._live = live(self._page)
        self._live.start()
        self._draw(0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        self._counted = None
        with suppress(StoreError):
            page = replace(self._page, width=output.width(sys.stdout))
            output.emit(draw([watching.screen(self._shown(0), page)], page))
        if self._history is not None:
            self._history.close()

    def tell(self, event: Event) -> None:
        """Take in what happened; draw if that changes the screen."""
        if isinstance(event, Backlog):
            self._draw(event.reading)
            return
        if isinstance(event, RunTaken):
            change = change_since(event.advice, StoredPast(self._state, until=event.number))
            self._programs.pop(event.advice.profile.program, None)
            advice = StoredPast(self._state).as_it_stands(event.advice)
            self._programs[event.advice.profile.program] = watching.Program(event.number, advice, change)
        elif isinstance(event, FileSettled):
            self._troubles += [watching.set_aside(event.path, event.reason)] if event.state == "quarantined" else []
        elif isinstance(event, Remark):
            self._troubles.append(event.text)
        del self._troubles[:-_TROUBLES]
        self._told += 1

    def _draw(self, reading: int) -> None:
        width, height = output.width(sys.stdout), shutil.get_terminal_size((80, 24)).lines
        with suppress(StoreError):
            shown = self._shown(reading)
            now = (self._told, dict(shown.counts), reading, width, height)
            if now == self._last or self._live is None:
                return
            self._last = now
            page = replace(self._page, width=width)
            self._live.update(watching.screen(shown, page, height), refresh=True)

    def _shown(self, reading: int) -> watching.Screen:
        programs = list(self._programs.values())[-_PROGRAMS:]
        counts = self._counts()
        left = self._pace.left(counts.get("waiting", 0), monotonic())
        return watching.Screen(self._roots, programs, counts, reading, tuple(self._troubles), left)

    def _counts(self) -> dict[str, int]:
        """Return the files by state; counted again only where something was written, and not all the time."""
        if self._history is None:
            self._history = read(self._state)
        (written,) = self._history.execute("SELECT value FROM meta WHERE name = 'commits'").fetchone()
        begin = monotonic()
        if self._counted is None or (self._counted[1] != written and begin > self._counted[0]):
            counts = {str(state): count for state, count in Ledger(self._history).counts().items()}
            self._counted = monotonic() + max(_COUNT_S, _COUNT_REST * (monotonic() - begin)), written, counts
        return self._counted[2]
