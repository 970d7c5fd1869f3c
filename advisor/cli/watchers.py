"""Who shows what the daemon tells: a live screen, lines, or documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol, Self

from advisor.advice.past import change_since
from advisor.cli import output
from advisor.daemon.events import FileSettled, Remark, RunTaken
from advisor.history.past import StoredPast
from advisor.output import watching

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.daemon.config import Config
    from advisor.daemon.events import Event
    from advisor.output.page import Page


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
        from advisor.cli.live import LiveScreen

        return LiveScreen(config, state, page)
    return (_Documents if form == "json" else _Lines)(state, page)


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
            advice = StoredPast(self._state).as_it_stands(event.advice)
            output.emit(watching.run_line(event.number, advice, self._page) + "\n")
            change = change_since(event.advice, StoredPast(self._state, until=event.number))
            if change is not None:
                output.emit("".join(f"  {text}\n" for text in watching.change_lines(change, self._page)))
        elif isinstance(event, FileSettled) and event.state == "quarantined":
            output.emit(self._page.remark(watching.set_aside(event.path, event.reason)) + "\n")
        elif isinstance(event, Remark):
            output.emit(self._page.remark(event.text) + "\n")


class _Documents(_Lines):
    def tell(self, event: Event) -> None:
        """Write the advice on a run as one line of JSON; all else goes to standard error."""
        from advisor.output.document import document

        if isinstance(event, RunTaken):
            output.emit(json.dumps(document(StoredPast(self._state).as_it_stands(event.advice))) + "\n")
        elif isinstance(event, FileSettled) and event.state == "quarantined":
            output.complain(watching.set_aside(event.path, event.reason))
        elif isinstance(event, Remark):
            output.complain(event.text)
