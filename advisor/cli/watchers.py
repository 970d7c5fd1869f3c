"""Who shows what the daemon tells: a live screen, lines, or documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol, Self

from advisor.advice.earlier_runs import compare_with_base
from advisor.cli import output
from advisor.daemon.events import FileSettled, Remark, RunIngested
from advisor.history.history_queries import StoredHistory
from advisor.output import watch_screen
from advisor.output.explained import describe_parts

if TYPE_CHECKING:
    from advisor.daemon.config import DaemonConfig
    from advisor.daemon.events import Event
    from advisor.history.location import HistoryLocation
    from advisor.output.page import Page


class EventWatcher(Protocol):
    """Is told every event, between entering and leaving."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(self, *_: object) -> None:
        """End."""

    def handle_event(self, event: Event) -> None:
        """Show what happened."""


def make_watcher(form: str, config: DaemonConfig, state: HistoryLocation, page: Page) -> EventWatcher:
    """Return who shows events in the form of ``--as``."""
    if form == "live":
        from advisor.cli.live import LiveScreen

        return LiveScreen(config, state, page)
    return (_DocumentWatcher if form == "json" else _LineWatcher)(state, page)


class _LineWatcher:
    def __init__(self, state: HistoryLocation, page: Page) -> None:
        self._state, self._page = state, page

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def handle_event(self, event: Event) -> None:
        """Write a line, more where findings explain seconds or something changed since the build before."""
        if isinstance(event, RunIngested):
            advice = StoredHistory(self._state).update_item_states(event.advice)
            output.write_output(watch_screen.render_run_line(event.number, advice, self._page) + "\n")
            output.write_output("".join(f"  {text}\n" for text in describe_parts(advice, self._page)))
            change = compare_with_base(event.advice, StoredHistory(self._state, until=event.number))
            if change is not None:
                output.write_output(
                    "".join(f"  {text}\n" for text in watch_screen.render_change_lines(change, self._page))
                )
        elif isinstance(event, FileSettled) and event.state == "quarantined":
            output.write_output(
                self._page.clean_remark(watch_screen.render_quarantine_line(event.path, event.reason)) + "\n"
            )
        elif isinstance(event, FileSettled) and event.state == "ingested":
            output.write_output(
                self._page.clean_remark(watch_screen.render_document_line(event.path, event.reason)) + "\n"
            )
        elif isinstance(event, Remark):
            output.write_output(self._page.clean_remark(event.text) + "\n")


class _DocumentWatcher(_LineWatcher):
    def handle_event(self, event: Event) -> None:
        """Write the advice on a run as one line of JSON; all else goes to standard error."""
        from advisor.output.advice_document import build_advice_document

        if isinstance(event, RunIngested):
            output.write_output(
                json.dumps(build_advice_document(StoredHistory(self._state).update_item_states(event.advice))) + "\n"
            )
        elif isinstance(event, FileSettled) and event.state == "quarantined":
            output.write_messages(watch_screen.render_quarantine_line(event.path, event.reason))
        elif isinstance(event, Remark):
            output.write_messages(event.text)
