"""Opening the database: who may write, how it is kept safe on this file system, what happens when it is damaged.

Killed writers lose nothing: SQLite's journal sees to that. What SQLite does not notice is a write-ahead log that was
deleted, or a database copied without it: rows are gone and every check passes. So each transaction counts itself, in
the database and after it in a file of its own; a database that knows of fewer is set aside.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import struct
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Final

from advisor.history import filesystems
from advisor.history.schema import STEPS, VERSION
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = "history.sqlite"
LOCK: Final = "lock"
COUNTER: Final = "commits"
#: A writer may hold the database for a moment; a reader waits that long (seconds).
PATIENCE_S: Final = 10.0
_COUNT: Final = struct.Struct("<Q")


def open_read_only(folder: Path) -> sqlite3.Connection:
    """Return a connection that only reads; raises ``StoreError`` where there is no history or it cannot be read."""
    path = _require_database(folder)
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE_S)
        with _closing_on_error(connection):
            _harden_connection(connection)
            _refuse_other_version(connection, path)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
    return connection


def find_writer(folder: Path) -> str | None:
    """Return who writes to the history, None where nobody does."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "somebody"
    finally:
        os.close(descriptor)
    return None


def copy_history(folder: Path, target: Path) -> None:
    """Write a complete copy of the history to ``target``, also while it is written to; raises ``StoreError``.

    ``target`` must not exist. A plain copy of the file would lack what stands in its journal.
    """
    source = open_read_only(folder)
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with _closing_connection(sqlite3.connect(target)) as made:
            source.backup(made)
    except FileExistsError as error:
        raise StoreError(f"{target}: {error.strerror}; choose a file that does not exist") from error
    except OSError as error:
        raise StoreError(f"{target}: {error.strerror}") from error
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise StoreError(f"{target}: {error}; nothing was copied") from error
    finally:
        source.close()


@contextmanager
def open_transaction(folder: Path) -> Iterator[sqlite3.Connection]:
    """One transaction for what a user says of a history that is there, also while the daemon writes to it.

    Where nobody holds the lock this is a ``HistoryWriter``. Beside its holder, who has checked the database, SQLite's
    own locks keep both apart; on network file systems only where both run on the same host. Raises ``StoreError``.
    """
    path = _require_database(folder)
    who = find_writer(folder)
    if who is None:
        writer = HistoryWriter(folder)
        try:
            with writer.transaction() as connection:
                yield connection
        finally:
            writer.close()
        return
    if filesystems.is_network(folder) and not who.endswith(f" on {os.uname().nodename}"):
        raise StoreError(f"{folder} is in use by gapwatch on another host ({who}): run the command there")
    counter = os.open(folder / COUNTER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with _closing_connection(sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)) as connection:
            _harden_connection(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            _refuse_other_version(connection, path, "its process is older than this one: start it again")
            yield from _run_transaction(connection, path, counter)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
    finally:
        os.close(counter)


class HistoryWriter:
    """The one process that writes: holds the lock until ``close``.

    ``set_aside`` says why an older database was moved away, None where all was well. Raises ``StoreError`` where
    another process writes, or the database is of a newer gapwatch.
    """

    def __init__(self, folder: Path) -> None:
        self._guard = RLock()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self.path = folder / NAME
        self._lock = _acquire_lock(folder / LOCK)
        self._counter = os.open(folder / COUNTER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self.set_aside = self._find_damage()
            if self.set_aside:
                _move_away(self.path)
                os.pwrite(self._counter, _COUNT.pack(0), 0)
            self.connection = self._open_database()
        except BaseException as error:
            os.close(self._lock)
            os.close(self._counter)
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"{self.path}: {error}") from error
            raise

    @contextmanager
    def lend_connection(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread at a time, to read only; raises ``StoreError``."""
        with self._guard:
            try:
                yield self.connection
            except sqlite3.Error as error:
                raise StoreError(f"{self.path}: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything in the block becomes visible together and lasts, or none of it; raises ``StoreError``."""
        with self._guard:
            yield from _run_transaction(self.connection, self.path, self._counter)

    def close(self) -> None:
        """Let others write."""
        self.connection.close()
        os.close(self._counter)
        os.close(self._lock)

    def _open_database(self) -> sqlite3.Connection:
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self.path.chmod(0o600)
        connection = sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False)
        with _closing_on_error(connection):
            _harden_connection(connection)
            local = not filesystems.is_network(self.path.parent)
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute(f"PRAGMA journal_mode = {'WAL' if local else 'DELETE'}")
            connection.execute(f"PRAGMA synchronous = {'NORMAL' if local else 'FULL'}")
            connection.execute("PRAGMA foreign_keys = ON")
            _migrate_schema(connection, self.path)
        return connection

    def _find_damage(self) -> str | None:
        """Return what is wrong with the database that is there, None where nothing is."""
        known = _read_counter(self._counter)
        if not self.path.exists() or not self.path.stat().st_size:
            return f"all of its {known} transactions are missing" if known else None
        try:
            with _closing_connection(sqlite3.connect(self.path, timeout=PATIENCE_S)) as connection:
                (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if found != "ok":
                    return f"it is damaged: {found}"
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                _refuse_other_version(connection, self.path)
                commits = "SELECT value FROM meta WHERE name = 'commits'"
                (count,) = connection.execute(commits).fetchone() if version else (0,)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreError(f"{self.path}: {error}") from error
            return f"it cannot be read: {error}"
        except sqlite3.DatabaseError as error:
            return f"it is damaged: {error}"
        return f"{known - count} of its transactions are missing" if count < known else None


def _require_database(folder: Path) -> Path:
    path = folder / NAME
    if not path.exists():
        raise StoreError(f"no history in {folder}; run 'gapwatch watch DIR' to create one")
    return path


def _run_transaction(connection: sqlite3.Connection, path: Path, counter: int) -> Iterator[sqlite3.Connection]:
    """Lend the connection for one transaction, and count it; raises ``StoreError``."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'commits'")
        (count,) = connection.execute("SELECT value FROM meta WHERE name = 'commits'").fetchone()
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        _roll_back(connection)
        raise StoreError(f"{path}: {error}") from error
    except BaseException:
        _roll_back(connection)
        raise
    if count > _read_counter(counter):  # another process may have counted on
        os.pwrite(counter, _COUNT.pack(count), 0)


def _read_counter(counter: int) -> int:
    said = os.pread(counter, _COUNT.size, 0)
    return int(_COUNT.unpack(said)[0]) if len(said) == _COUNT.size else 0


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


@contextmanager
def _closing_connection(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _closing_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Close the connection if what is done with it raises."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _harden_connection(connection: sqlite3.Connection) -> None:
    """Trust neither functions nor anything else that a database file could bring along."""
    connection.execute("PRAGMA trusted_schema = OFF")


def _refuse_other_version(connection: sqlite3.Connection, path: Path, older: str = "") -> None:
    """Raise ``StoreError`` for a database of a newer gapwatch; for one that is ``older``, too, where that is said."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer gapwatch (schema {version}, supported {VERSION}): upgrade this one"
        )
    if older and version < VERSION:
        raise StoreError(f"{path} is of version {version}, here {VERSION}; {older}")


def _migrate_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables to today's version, step by step; before the first step the database is copied."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if 0 < version < VERSION:
        with _closing_connection(sqlite3.connect(path.with_suffix(f".version-{version}"))) as copy:
            connection.backup(copy)
    for number, step in enumerate(STEPS[version:], start=version + 1):
        connection.executescript(f"BEGIN IMMEDIATE; {step}; PRAGMA user_version = {number}; COMMIT;")


def _acquire_lock(path: Path) -> int:
    """Return the open lock file, which says who holds it; raises ``StoreError`` where another process does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
        os.close(descriptor)
        raise StoreError(f"{path.parent} is in use by another gapwatch{f' ({holder})' if holder else ''}") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)
    return descriptor


def _move_away(path: Path) -> None:
    """Rename the database and its journal, keeping both; a number tells several apart."""
    number = 1
    while path.with_suffix(f".damaged-{number}").exists():
        number += 1
    for suffix in ("", "-wal", "-shm"):
        old = path.with_name(path.name + suffix)
        if old.exists():
            old.rename(path.with_name(f"{path.stem}.damaged-{number}{suffix}"))
