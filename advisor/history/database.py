"""Opening the database: who may write, how it is kept safe on this file system, what happens when it is damaged.

What is committed lasts: a transaction of runs or of what users say returns when it is on the disk, and whoever reads
sees it no sooner. What scans note may be lost with power, as the next scan finds it again. Killed writers lose nothing.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Final

from advisor.history import damage, filesystems
from advisor.history.commit_counter import CommitCounter
from advisor.history.schema import STEPS, VERSION
from advisor.history.writer_lock import acquire_lock, find_writer
from advisor.model.errors import StoreError
from advisor.support.private_files import make_private_folder, open_private_file, refuse_foreign_file, sync_folder

NAME: Final = "history.sqlite"
#: A writer may hold the database for a moment; a reader waits that long (seconds).
PATIENCE_S: Final = 10.0
#: The application number of a backup, in the first page of its file.
BACKUP_MARK: Final = 0x67776275
#: Errors of places where nobody, or not this user, may make a directory.
_ELSEWHERE: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT)


def open_read_only(folder: Path) -> sqlite3.Connection:
    """Return a connection that only reads; raises ``StoreError`` where there is no history or it cannot be read."""
    path = _require_database(folder)
    try:
        _refuse_foreign_files(path)
        alone = is_backup(path) or not (os.access(folder, os.W_OK) or path.with_name(f"{NAME}-wal").exists())
        how = "mode=ro&immutable=1" if alone else "mode=ro"
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=PATIENCE_S)
        with closing_on_error(connection):
            connection.text_factory = damage.decode_text
            _harden_connection(connection)
            damage.refuse_other_version(connection, path)
            connection.execute("SELECT value FROM meta").fetchone()
    except sqlite3.Error as error:
        raise StoreError(damage.describe_error(path, error)) from error
    except OSError as error:
        raise _make_access_error(error, path) from error
    return connection


def database_file(folder: Path) -> Path:
    """Return where the database of a directory is, or will be."""
    return folder / NAME


def is_backup(path: Path) -> bool:
    """Return whether a database is a backup copied into place: a log beside it is not its own."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(72)[68:72]) == BACKUP_MARK


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
    try:
        with closing(CommitCounter(folder)) as counter, closing(_connect(path)) as connection:
            _harden_connection(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            damage.refuse_other_version(connection, path, "its daemon is older than this gapwatch: restart it")
            _set_lasting(connection, lasting=True, local=not filesystems.is_network(folder))
            with run_transaction(connection, path, counter):
                yield connection
    except sqlite3.Error as error:
        raise StoreError(damage.describe_error(path, error)) from error
    except OSError as error:
        raise _make_access_error(error, path) from error


class HistoryWriter:
    """The one process that writes: holds the lock until ``close``.

    ``set_aside`` says why an older database was moved away and what was saved of it, ``lost`` what the database that is
    there has lost of its end; None where all was well. Raises ``StoreError`` where another process writes, the
    directory or a file in it is not the user's, or the database is of a newer gapwatch.
    """

    def __init__(self, folder: Path) -> None:
        self._guard = RLock()
        self.path = folder / NAME
        self.set_aside: str | None = None
        self.lost: str | None = None
        try:
            make_private_folder(folder)
            self._lock = acquire_lock(folder)
        except OSError as error:
            raise _make_access_error(error, self.path) from error
        try:
            _refuse_foreign_files(self.path)
            self._local = not filesystems.is_network(folder)
            self._counter = CommitCounter(folder)
            self.connection = self._open_sound_database()
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, sqlite3.Error):
                raise StoreError(damage.describe_error(self.path, error)) from error
            if isinstance(error, OSError):
                raise _make_access_error(error, self.path) from error
            raise

    @property
    def location(self) -> Path:
        """The directory of the history."""
        return self.path.parent

    @contextmanager
    def lend_connection(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread at a time, to read only; raises ``StoreError``."""
        with self._guard:
            try:
                yield self.connection
            except sqlite3.Error as error:
                raise StoreError(damage.describe_error(self.path, error)) from error

    @contextmanager
    def transaction(self, *, lasting: bool = True) -> Iterator[sqlite3.Connection]:
        """Everything in the block becomes visible together, or none of it; raises ``StoreError``.

        It is on the disk when this returns, unless it need not be ``lasting``: then power loss may undo it, and
        nothing that came before it.
        """
        with self._guard:
            _set_lasting(self.connection, lasting=lasting, local=self._local)
            with run_transaction(self.connection, self.path, self._counter if lasting else None):
                yield self.connection

    def close(self) -> None:
        """Let others write."""
        self.connection.close()
        self._counter.close()
        os.close(self._lock)

    def _open_sound_database(self) -> sqlite3.Connection:
        """Return a connection to the database, to what could be saved of a damaged one, or to a new one."""
        backup = self.path.exists() and is_backup(self.path)
        if backup:
            self._move_foreign_logs()
        known = self._counter.read_count()
        found = damage.inspect_database(self.path, PATIENCE_S)
        if found.damage is None:
            connection = self._connect_database()
            if found.commits < known:
                self.lost = _explain_loss(found.commits, known, backup)
                _skip_run_numbers(connection, known - found.commits)
                self._counter.set_count(found.commits)
            return connection
        self.set_aside = f"{found.damage}; {self._replace_damaged()}"
        return self._connect_database()

    def _replace_damaged(self) -> str:
        """Make a database of what can be saved of the damaged one, put it in its place, and return what that is.

        What cannot be done, on a full disk, leaves the damaged one where it was.
        """
        new = self.path.with_suffix(".rebuilding")
        damage.remove_database(new)
        try:
            with closing(self._connect_database(new)) as connection, run_transaction(connection, new, None):
                saved = damage.salvage_rows(self.path, connection)
        except BaseException:
            damage.remove_database(new)
            raise
        old = damage.replace_database(self.path, new, "damaged")
        self._counter.set_count(1)
        return f"it is now {old.name}; {damage.describe_salvage(saved)}"

    def _move_foreign_logs(self) -> None:
        """Move logs away that were left beside a backup: they belong to the database that was there before."""
        for suffix in damage.SIDE_FILES:
            log = self.path.with_name(self.path.name + suffix)
            if log.exists():
                log.rename(self.path.with_suffix(f".replaced{suffix}"))

    def _connect_database(self, new: Path | None = None) -> sqlite3.Connection:
        """Return a connection to the database, or to a ``new`` one in a single file, with today's tables."""
        path = new or self.path
        is_new = not path.exists()
        os.close(open_private_file(path, os.O_RDWR | os.O_CREAT))
        path.chmod(0o600)
        if is_new:
            sync_folder(path.parent)
        connection = _connect(path)
        with closing_on_error(connection):
            _harden_connection(connection)
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA synchronous = EXTRA")
            if connection.execute("PRAGMA application_id").fetchone() == (BACKUP_MARK,):
                connection.execute("PRAGMA application_id = 0")
            connection.execute(f"PRAGMA journal_mode = {'WAL' if self._local and new is None else 'DELETE'}")
            connection.execute("PRAGMA foreign_keys = ON")
            _migrate_schema(connection, path)
        return connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False)
    connection.text_factory = damage.decode_text
    return connection


def _set_lasting(connection: sqlite3.Connection, *, lasting: bool, local: bool) -> None:
    """Say how long the next commit waits for the disk: that of a rollback journal always, and for its directory too."""
    connection.execute(f"PRAGMA synchronous = {('FULL' if lasting else 'NORMAL') if local else 'EXTRA'}")


def _explain_loss(commits: int, known: int, backup: bool) -> str:
    many = known - commits
    changes = f"the last {many} changes" if many > 1 else "the last change"
    if not commits:
        return f"{changes}, all of the history, are missing"
    if backup:
        return f"a backup was put in its place, without {changes}"
    return f"{changes} are missing: its log was lost or removed, or an older copy was put in its place"


def _skip_run_numbers(connection: sqlite3.Connection, many: int) -> None:
    """Reuse no number that a lost run may have had."""
    connection.execute("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'runs'", (min(many, 1_000_000),))


def _refuse_foreign_files(path: Path) -> None:
    """Raise ``OSError`` where the database or what belongs to it is a link, or another user's."""
    for suffix in ("", *damage.SIDE_FILES):
        place = path.with_name(path.name + suffix)
        with suppress(FileNotFoundError):
            refuse_foreign_file(place, place.lstat())


def _make_access_error(error: OSError, path: Path) -> StoreError:
    advice = "; choose another directory for the history with --state" if error.errno in _ELSEWHERE else ""
    return StoreError(f"{error.filename or path.parent}: {error.strerror or error}{advice}")


def _require_database(folder: Path) -> Path:
    path = folder / NAME
    if not path.exists():
        raise StoreError(f"no history in {folder}; run 'gapwatch watch DIR' to create one")
    return path


@contextmanager
def run_transaction(
    connection: sqlite3.Connection, path: Path, counter: CommitCounter | None
) -> Iterator[sqlite3.Connection]:
    """Lend the connection for one transaction, and count it where it lasts; raises ``StoreError``."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'commits'")
        (count,) = connection.execute("SELECT value FROM meta WHERE name = 'commits'").fetchone()
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        _roll_back(connection)
        raise StoreError(damage.describe_error(path, error)) from error
    except BaseException:
        _roll_back(connection)
        raise
    if counter is not None:
        counter.raise_count(count)


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


@contextmanager
def closing_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Close the connection if what is done with it raises."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _harden_connection(connection: sqlite3.Connection) -> None:
    """Trust neither functions nor anything else that a database file could bring along."""
    connection.execute("PRAGMA trusted_schema = OFF")


def _migrate_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables to today's version, step by step; before the first step the database is copied."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if 0 < version < VERSION:
        kept = path.with_suffix(f".version-{version}")
        os.close(open_private_file(kept, os.O_RDWR | os.O_CREAT))
        with closing(sqlite3.connect(kept)) as copy:
            connection.backup(copy)
    for number, step in enumerate(STEPS[version:], start=version + 1):
        connection.executescript(f"BEGIN IMMEDIATE; {step}; PRAGMA user_version = {number}; COMMIT;")
