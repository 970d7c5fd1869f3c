"""Who shows what the daemon tells: a live screen, lines, or documents.

The live screen is drawn anew when something changed, as large as the terminal is at that moment.
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, Self

from advisor.advice.earlier_runs import compare_with_base
from advisor.cli import output
from advisor.cli.progress import format_time_left
from advisor.daemon.events import Backlog, Event, FileSettled, Remark, RunIngested
from advisor.history import access, dialect
from advisor.history.file_states import FileStates
from advisor.history.history_queries import StoredHistory
from advisor.history.runs import RunStore
from advisor.model.errors import StoreError
from advisor.output import watch_screen
from advisor.output.explanation_text import describe_parts
from advisor.output.page import Page, make_live_display, render_lines

if TYPE_CHECKING:
    from rich.live import Live

    from advisor.daemon.config import DaemonConfig
    from advisor.history.dialect import HistoryConnection
    from advisor.history.location import HistoryLocation

#: The last troubles that are shown.
_TROUBLES: Final = 3
#: Files are counted no more often than that (seconds), and rest so many times as long as a count takes.
_COUNT_S: Final = 0.5
_COUNT_REST: Final = 20
#: How long a backlog of fewer files takes is not worth a word, nor is what its first seconds tell.
_BACKLOG: Final = 20
_EARLY_S: Final = 3.0


class EventWatcher(Protocol):
    """Is told every event, between entering and leaving."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(self, *_: object) -> None:
        """End."""

    def handle_event(self, event: Event) -> None:
        """Show what happened."""


def make_watcher(form: str, config: DaemonConfig, state: HistoryLocation, page: Page) -> EventWatcher:
    """Return who shows events in the form of ``--format``."""
    if form == "live":
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


@dataclass(slots=True)
class _BacklogPace:
    """How fast a backlog shrinks."""

    since: float = 0.0
    most: int = 0

    def describe_time_left(self, files: int, now: float) -> str | None:
        """Return how long the files may still take; None while nobody can tell."""
        if files > self.most or files == 0:
            self.since, self.most = now, files
        done, passed = self.most - files, now - self.since
        if files < _BACKLOG or not done or passed < _EARLY_S:
            return None
        return format_time_left(passed / done * files)


class LiveScreen:
    """What happens, on the whole terminal; when it ends, the last state stays on the terminal like any other output."""

    def __init__(self, config: DaemonConfig, state: HistoryLocation, page: Page) -> None:
        self._state, self._page = state, page
        self._roots = tuple(str(root) for root in config.roots)
        self._programs: dict[str, watch_screen.ProgramScreen] = {}
        self._troubles: list[str] = []
        self._told = 0
        self._last: tuple[object, ...] = ()
        self._live: Live | None = None
        self._history: HistoryConnection | None = None
        self._counted: tuple[float, int, dict[str, int]] | None = None
        self._pace = _BacklogPace()

    def __enter__(self) -> Self:
        self._live = make_live_display(self._page)
        self._live.start()
        self._draw_screen(0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        self._counted = None
        with suppress(StoreError):
            page = replace(self._page, width=output.text_width(sys.stdout))
            output.write_output(render_lines([watch_screen.render_watch_screen(self._build_screen(0), page)], page))
        if self._history is not None:
            self._history.close()

    def handle_event(self, event: Event) -> None:
        """Take in what happened; draw if that changes the screen."""
        if isinstance(event, Backlog):
            self._draw_screen(event.reading)
            return
        if isinstance(event, RunIngested):
            change = compare_with_base(event.advice, StoredHistory(self._state, until=event.number))
            self._programs.pop(event.advice.profile.program, None)
            advice = StoredHistory(self._state).update_item_states(event.advice)
            self._programs[event.advice.profile.program] = watch_screen.ProgramScreen(event.number, advice, change)
        elif isinstance(event, FileSettled):
            if event.state == "quarantined":
                self._troubles.append(watch_screen.render_quarantine_line(event.path, event.reason))
            elif event.state == "ingested":
                self._troubles.append(watch_screen.render_document_line(event.path, event.reason))
        elif isinstance(event, Remark):
            self._troubles.append(event.text)
        del self._troubles[:-_TROUBLES]
        self._told += 1

    def _draw_screen(self, reading: int) -> None:
        width, height = output.text_width(sys.stdout), shutil.get_terminal_size((80, 24)).lines
        with suppress(StoreError):
            shown = self._build_screen(reading)
            now = (self._told, dict(shown.counts), reading, width, height)
            if now == self._last or self._live is None:
                return
            self._last = now
            page = replace(self._page, width=width)
            self._live.update(watch_screen.render_watch_screen(shown, page, height), refresh=True)

    def _build_screen(self, reading: int) -> watch_screen.WatchScreen:
        programs = list(self._programs.values())
        counts = self._count_files()
        left = self._pace.describe_time_left(counts.get("waiting", 0), monotonic())
        known = 0 if programs or self._history is None else RunStore(self._history).count_runs()
        return watch_screen.WatchScreen(self._roots, programs, counts, reading, tuple(self._troubles), left, known)

    def _count_files(self) -> dict[str, int]:
        """Return the files by state; counted again only where something was written, and not all the time."""
        if self._history is None:
            self._history = access.open_read_only(self._state)
        try:
            written = dialect.read_change_mark(self._history)
        except StoreError:  # the server was away; next time it is asked anew
            self._history = None
            raise
        begin = monotonic()
        if self._counted is None or (self._counted[1] != written and begin > self._counted[0]):
            counts = {str(state): count for state, count in FileStates(self._history).count_states().items()}
            self._counted = monotonic() + max(_COUNT_S, _COUNT_REST * (monotonic() - begin)), written, counts
        return self._counted[2]
