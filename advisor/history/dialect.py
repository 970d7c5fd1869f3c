"""What the two databases have in common, and the few things that each says in its own way.

Statements are written once, with ``?`` for values, in the SQL that both understand. A history on a server has a
``writer``: what a daemon keeps of its own files is under that name.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from advisor.model.errors import StoreError

#: An index of PostgreSQL holds no more of a name (bytes).
LONGEST_NAME_B: Final = 1_000


class StoreLost(StoreError):
    """The server of a history does not answer, or refused what was asked: nothing is known of what is stored."""


class HistoryRows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    @property
    def lastrowid(self) -> int | None:
        """The number of the row that was inserted last."""

    def fetchone(self) -> Any:  # noqa: ANN401 - whatever the columns hold
        """Return the next row, None after the last."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""

    def __iter__(self) -> Iterator[Any]: ...


class HistoryConnection(Protocol):
    """A connection to either database."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> HistoryRows:
        """Execute one statement."""

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> HistoryRows:
        """Execute one statement for each of several rows of values."""

    def close(self) -> None:
        """Close the connection."""


def find_writer_name(connection: HistoryConnection) -> str | None:
    """Return the name under which a connection writes to a server; None for a history of one user."""
    found: str | None = getattr(connection, "writer", None)
    return found


def encode_path(connection: HistoryConnection, path: Path) -> bytes:
    """Return a path as the database holds it: on a server with the name of the writer whose path it is."""
    writer = find_writer_name(connection)
    return os.fsencode(path) if writer is None else f"{writer}:".encode() + os.fsencode(path)


def decode_path(connection: HistoryConnection, stored: bytes) -> str:
    """Return a path of our own as it is, that of another writer as ``WRITER:PATH``."""
    writer = find_writer_name(connection)
    return os.fsdecode(stored if writer is None else stored.removeprefix(f"{writer}:".encode()))


def select_own_folders(connection: HistoryConnection) -> tuple[str, tuple[bytes, ...]]:
    """Return the condition that the column ``folder`` is one of our own, to be put after others."""
    writer = find_writer_name(connection)
    if writer is None:
        return "", ()
    # Paths are absolute: those of a writer are from "NAME:/" up to "NAME:0", the character after the slash.
    own = " AND folder IN (SELECT id FROM folders WHERE path >= ? AND path < ?)"
    return own, (f"{writer}:/".encode(), f"{writer}:0".encode())


def own_key(connection: HistoryConnection, name: str) -> str:
    """Return the key of what each writer keeps for itself."""
    writer = find_writer_name(connection)
    return name if writer is None else f"{writer}:{name}"


def newest_file_columns(connection: HistoryConnection) -> str:
    """Return the columns with folder and name of the newest file of a group, by the time of its last change."""
    if find_writer_name(connection) is None:
        return "path, name, max(ctime_ns)"  # SQLite takes them from the row of the maximum
    newest = "(array_agg({} ORDER BY ctime_ns DESC))[1]"
    return f"{newest.format('path')}, {newest.format('name')}, max(ctime_ns)"


def measure_size_B(connection: HistoryConnection) -> int:
    """Return the size of a history in bytes: all pages in use, on a server those of the advice, which is most of it.

    PostgreSQL gives free pages back when it likes, so that its pages do not tell what dropping runs has won.
    """
    if find_writer_name(connection) is not None:
        asked = "SELECT coalesce(sum(octet_length({})), 0) FROM {}"
        parts = (("advice", "runs"), ("content", "summaries"))
        return sum(int(connection.execute(asked.format(*part)).fetchone()[0]) for part in parts)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def release_space(connection: HistoryConnection) -> None:
    """Give pages that are free back to the file system; PostgreSQL sees to that itself."""
    if isinstance(connection, sqlite3.Connection):
        connection.executescript("PRAGMA incremental_vacuum;")


def read_change_mark(connection: HistoryConnection) -> int:
    """Return a number that is another one after something was written."""
    if find_writer_name(connection) is None:
        asked = "SELECT value FROM meta WHERE name = 'commits'"
    else:
        asked = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    return int(connection.execute(asked).fetchone()[0])


def has_table(connection: HistoryConnection, name: str) -> bool:
    """Return whether there is a table; histories of older versions lack some."""
    if find_writer_name(connection) is not None:
        return True  # only a history of today's version is opened
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None
