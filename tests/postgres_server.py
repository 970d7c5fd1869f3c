"""A PostgreSQL server of a test's own, in a directory that goes with it; it ends with its tests."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Self

import psycopg
import pytest
from patience import PATIENCE_S

from advisor.history.location import HistoryServer, parse_location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OWNER = "owner"
#: Where Debian has the programs of the server, of whatever version.
_PLACES = "/usr/lib/postgresql/*/bin"


def find_programs() -> Path | None:
    """Return the directory of initdb and postgres, None where there is none."""
    on_path = shutil.which("initdb")
    found = sorted(Path("/").glob(_PLACES[1:]), key=lambda path: path.parent.name.zfill(4))
    return Path(on_path).resolve().parent if on_path else found[-1] if found else None


class PostgresServer:
    """A server on a port of its own; ``kill`` ends it in the midst of what it does, ``start`` brings it back.

    Unless it is to be ``durable`` it does not wait for the disk, which outlives its processes.
    """

    def __init__(self, *, durable: bool = False) -> None:
        programs = find_programs()
        if programs is None:
            pytest.skip("there is no PostgreSQL server (Debian: postgresql)")
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="gapwatch-postgres-", dir="/tmp"))
        self._user = self._choose_user()
        self._data = self.folder / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", OWNER, "--no-sync", "-E", "UTF8", "--locale=C")
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nshared_buffers = 16MB\n")
            settings.write(f"unix_socket_directories = '{self.folder}'\nmax_connections = 40\n")
            settings.write("" if durable else "fsync = off\nautovacuum = off\n")

    def _choose_user(self) -> pwd.struct_passwd | None:
        """Return as whom the server runs where these tests are root's, which it refuses to be."""
        if os.getuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            with suppress(KeyError):
                user = pwd.getpwnam(name)
                os.chown(self.folder, user.pw_uid, user.pw_gid)
                return user
        pytest.skip("the server must not be root's, and there is neither postgres nor nobody")

    def _run(self, program: str, *arguments: str) -> None:
        made = subprocess.run(
            [self._programs / program, *arguments], **self._identity(), capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stderr

    def _identity(self) -> dict[str, Any]:
        more: dict[str, Any] = {"cwd": self.folder}
        if self._user is not None:
            more |= {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": ()}
        return more

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        self._launch()
        assert self._process is not None
        end = monotonic() + PATIENCE_S
        while True:
            try:
                self.connect("postgres").close()
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert monotonic() < end, (self.folder / "log").read_text()
                sleep(0.02)
            else:
                return

    def _launch(self, *settings: str) -> None:
        command = [self._programs / "postgres", "-D", str(self._data), *settings]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, **self._identity(), stdout=log, stderr=log)

    def begin_start(self) -> None:
        """Launch the server, which recovers and refuses everybody until ``finish_start``."""
        (self._data / "standby.signal").touch()
        self._launch("-c", "hot_standby=off")
        end = monotonic() + PATIENCE_S
        where = f"host=127.0.0.1 port={self.port}".encode()
        while psycopg.pq.PGconn.ping(where) != psycopg.pq.Ping.REJECT:
            assert monotonic() < end, (self.folder / "log").read_text()
            sleep(0.02)

    def finish_start(self) -> None:
        """Let the server take connections, and wait until it does."""
        self._run("pg_ctl", "promote", "-D", str(self._data))

    def kill(self) -> None:
        """Kill all processes of the server at once; nothing is written any more."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for number in (self._process.pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self._process.wait()
        end = monotonic() + PATIENCE_S
        while any(Path(f"/proc/{number}").exists() for number in children) and monotonic() < end:
            sleep(0.01)

    def stop(self) -> None:
        """End the server, so that nobody is connected any more."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()

    def connect(self, database: str, user: str = OWNER) -> psycopg.Connection[Any]:
        """Return a connection of the tests' own."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, dbname=database, user=user, autocommit=True, connect_timeout=10
        )

    def execute(self, database: str, *statements: str) -> None:
        """Execute statements."""
        with self.connect(database) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def make_database(self) -> str:
        """Return the name of a new, empty database."""
        name = f"t{secrets.token_hex(4)}"
        self.execute("postgres", f"CREATE DATABASE {name}")
        return name

    def url(self, database: str, user: str = OWNER, name: str | None = None) -> str:
        """Return the URL of a database."""
        more = f"?application_name={name}" if name else ""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}{more}"

    def locate(self, database: str, user: str = OWNER, name: str | None = None) -> HistoryServer:
        """Return the location of a history in a database."""
        found = parse_location(self.url(database, user, name))
        assert isinstance(found, HistoryServer)
        return found

    def run_sql(self, database: str, text: str, arguments: Sequence[str] = ()) -> str:
        """Return what psql says to a text of statements, as an administrator would run it."""
        command = [
            self._programs / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port),
            "-U", OWNER, "-d", database, *arguments,
        ]  # fmt: skip
        made = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return made.stdout

    def dump(self, database: str) -> str:
        """Return what pg_dump writes."""
        command = [self._programs / "pg_dump", "-h", "127.0.0.1", "-p", str(self.port), "-U", OWNER, database]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    @contextmanager
    def ask_passwords(self, user: str) -> Iterator[None]:
        """Let the server ask one user for a password."""
        rules = self._data / "pg_hba.conf"
        kept = rules.read_text()
        rules.write_text(f"host all {user} 127.0.0.1/32 scram-sha-256\n{kept}")
        self.execute("postgres", "SELECT pg_reload_conf()")
        try:
            yield
        finally:
            rules.write_text(kept)
            self.execute("postgres", "SELECT pg_reload_conf()")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
