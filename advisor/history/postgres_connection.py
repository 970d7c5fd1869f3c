"""One connection to a PostgreSQL server, which takes the statements of the stores and says in one line what fails."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from secrets import token_hex
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import errors, pq

from advisor.history.dialect import HistoryRows, StoreLost
from advisor.history.postgres_schema import READERS, SCHEMA, VERSION, WRITERS, render_schema
from advisor.support.descriptors import has_input

if TYPE_CHECKING:
    from advisor.history.location import HistoryServer

#: Who can only be waited for (seconds): the server that is connected to, a lock, and another end that went silent.
_CONNECT_S: Final = 10
_LOCK_S: Final = 60
_SILENT_S: Final = 30
#: A server that starts, or recovers after a crash, is waited for so long, and asked so often (seconds).
_STARTING_S: Final = 60
_PAUSE_S: Final = 0.25
#: The oldest server with ``pg_current_snapshot``.
_LEAST_SERVER: Final = 130000
_MARK: Final = "commit"
_NEW_SCHEMA: Final = "gapwatch config database"
#: Whoever stores runs or says something of items holds this lock, one at a time, as with SQLite.
_WRITE_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('gapwatch write'))"
_ADVICE: Final = (
    ("password authentication failed|no password supplied", "; check the user, and ~/.pgpass (mode 600)"),
    (r'database ".*" does not exist', "; create it on the server: createdb NAME"),
    (r'role ".*" does not exist', "; create it on the server: createuser NAME"),
    ("Connection refused|No such file or directory|could not translate|timeout expired", "; is the server running?"),
)


class _Cursor(psycopg.Cursor[Any]):
    @property
    def lastrowid(self) -> int | None:
        """The number that the last row of this connection got."""
        row = self.connection.execute("SELECT lastval()").fetchone()
        return None if row is None else int(row[0])


class PostgresConnection:
    """A connection that commits each statement, but between begin and end of a transaction; raises ``StoreLost``.

    For one thread at a time. One that is ``read_only`` changes nothing, whatever its role may do.
    """

    def __init__(self, server: HistoryServer, *, read_only: bool) -> None:
        self.server, self.writer = server, server.writer
        self._raw = _connect(server)
        try:
            self._prepare_session(read_only=read_only)
        except BaseException:
            self._raw.close()
            raise

    def _prepare_session(self, *, read_only: bool) -> None:
        info = self._raw.info
        if info.server_version < _LEAST_SERVER:
            raise StoreLost(f"{self.server}: PostgreSQL {info.server_version // 10000}; 13 or later is needed")
        if info.parameter_status("server_encoding") != "UTF8":
            raise StoreLost(f"{self.server}: the database must be encoded in UTF8")
        # The other end may go silent in the midst of a transaction: nobody else is to wait for it for long.
        settings = [
            f"search_path = {SCHEMA}", f"lock_timeout = '{_LOCK_S}s'",
            f"idle_in_transaction_session_timeout = '{_LOCK_S}s'", f"tcp_keepalives_idle = {_SILENT_S}",
            "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3",
        ]  # fmt: skip
        settings += ["client_connection_check_interval = '5s'"] if info.server_version >= 140000 else []
        settings += ["default_transaction_read_only = on"] if read_only else []
        self.run_script("; ".join(f"SET {one}" for one in settings))
        if not read_only and self.execute("SHOW synchronous_commit").fetchone() == ("off",):
            self.execute("SET synchronous_commit = on")  # what is told has lasted

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> HistoryRows:
        """Execute one statement."""
        try:
            cursor = _Cursor(self._raw)
            cursor.execute(_translate(statement), [*map(_clean_value, values)])
        except psycopg.Error as error:
            raise describe_error(self.server, error) from None
        return cursor

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> HistoryRows:
        """Execute one statement for each of several rows of values."""
        try:
            cursor = _Cursor(self._raw)
            cursor.executemany(_translate(statement), [[*map(_clean_value, row)] for row in values])
        except psycopg.Error as error:
            raise describe_error(self.server, error) from None
        return cursor

    def run_script(self, text: str) -> None:
        """Execute statements of our own, which take no values."""
        try:
            self._raw.execute(text.encode(), prepare=False)
        except psycopg.Error as error:
            raise describe_error(self.server, error) from None

    def begin_transaction(self, *, lasting: bool) -> str | None:
        """Begin a transaction; such as are to last are made one after the other, and the mark that they leave returned.

        The number of a transaction would tell nothing: a server that was killed may give it again.
        """
        if not lasting:
            self.run_script("BEGIN; SET LOCAL synchronous_commit = off")
            return None
        self.run_script(f"BEGIN; {_WRITE_LOCK}")
        mark = token_hex(16)
        self.execute(
            "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (f"{self.writer}:{_MARK}", mark),
        )
        return mark

    def find_mark(self) -> str | None:
        """Return the mark of the last transaction under this name that lasted."""
        row = self.execute("SELECT value FROM meta WHERE name = ?", (f"{self.writer}:{_MARK}",)).fetchone()
        return None if row is None else row[0]

    def commit_transaction(self) -> None:
        """End the transaction; it is on the disk of the server if it is to last."""
        self.run_script("COMMIT")

    def roll_back(self) -> None:
        """Undo the transaction, if the server still knows it."""
        if not self._raw.closed and self._raw.info.transaction_status != pq.TransactionStatus.IDLE:
            try:
                self._raw.execute("ROLLBACK")
            except psycopg.Error:
                self._raw.close()

    def is_alive(self) -> bool:
        """Return whether nothing is known to be wrong: an idle server that says something says that it ends."""
        return not self._raw.closed and not has_input(self._raw.pgconn.socket, 0)

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()


def _connect(server: HistoryServer) -> psycopg.Connection[Any]:
    """Connect, also to a server that is about to answer: it refuses everybody until it has started."""
    end = monotonic() + _STARTING_S
    while True:
        try:
            return psycopg.connect(
                server.url, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECT_S,
                application_name=server.writer, client_encoding="UTF8", keepalives_idle=_SILENT_S,
                keepalives_interval=5, keepalives_count=3, tcp_user_timeout=1000 * _SILENT_S,
            )  # fmt: skip
        except psycopg.Error as error:
            starting = pq.PGconn.ping(server.url.encode()) == pq.Ping.REJECT
            if not starting or monotonic() > end:
                raise describe_error(server, error) from None
            sleep(_PAUSE_S)


def require_schema(connection: PostgresConnection) -> None:
    """Raise ``StoreLost`` where the tables are missing, of another version, or not for this role."""
    version = read_schema_version(connection)
    if version is None:
        raise StoreLost(
            f"{connection.server} holds no history; run 'gapwatch watch DIR' as the owner of the database, or "
            f"'{_NEW_SCHEMA}' for the statements that create one"
        )
    if version > VERSION:
        raise StoreLost(
            f"{connection.server} was written by a newer gapwatch (schema {version}, supported {VERSION}): "
            "upgrade this one"
        )
    if version < VERSION:
        raise StoreLost(
            f"{connection.server} is of version {version}, here {VERSION}: its owner upgrades it with '{_NEW_SCHEMA}'"
        )


def read_schema_version(connection: PostgresConnection) -> int | None:
    """Return the version of the tables, None where there are none."""
    if connection.execute(f"SELECT to_regclass('{SCHEMA}.meta')").fetchone()[0] is None:
        return None
    row = connection.execute(f"SELECT value FROM {SCHEMA}.meta WHERE name = 'schema'").fetchone()
    return int(row[0]) if row is not None else 0


def make_schema(connection: PostgresConnection) -> None:
    """Make the tables, or bring them to today's version, where this role may."""
    version = read_schema_version(connection)
    if version is None or version < VERSION:
        try:
            connection.run_script(render_schema())
        except StoreLost as error:
            connection.roll_back()
            raise StoreLost(f"{error}; whoever may runs the statements of '{_NEW_SCHEMA}'") from None
    require_schema(connection)


def describe_error(server: HistoryServer, error: psycopg.Error) -> StoreLost:
    """Return in one line what the server, or the way to it, has to say. No password is in it: none is in the URL."""
    said = error.diag.message_primary or _last_line(str(error))
    advice = next((more for pattern, more in _ADVICE if re.search(pattern, said)), "")
    if isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
        advice = f"; members of {WRITERS} may write, those of {READERS} read ('{_NEW_SCHEMA}')"
    return StoreLost(f"{server}: {said}{advice}")


def _last_line(text: str) -> str:
    """Return the last thing that was said about connecting: what the server said, else the system."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("\t")]
    failed = [line for line in lines if "FATAL:" in line] or [line for line in lines if "failed:" in line] or lines
    line = failed[-1] if failed else "the connection failed"
    return re.sub(r"^connection failed: |^connection is bad: ", "", line).replace("FATAL:  ", "")


@lru_cache(512)
def _translate(statement: str) -> bytes:
    """Return a statement of the stores, in which no text holds a question mark, as psycopg takes it."""
    return statement.replace("%", "%%").replace("?", "%s").encode()


def _clean_value(value: object) -> object:
    """Return a text as PostgreSQL can hold it: without zeros, and without halves of characters."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
