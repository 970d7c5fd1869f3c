"""The events of a run for plugins: those that its profile was built from, else read on demand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.model.errors import InputError
from advisor.model.records import Grade, Note

if TYPE_CHECKING:
    from advisor.extension.host import FoundProfile, PluginHost
    from advisor.trace.events import Trace


class RunEvents:
    """Reads the events of ``found`` on first request, and keeps them.

    There are none if nothing was found, or if it is no trace.
    """

    def __init__(self, host: PluginHost, found: FoundProfile | None) -> None:
        self._host = host
        self._found = found if found is not None and host.is_trace(found) else None
        self._read: Trace | None = None
        self._asked = False
        self._note: Note | None = None

    def __call__(self) -> Trace | None:
        """Return the events of the run, None without them."""
        if not self._asked and self._found is not None:
            self._asked = True
            self._read = self._read_events(self._found)
        return self._read

    def add_note(self, grade: Grade) -> Grade:
        """Return the grade, with a note if requested events could not be read."""
        return grade if self._note is None else replace(grade, notes=(*grade.notes, self._note))

    def _read_events(self, found: FoundProfile) -> Trace | None:
        try:
            return self._host.read_trace(found)
        except InputError as error:
            self._note = Note("events", f"plugins did without the events: {error}", 0.0)
            return None
