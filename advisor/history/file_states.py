"""Every file that was ever seen, and the one state that it is in."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from advisor.history import dialect

if TYPE_CHECKING:
    from advisor.history.dialect import HistoryConnection

State = Literal["waiting", "ingested", "duplicate", "quarantined", "ignored"]
STATES: Final[tuple[State, ...]] = ("waiting", "ingested", "duplicate", "quarantined", "ignored")
#: More files than there are.
_ALL: Final = 2**62
_STORE_FILE: Final = (
    "INSERT INTO files (folder, name, device, inode, size, mtime_ns, ctime_ns, state, reason, unit) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (folder, name) DO UPDATE SET device = excluded.device, "
    "inode = excluded.inode, size = excluded.size, mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, "
    "state = excluded.state, reason = excluded.reason, unit = excluded.unit"
)


class FileSignature(NamedTuple):
    """The identity of a file's content; its time is never compared with our clock. A tuple, as there are very many."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class FileStates:
    """The files of the database; every method works inside the transaction that its caller opened."""

    def __init__(self, connection: HistoryConnection) -> None:
        self._connection = connection
        self._folders: dict[bytes, int] = {}

    def known_files(
        self, folder: Path, names: Collection[bytes] | None = None
    ) -> dict[bytes, tuple[FileSignature, State]]:
        """Return the files known in ``folder`` by name, or those of a few ``names``."""
        only = "" if names is None else f" AND name IN ({', '.join('?' * len(names))})"
        rows = self._connection.execute(
            "SELECT name, device, inode, size, mtime_ns, ctime_ns, state FROM files "
            f"JOIN folders ON folders.id = folder WHERE path = ?{only}",
            (dialect.encode_path(self._connection, folder), *(names or ())),
        )
        make = FileSignature._make
        return {row[0]: (make(row[1:6]), row[6]) for row in rows}

    def store_files(
        self,
        folder: Path,
        files: Mapping[bytes, FileSignature],
        state: State,
        reason: str | None = None,
        unit: int | None = None,
    ) -> None:
        """Note the state of files of a folder, whatever it was."""
        number = self._folder_number(folder)
        self._connection.executemany(
            _STORE_FILE,
            [
                (number, name, s.device, s.inode, s.size, s.mtime_ns, s.ctime_ns, state, reason, unit)
                for name, s in files.items()
            ],
        )

    def forget_files(self, folder: Path, names: Iterable[bytes]) -> None:
        """Drop files that are gone; runs that came of them stay."""
        number = self._folder_number(folder)
        self._connection.executemany(
            "DELETE FROM files WHERE folder = ? AND name = ?", [(number, name) for name in names]
        )

    def known_folders(self, root: Path) -> set[Path]:
        """Return the directories at and below ``root`` in which files are known."""
        top = dialect.encode_path(self._connection, root)
        rows = self._connection.execute("SELECT path FROM folders WHERE EXISTS (SELECT 1 FROM files WHERE folder = id)")
        below = top.rstrip(b"/") + b"/"
        return {Path(self._decode(path)) for (path,) in rows if path == top or path.startswith(below)}

    def waiting_files(self, roots: Iterable[Path], most: int = _ALL) -> list[tuple[Path, bytes, FileSignature]]:
        """Return the pending files below ``roots``, up to a limit, those of one directory together.

        What waits elsewhere is left to whoever watches it: nobody here would ever read it.
        """
        tops = [dialect.encode_path(self._connection, root).rstrip(b"/") for root in roots]
        # What is below a directory is from "TOP/" up to "TOP0", the character after the slash.
        below = " OR ".join(["path = ? OR (path >= ? AND path < ?)"] * len(tops)) or "1 = 0"
        rows = self._connection.execute(
            "SELECT path, name, device, inode, size, mtime_ns, ctime_ns FROM "
            f"(SELECT * FROM files WHERE state = 'waiting' AND folder IN (SELECT id FROM folders WHERE {below}) "
            "ORDER BY folder, name LIMIT ?) AS waiting JOIN folders ON folders.id = folder",
            (*(value for top in tops for value in (top, top + b"/", top + b"0")), most),
        )
        return [(Path(self._decode(path)), name, FileSignature(*numbers)) for path, name, *numbers in rows]

    def retry_refused_files(self, reason: str) -> None:
        """Let our own files in quarantine, and those that are ignored for this reason, wait again."""
        own, values = dialect.select_own_folders(self._connection)
        self._connection.execute(
            "UPDATE files SET state = 'waiting', reason = NULL "
            f"WHERE (state = 'quarantined' OR (state = 'ignored' AND reason = ?)){own}",
            (reason, *values),
        )

    def count_states(self) -> dict[State, int]:
        """Return how many files are in each state; together they are all files that were ever seen and still exist."""
        found = dict(self._connection.execute("SELECT state, count(*) FROM files GROUP BY state").fetchall())
        return {state: found.get(state, 0) for state in STATES}

    def find_troubles(self, most: int = 100) -> list[tuple[str, State, str]]:
        """Return path, state and reason of files in quarantine or waiting for one, the newest first."""
        rows = self._connection.execute(
            "SELECT path, name, state, reason FROM files JOIN folders ON folders.id = folder "
            "WHERE state = 'quarantined' OR (state = 'waiting' AND reason IS NOT NULL) ORDER BY ctime_ns DESC LIMIT ?",
            (most,),
        )
        return [
            (os.path.join(self._decode(path), os.fsdecode(name)), state, reason) for path, name, state, reason in rows
        ]

    def count_ignored(self) -> list[tuple[str, int, str]]:
        """Return why files are ignored, how many for each reason, and the newest of them."""
        rows = self._connection.execute(
            f"SELECT reason, count(*), {dialect.newest_file_columns(self._connection)} FROM files "
            "JOIN folders ON folders.id = folder WHERE state = 'ignored' GROUP BY reason ORDER BY count(*) DESC, reason"
        )
        return [
            (reason or "", many, os.path.join(self._decode(path), os.fsdecode(name)))
            for reason, many, path, name, _ in rows
        ]

    def _folder_number(self, folder: Path) -> int:
        path = dialect.encode_path(self._connection, folder)
        if path not in self._folders:
            self._connection.execute("INSERT INTO folders (path) VALUES (?) ON CONFLICT DO NOTHING", (path,))
            [row] = self._connection.execute("SELECT id FROM folders WHERE path = ?", (path,)).fetchall()
            self._folders[path] = row[0]
        return self._folders[path]

    def _decode(self, path: bytes) -> str:
        return dialect.decode_path(self._connection, path)
