"""What the file system announces: files and directories to look at now. Only hints, a scan finds all the rest.

With its default events watchdog wakes itself up by its own scans of many directories; only those are taken here that
say that a file is complete or a directory is new.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, Final

from watchdog import events
from watchdog.observers import Observer

from advisor.history import filesystems

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

_WANTED: Final[list[type[events.FileSystemEvent]]] = [
    events.FileClosedEvent,
    events.FileMovedEvent,
    events.FileCreatedEvent,
    events.DirCreatedEvent,
    events.DirMovedEvent,
]

_LOG: Final = logging.getLogger("watchdog")

#: Where the system refused to announce anything, it is asked again after that time (seconds).
_AGAIN_S: Final = 60.0


@dataclass(slots=True)
class AnnouncedChanges:
    """Directories that are new, files by directory in which something happened, and those that were closed."""

    folders: set[Path] = field(default_factory=set)
    files: dict[Path, set[bytes]] = field(default_factory=dict)
    closed: set[tuple[Path, bytes]] = field(default_factory=set)

    def add_file(self, path: Path, *, closed: bool) -> None:
        """Note that something happened to a file, and whether its writer ``closed`` it or moved it here."""
        name = os.fsencode(path.name)
        self.files.setdefault(path.parent, set()).add(name)
        if closed:
            self.closed.add((path.parent, name))


class InotifyEvents:
    """Collects changes below the roots; ``silent`` names the roots without notifications, and why.

    ``incomplete`` is set when some of it was lost: more happened at once than the system keeps.
    """

    def __init__(self, wake: Event) -> None:
        self._wake = wake
        self._lock = Lock()
        self._changes = AnnouncedChanges()
        self._watched: dict[Path, tuple[int, int]] = {}
        self._observer: BaseObserver | None = None
        self._refused_until = 0.0
        self._complaints = _LossHandler(self)
        self.silent: dict[Path, str] = {}
        self.incomplete = False

    def watch_roots(self, present: Mapping[Path, tuple[int, int]]) -> bool:
        """Watch the roots that are there; again where one was replaced by another directory of the same name.

        Return whether that was done: what happened before it was not announced.
        """
        if present == self._watched and (self._is_listening() or monotonic() < self._refused_until):
            return False
        self.stop_watching()
        self._watched = dict(present)
        self.silent = {
            root: f"{filesystems.filesystem_type(root)} announces no changes"
            for root in present
            if not filesystems.supports_inotify(root)
        }
        try:
            self._observer = self._start_observer([root for root in present if root not in self.silent])
        except OSError as error:
            self._refused_until = monotonic() + _AGAIN_S
            self.silent |= dict.fromkeys(present.keys() - self.silent.keys(), _describe_refusal(error))
        return True

    def _start_observer(self, roots: Iterable[Path]) -> BaseObserver:
        """Return the observer of the roots; roots beyond the system's watch limit become silent."""
        observer = Observer()
        _LOG.addHandler(self._complaints)
        _LOG.propagate = False
        for root in roots:
            try:
                observer.schedule(_EventHandler(self), str(root), recursive=True, event_filter=_WANTED)
            except OSError as error:
                self.silent[root] = _describe_refusal(error)
        observer.start()
        return observer

    def _is_listening(self) -> bool:
        """Return whether all threads of watchdog still run."""
        observer = self._observer
        return observer is not None and observer.is_alive() and all(emitter.is_alive() for emitter in observer.emitters)

    def take_changes(self) -> AnnouncedChanges:
        """Return what happened since the last call."""
        with self._lock:
            taken, self._changes = self._changes, AnnouncedChanges()
        return taken

    def record_event(self, event: events.FileSystemEvent) -> None:
        """Note what happened; called from watchdog's thread."""
        moved = isinstance(event, events.FileMovedEvent | events.DirMovedEvent)
        path = Path(os.fsdecode(event.dest_path if moved else event.src_path))
        with self._lock:
            if event.is_directory:
                self._changes.folders.add(path)
            else:
                self._changes.add_file(path, closed=moved or isinstance(event, events.FileClosedEvent))
            if moved and event.src_path:
                left = Path(os.fsdecode(event.src_path))
                if not event.is_directory:
                    self._changes.add_file(left, closed=False)
        self._wake.set()

    def record_loss(self) -> None:
        """Note that announcements were lost; called from watchdog's thread."""
        self.incomplete = True
        self._wake.set()

    def stop_watching(self) -> None:
        """Stop watching; what watchdog logs until its threads have ended is heard, or Python would print it."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
        self._observer = None
        _LOG.removeHandler(self._complaints)


def _describe_refusal(error: OSError) -> str:
    return f"{error.strerror}: too many directories are watched"


class _LossHandler(logging.Handler):
    """Hears watchdog's log: what it warns of, such as a queue that overflowed, is the loss of announcements."""

    def __init__(self, announcements: InotifyEvents) -> None:
        super().__init__(logging.WARNING)
        self._announcements = announcements

    def emit(self, record: logging.LogRecord) -> None:
        """Note the loss, whatever the words are."""
        self._announcements.record_loss()


class _EventHandler(events.FileSystemEventHandler):
    def __init__(self, announcements: InotifyEvents) -> None:
        self._announcements = announcements

    def on_any_event(self, event: events.FileSystemEvent) -> None:
        """Pass on the requested kinds of events."""
        self._announcements.record_event(event)


def root_identity(root: Path) -> tuple[int, int] | None:
    """Return the identity of a directory, which another one of the same name lacks; None if there is none."""
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
