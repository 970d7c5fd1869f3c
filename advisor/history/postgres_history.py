"""A history on a PostgreSQL server: daemons on many nodes write, and every role with read access reads.

What is committed lasts, as far as the server's disk does: a transaction of runs or of what users say returns when the
server has it in its log on the disk. Such transactions are made one after the other, in the order of the numbers of
runs. What scans note is of one daemon only; it does not wait, neither for others nor for the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from advisor.history.dialect import StoreLost
from advisor.history.postgres_connection import PostgresConnection, make_schema, require_schema
from advisor.model.errors import StoreError

if TYPE_CHECKING:
    from advisor.history.location import HistoryServer

#: The first of the two numbers of the lock that a daemon holds; the second is a hash of its name.
_WATCH: Final = 0x67617077
#: A server that went away in the midst of a commit is waited for so long, so often (seconds).
_RETURN_S: Final = 15.0
_PAUSE_S: Final = 0.25
#: A daemon that was killed is gone for the server a moment later (seconds).
_GONE_S: Final = 5.0


def open_read_only(server: HistoryServer) -> PostgresConnection:
    """Return a connection that only reads; raises ``StoreError`` where there is no history or it cannot be read."""
    connection = PostgresConnection(server, read_only=True)
    try:
        require_schema(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def open_transaction(server: HistoryServer) -> Iterator[PostgresConnection]:
    """One transaction for what a user says, also while daemons write; raises ``StoreError``."""
    writer = PostgresWriter(server, watches=False)
    try:
        with writer.transaction() as connection:
            yield connection
    finally:
        writer.close()


def find_writers(connection: PostgresConnection) -> tuple[str, ...]:
    """Return the names of the daemons that write."""
    rows = connection.execute(
        "SELECT DISTINCT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' "
        "AND classid = ? AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "ORDER BY application_name",
        (_WATCH,),
    )
    return tuple(name for (name,) in rows)


class PostgresWriter:
    """Who writes: a daemon, which alone ``watches`` under its name, or a command for the time of a transaction.

    Connects anew where the server was away. Threads may share it. Raises ``StoreError``.
    """

    #: A server sees itself to what is damaged or lost.
    set_aside: str | None = None
    lost: str | None = None

    def __init__(self, server: HistoryServer, *, watches: bool = True) -> None:
        self.location = server
        self._watches = watches
        self._guard = RLock()
        self._connection: PostgresConnection | None = None
        self._require_connection()

    @property
    def connection(self) -> PostgresConnection:
        """The connection, made anew where the server was away."""
        return self._require_connection()

    @contextmanager
    def lend_connection(self) -> Iterator[PostgresConnection]:
        """Lend the connection to one thread at a time, to read only."""
        with self._guard:
            yield self._require_connection()

    @contextmanager
    def transaction(self, *, lasting: bool = True) -> Iterator[PostgresConnection]:
        """Everything in the block becomes visible together, or none of it; see ``HistoryWriter.transaction``."""
        with self._guard:
            connection, mark = self._begin(lasting=lasting)
            try:
                yield connection
            except BaseException:
                connection.roll_back()
                raise
            try:
                connection.commit_transaction()
            except StoreLost as error:
                if mark is None or not self._was_committed(mark, error):
                    raise

    def _begin(self, *, lasting: bool) -> tuple[PostgresConnection, str | None]:
        """Begin a transaction; where the server went away since the last one, on a connection made anew."""
        connection = self._require_connection()
        try:
            return connection, connection.begin_transaction(lasting=lasting)
        except StoreLost:
            connection.roll_back()
            if connection.is_alive():
                raise
        connection = self._require_connection()
        return connection, connection.begin_transaction(lasting=lasting)

    def close(self) -> None:
        """Let others write under this name."""
        with self._guard:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _require_connection(self) -> PostgresConnection:
        if self._connection is not None and self._connection.is_alive():
            return self._connection
        self.close()
        connection = PostgresConnection(self.location, read_only=False)
        try:
            make_schema(connection)
            if self._watches:
                self._hold_name(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _hold_name(self, connection: PostgresConnection) -> None:
        """Let no other daemon write under this name; two would take each other's files for their own."""
        end = monotonic() + _GONE_S
        asked = "SELECT pg_try_advisory_lock(?::int, hashtext(?))"
        while not connection.execute(asked, (_WATCH, self.location.writer)).fetchone()[0]:
            if monotonic() > end:
                raise StoreError(
                    f"{self.location} is in use by another gapwatch named {self.location.writer}: "
                    "give this one another, with ?application_name=NAME in the URL"
                )
            sleep(_PAUSE_S)

    @contextmanager
    def _prove_alone(self) -> Iterator[PostgresConnection]:
        """Lend the connection while no transaction is under way, not even an abandoned one."""
        connection = self._require_connection()
        connection.run_script("BEGIN; SELECT pg_advisory_xact_lock(hashtext('gapwatch write'))")
        try:
            yield connection
        finally:
            connection.roll_back()

    def _was_committed(self, mark: str, lost: StoreLost) -> bool:
        """Return whether a transaction with an unknown end was committed, once the server answers again."""
        end = monotonic() + _RETURN_S
        while monotonic() < end:
            try:
                with self._prove_alone() as connection:
                    return connection.find_mark() == mark
            except StoreError:
                sleep(_PAUSE_S)
        raise StoreLost(f"{lost}; whether the last change was stored is not known, and it is made again") from None
