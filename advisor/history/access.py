"""The way into a history, wherever it is: to read it, to write it as a daemon, to say something of an item."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from advisor.history import damage, database
from advisor.history.location import HistoryLocation, HistoryServer
from advisor.history.writer_lock import find_writer
from advisor.model.errors import StoreError
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from types import ModuleType

    from advisor.history.dialect import HistoryConnection

#: Connections that were opened while the network could still be reached, or why they could not.
_opened_ahead: dict[HistoryServer, HistoryConnection | StoreError] = {}


class Writer(Protocol):
    """Who writes to a history; ``set_aside`` and ``lost`` say what was wrong with it when it was opened."""

    set_aside: str | None
    lost: str | None

    @property
    def location(self) -> HistoryLocation:
        """Where the history is."""

    @property
    def connection(self) -> HistoryConnection:
        """The connection, for who is alone with it."""

    def lend_connection(self) -> AbstractContextManager[HistoryConnection]:
        """Lend the connection to one thread at a time, to read only; raises ``StoreError``."""

    def transaction(self, *, lasting: bool = True) -> AbstractContextManager[HistoryConnection]:
        """Everything in the block becomes visible together, or none of it; raises ``StoreError``."""

    def close(self) -> None:
        """Let others write."""


def open_writer(location: HistoryLocation, *, watches: bool = True) -> Writer:
    """Return who writes to a history, which is made where it is missing; raises ``StoreError``.

    On a server only who ``watches`` directories is alone under its name; in a directory any writer is alone.
    """
    if isinstance(location, HistoryServer):
        writer: Writer = _load_postgres().PostgresWriter(location, watches=watches)
        return writer
    return database.HistoryWriter(location)


def open_read_only(location: HistoryLocation) -> HistoryConnection:
    """Return a connection that only reads; raises ``StoreError`` where there is no history or it cannot be read."""
    if not isinstance(location, HistoryServer):
        return database.open_read_only(location)
    ahead = _opened_ahead.get(location)
    if isinstance(ahead, StoreError):
        raise ahead
    if ahead is not None:
        return ahead
    connection: HistoryConnection = _load_postgres().open_read_only(location)
    return connection


def connect_early(location: HistoryLocation) -> None:
    """Connect to a server now, for all that reads in this process later, when it may reach no network any more."""
    if isinstance(location, HistoryServer):
        try:
            _opened_ahead[location] = _EarlyConnection(open_read_only(location))
        except StoreError as error:
            _opened_ahead[location] = error


class _EarlyConnection:
    """A connection that stays open when its user closes it, and is used again."""

    def __init__(self, connection: HistoryConnection) -> None:
        self.execute, self.executemany = connection.execute, connection.executemany
        self.writer: str | None = getattr(connection, "writer", None)

    def close(self) -> None:
        """Leave it open."""


@contextmanager
def read_history(location: HistoryLocation) -> Iterator[HistoryConnection]:
    """Give a connection that only reads, and close it afterwards; raises ``StoreError``, also for damage met later."""
    with closing(open_read_only(location)) as connection, explain_errors(location):
        yield connection


@contextmanager
def explain_errors(location: HistoryLocation) -> Iterator[None]:
    """Raise ``StoreError`` in place of what SQLite raises; a connection to a server does so itself."""
    try:
        yield
    except sqlite3.Error as error:
        path = database.database_file(location) if not isinstance(location, HistoryServer) else None
        raise StoreError(damage.describe_error(path, error) if path is not None else str(error)) from error


def open_transaction(location: HistoryLocation) -> AbstractContextManager[HistoryConnection]:
    """One transaction for what a user says of a history that is there, also while daemons write to it."""
    if isinstance(location, HistoryServer):
        transaction: AbstractContextManager[HistoryConnection] = _load_postgres().open_transaction(location)
        return transaction
    return database.open_transaction(location)


def has_history(location: HistoryLocation) -> bool:
    """Return whether there is a history to read; true for a server, whose errors readers get to see."""
    return isinstance(location, HistoryServer) or database.database_file(location).exists()


def describe_writers(location: HistoryLocation, connection: HistoryConnection) -> str | None:
    """Return who writes to a history, None where nobody does."""
    if not isinstance(location, HistoryServer):
        return find_writer(location)
    return ", ".join(_load_postgres().find_writers(connection)) or None


def list_marked_files(location: HistoryLocation) -> list[Path]:
    """Return the files in which readers note what they read: such as the index of a log."""
    if isinstance(location, HistoryServer):
        return []
    path = database.database_file(location)
    return [path.with_name(f"{path.name}-shm")]


def _load_postgres() -> ModuleType:
    """Return what talks to a server; raises ``StoreError`` where the extra is missing."""
    if importlib.util.find_spec("psycopg") is None:
        raise StoreError(f"a history on PostgreSQL needs psycopg: {install_line('postgres')}")
    from advisor.history import postgres_history

    return postgres_history
