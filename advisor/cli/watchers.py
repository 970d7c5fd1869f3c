"""Who shows what the daemon tells: a live screen, lines, or documents."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Protocol, Self

from advisor.cli import output
from advisor.comparison import compare
from advisor.errors import StoreError
from advisor.render import watching
from advisor.render.page import live
from advisor.store.database import read
from advisor.store.ledger import Ledger
from advisor.store.runs import Runs
from advisor.watch.events import Backlog, FileSettled, Remark, RunTaken

if TYPE_CHECKING:
    from pathlib import Path
    from sqlite3 import Connection

    from rich.live import Live

    from advisor.comparison import Comparison
    from advisor.render.page import Page
    from advisor.watch.config import Config
    from advisor.watch.events import Event

_PROGRAMS = 3
_TROUBLES = 20
_BUILDS = 20
#: Of a program so many runs are looked at for the last change, of a build so many repeats, the newest.
_LATEST = 500
_REPEATS = 6
#: Files are counted no more often than that (seconds), and rest so many times as long as a count takes.
_COUNT_S = 0.5
_COUNT_REST = 20


class Watcher(Protocol):
    """Is told every event, between entering and leaving."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(self, *_: object) -> None:
        """End."""

    def tell(self, event: Event) -> None:
        """Show what happened."""


def watcher(form: str, config: Config, state: Path, page: Page) -> Watcher:
    """Return who shows events in the form of ``--as``."""
    if form == "live":
        return _Live(config, state, page)
    return (_Documents if form == "json" else _Lines)(state, page)


def changes(state: Path, event: RunTaken) -> Comparison | None:
    """Return what changed from the build before to that of a run; None where there is no other build."""
    profile = event.advice.profile
    if not profile.timed:
        return None
    with suppress(StoreError):
        runs = Runs(read(state))
        builds: dict[str | None, list[int]] = {}
        for entry in runs.entries(profile.program, _LATEST):
            if entry.actual_s is not None and entry.ranks == profile.ranks:
                builds.setdefault(entry.build, []).append(entry.number)
        own = builds.pop(profile.build, [event.number])[-_REPEATS:]
        if not builds:
            return None
        before = list(builds.values())[-_BUILDS:]
        groups = [[runs.advice(number) for number in numbers[-_REPEATS:]] for numbers in before]
        return compare(groups[-1], [runs.advice(number) for number in own], groups[:-1])
    return None


class _Lines:
    def __init__(self, state: Path, page: Page) -> None:
        self._state, self._page = state, page

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def tell(self, event: Event) -> None:
        """Write a line, two where something changed since the build before."""
        if isinstance(event, RunTaken):
            output.emit(watching.run_line(event.number, event.advice, self._page) + "\n")
            change = changes(self._state, event)
            if change is not None:
                output.emit("".join(f"  {text}\n" for text in watching.change_lines(change, self._page)))
        elif isinstance(event, FileSettled) and event.state == "quarantined":
            output.emit(self._page.remark(f"set aside: {event.path}: {event.reason}") + "\n")
        elif isinstance(event, Remark):
            output.emit(self._page.remark(event.text) + "\n")


class _Documents(_Lines):
    def tell(self, event: Event) -> None:
        """Write the advice on a run as one line of JSON; all else goes to standard error."""
        from advisor.render.document import document

        if isinstance(event, RunTaken):
            output.emit(json.dumps(document(event.advice)) + "\n")
        elif isinstance(event, FileSettled) and event.state == "quarantined":
            output.complain(f"set aside: {event.path}: {event.reason}")
        elif isinstance(event, Remark):
            output.complain(event.text)


class _Live:
    """A screen that is drawn anew when something changed, as wide as the terminal is at that moment."""

    def __init__(self, config: Config, state: Path, page: Page) -> None:
        self._state, self._page = state, page
        self._roots = tuple(str(root) for root in config.roots)
        self._programs: dict[str, watching.Program] = {}
        self._troubles: list[str] = []
        self._last: tuple[object, ...] = ()
        self._live: Live | None = None
        self._history: Connection | None = None
        self._counted: tuple[float, int, dict[str, int]] | None = None

    def __enter__(self) -> Self:
        self._live = live(self._page)
        self._live.start()
        self._draw(0)
        return self

    def __exit__(self, *_: object) -> None:
        self._counted = None
        self._draw(0)
        if self._live is not None:
            self._live.stop()
        if self._history is not None:
            self._history.close()

    def tell(self, event: Event) -> None:
        """Take in what happened; draw if that changes the screen."""
        if isinstance(event, RunTaken):
            program = watching.Program(event.number, event.advice, changes(self._state, event))
            self._programs.pop(event.advice.profile.program, None)
            self._programs[event.advice.profile.program] = program
        elif isinstance(event, FileSettled) and event.state == "quarantined":
            self._troubles.append(f"set aside: {event.path}: {event.reason}")
        elif isinstance(event, Remark):
            self._troubles.append(event.text)
        elif isinstance(event, Backlog):
            self._draw(event.reading)

    def _draw(self, reading: int) -> None:
        page = replace(self._page, width=output.width(sys.stdout))
        with suppress(StoreError):
            counts = self._counts()
            now = (counts, reading, tuple(self._programs), len(self._troubles), page.width)
            if now == self._last or self._live is None:
                return
            self._last = now
            programs = list(self._programs.values())[-_PROGRAMS:]
            shown = watching.Screen(self._roots, programs, counts, reading, self._troubles[-_TROUBLES:])
            self._live.update(watching.screen(shown, page), refresh=True)

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
