"""When is a file complete? When nobody changed it for a while; formats with an end mark say so themselves when read.

A file counts as quiet from the moment at which it was last seen to change, by a clock that only runs forward: the times
that a file server writes mean nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.history.file_states import FileSignature


@dataclass(slots=True)
class _PendingFile:
    signature: FileSignature
    quiet_since: float
    complete_at: float
    not_before: float


class FileDebouncer:
    """The files that wait, by directory; all times are seconds of one monotonic clock. Threads may share it.

    At most about ``room`` files are kept; of those that find none the ledger knows, and ``overflowed`` says so.
    """

    def __init__(self, quiet_s: float, room: int = 20_000) -> None:
        self.quiet_time_s = quiet_s
        self.room = room
        self.overflowed = False
        self._count = 0
        self._folders: dict[Path, dict[bytes, _PendingFile]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return self._count

    def observe_files(self, folder: Path, files: Mapping[bytes, FileSignature], now: float) -> None:
        """Note files that are new or may have changed; the wait begins anew for those that did."""
        with self._lock:
            pending = self._folders.setdefault(folder, {})
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
            pending = self._folders.get(folder, {}).get(name)
            if pending is not None:
                pending.complete_at = min(pending.complete_at, until)
                pending.not_before = min(pending.not_before, until)

    def postpone_file(self, folder: Path, name: bytes, until: float) -> None:
        """Let a file wait on, at least until then: what read it found it incomplete."""
        with self._lock:
            pending = self._folders.get(folder, {}).get(name)
            if pending is not None:
                pending.not_before = until

    def quiet_s(self, folder: Path, name: bytes, now: float) -> float:
        """Return for how long a file has not changed; 0 for one that does not wait."""
        with self._lock:
            pending = self._folders.get(folder, {}).get(name)
            return 0.0 if pending is None else now - pending.quiet_since

    def forget_files(self, folder: Path, names: Mapping[bytes, FileSignature] | set[bytes]) -> None:
        """Forget files that are gone, or that found their state: those with a signature only if it is still theirs."""
        with self._lock:
            pending = self._folders.get(folder, {})
            for name in list(names):
                if isinstance(names, Mapping) and name in pending and pending[name].signature != names[name]:
                    continue
                self._count -= pending.pop(name, None) is not None
            if not pending:
                self._folders.pop(folder, None)

    def ready_folders(self, now: float) -> list[tuple[Path, dict[bytes, FileSignature]]]:
        """Return the directories in which every waiting file is due, with these files, in the order of their writing.

        A directory in which one file is still being written waits as a whole, as its files may belong together; but
        where files are written all the time, those that are due wait no longer than the quiet time for the others.
        """
        found = []
        with self._lock:
            for folder, files in self._folders.items():
                due = {name: one for name, one in files.items() if one.not_before <= now}
                first = min((one.not_before for one in due.values()), default=now)
                if due and (len(due) == len(files) or first <= now - self.quiet_time_s):
                    found.append((folder, {name: one.signature for name, one in due.items()}))
        return sorted(found, key=_write_order)

    def files_below(self, place: Path) -> dict[Path, dict[bytes, FileSignature]]:
        """Return the waiting files at and below a directory."""
        with self._lock:
            return {
                folder: {name: one.signature for name, one in files.items()}
                for folder, files in self._folders.items()
                if folder == place or place in folder.parents
            }

    def is_busy_below(self, folder: Path, now: float) -> bool:
        """Return whether a file at or below a directory may still be written to.

        One that is quiet and was only postponed is not: else two directories of one profile could wait for each other,
        each postponed while the other one is due.
        """
        with self._lock:
            return any(
                one.complete_at > now
                for path, files in self._folders.items()
                if path == folder or folder in path.parents
                for one in files.values()
            )

    def next_due(self) -> float | None:
        """Return when the next directory is due, None where nothing waits."""
        with self._lock:
            times = ([one.not_before for one in files.values()] for files in self._folders.values() if files)
            return min((min(max(each), min(each) + self.quiet_time_s) for each in times), default=None)


def _write_order(ready: tuple[Path, Mapping[bytes, FileSignature]]) -> tuple[int, Path]:
    """Return when the first file of a directory was written, by the clock of the file system: only an order."""
    folder, files = ready
    return min(signature.mtime_ns for signature in files.values()), folder
