"""The events of a run, read again for the plugins that want them, if that is not too much."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.model.units import format_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.extension.host import FoundProfile, PluginHost
    from advisor.model.records import Grade
    from advisor.trace.events import Trace


class RunEvents:
    """Reads the events of ``found`` when they are first asked for, and keeps them.

    There are none where nothing was found, where it is no trace, and where it has more than ``most_B`` bytes.
    """

    def __init__(self, host: PluginHost, found: FoundProfile | None, most_B: float) -> None:
        self._host = host
        self._found = found if found is not None and host.is_trace(found) else None
        self._most_B = most_B
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
        """Return the grade with a note, if somebody asked for events that could not be given."""
        return grade if self._note is None else replace(grade, notes=(*grade.notes, self._note))

    def _read_events(self, found: FoundProfile) -> Trace | None:
        size = _total_bytes(found.path)
        if size > self._most_B:
            limit = f"of {format_bytes(size)}, plugins are given those of up to {format_bytes(self._most_B)}"
            self._note = Note("events", f"plugins did without the events: the trace is {limit}", 0.0)
            return None
        try:
            return self._host.read_trace(found)
        except InputError as error:
            self._note = Note("events", f"plugins did without the events: {error}", 0.0)
            return None


def _total_bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files at and below a directory."""
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())
