"""A file counts as complete when it has not changed for a while; formats with an end mark are checked when read.

A file counts as quiet from the moment at which it was last seen to change, by a clock that only runs forward: the times
that a file server writes mean nothing here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.history.file_states import FileSignature


@dataclass(slots=True)
class _PendingFile:
    signature: FileSignature
    quiet_since: float
    complete_at: float
    not_before: float


@dataclass(slots=True)
class _PendingFolder:
    """The waiting files of a directory, with when it is due and when the first of them was written, once computed."""

    files: dict[bytes, _PendingFile] = field(default_factory=dict)
    due: float | None = None
    first_ns: int = 0

    def compute_due(self, quiet_s: float) -> float:
        """Return when the directory is due: all its files are, or one has been for the quiet time."""
        if self.due is None:
            times = [file.not_before for file in self.files.values()]
            self.due = min(max(times), min(times) + quiet_s)
            self.first_ns = min(file.signature.mtime_ns for file in self.files.values())
        return self.due


class FileDebouncer:
    """The files that wait, by directory; all times are seconds of one monotonic clock. Threads may share it.

    At most about ``room`` files are kept; of those that find none the ledger knows, and ``overflowed`` says so. When a
    directory is due is computed when one of its files changes, as there may be as many directories as files.
    """

    def __init__(self, quiet_s: float, room: int = 20_000) -> None:
        self.quiet_time_s = quiet_s
        self.room = room
        self.overflowed = False
        self._count = 0
        self._folders: dict[Path, _PendingFolder] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return self._count

    def observe_files(self, folder: Path, files: Mapping[bytes, FileSignature], now: float) -> None:
        """Note files that are new or may have changed; the wait begins anew for those that did."""
        with self._lock:
            held = self._folders.setdefault(folder, _PendingFolder())
            pending, held.due = held.files, None
            for name, signature in files.items():
                known = pending.get(name)
                if known is None and self._count >= self.room:
                    self.overflowed = True
                elif known is None or known.signature != signature:
                    self._count += known is None
                    pending[name] = _PendingFile(signature, now, now + self.quiet_time_s, now + self.quiet_time_s)
            if not pending:
                del self._folders[folder]

    def advance_file(self, folder: Path, name: bytes, until: float) -> None:
        """Let a file wait no longer than until then: whoever wrote it has closed it."""
        with self._lock:
            if (pending := self._find_file(folder, name)) is not None:
                pending.complete_at = min(pending.complete_at, until)
                pending.not_before = min(pending.not_before, until)
                self._folders[folder].due = None

    def postpone_file(self, folder: Path, name: bytes, until: float) -> None:
        """Let a file wait on, at least until then: what read it found it incomplete."""
        with self._lock:
            if (pending := self._find_file(folder, name)) is not None:
                pending.not_before = until
                self._folders[folder].due = None

    def quiet_s(self, folder: Path, name: bytes, now: float) -> float:
        """Return for how long a file has not changed; 0 for one that does not wait."""
        with self._lock:
            pending = self._find_file(folder, name)
            return 0.0 if pending is None else now - pending.quiet_since

    def _find_file(self, folder: Path, name: bytes) -> _PendingFile | None:
        held = self._folders.get(folder)
        return None if held is None else held.files.get(name)

    def forget_files(self, folder: Path, names: Mapping[bytes, FileSignature] | set[bytes]) -> None:
        """Forget files that are gone, or that found their state: those with a signature only if it is still theirs."""
        with self._lock:
            held = self._folders.get(folder)
            if held is None:
                return
            pending, held.due = held.files, None
            for name in list(names):
                if isinstance(names, Mapping) and name in pending and pending[name].signature != names[name]:
                    continue
                self._count -= pending.pop(name, None) is not None
            if not pending:
                del self._folders[folder]

    def forget_all(self) -> None:
        """Forget every file; ``overflowed`` has those that still wait loaded from the ledger."""
        with self._lock:
            self._folders.clear()
            self._count = 0
            self.overflowed = True

    def ready_folders(self, now: float) -> Iterator[tuple[Path, dict[bytes, FileSignature]]]:
        """Yield the directories in which every waiting file is due, with these files, in the order of their writing.

        A directory in which one file is still being written waits as a whole, as its files may belong together; but
        where files are written all the time, those that are due wait no longer than the quiet time for the others.
        """
        with self._lock:
            due = [
                (held.first_ns, folder)
                for folder, held in self._folders.items()
                if held.compute_due(self.quiet_time_s) <= now
            ]
        for _, folder in sorted(due):
            with self._lock:
                held = self._folders.get(folder, _PendingFolder())
                files = {name: one.signature for name, one in held.files.items() if one.not_before <= now}
            if files:
                yield folder, files

    def files_in(self, folder: Path) -> dict[bytes, FileSignature]:
        """Return the waiting files of a directory."""
        with self._lock:
            held = self._folders.get(folder, _PendingFolder())
            return {name: one.signature for name, one in held.files.items()}

    def files_below(self, place: Path) -> dict[Path, dict[bytes, FileSignature]]:
        """Return the waiting files at and below a directory."""
        with self._lock:
            return {
                folder: {name: one.signature for name, one in held.files.items()}
                for folder, held in self._folders_below(place)
            }

    def is_busy_below(self, folder: Path, now: float) -> bool:
        """Return whether a file at or below a directory may still be written to.

        One that is quiet and was only postponed is not: else two directories of one profile could wait for each other,
        each postponed while the other one is due.
        """
        with self._lock:
            return any(
                file.complete_at > now for _, held in self._folders_below(folder) for file in held.files.values()
            )

    def _folders_below(self, place: Path) -> Iterator[tuple[Path, _PendingFolder]]:
        """Yield the directories at and below one; by their text, which is there already, unlike their parents."""
        below = os.path.join(place, "")
        return ((each, held) for each, held in self._folders.items() if each == place or str(each).startswith(below))

    def next_due(self) -> float | None:
        """Return when the next directory is due, None where nothing waits."""
        with self._lock:
            return min((held.compute_due(self.quiet_time_s) for held in self._folders.values()), default=None)
