"""The history in both databases: what is promised of one holds of the other."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from postgres_server import PostgresServer

    from advisor.history.location import HistoryLocation


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests of a process; each makes a database of its own."""
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed (the extra postgres)")
    from postgres_server import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The name of a new, empty database."""
    return postgres.make_database()


@pytest.fixture(params=["sqlite", "postgres"])
def new_history(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], HistoryLocation]:
    """Return what gives the place of a new history, in each of both databases."""
    if request.param == "sqlite":
        made = iter(range(1000))
        return lambda: tmp_path / f"state-{next(made)}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return lambda: server.locate(server.make_database())


@pytest.fixture
def place(new_history: Callable[[], HistoryLocation]) -> HistoryLocation:
    """The place of a new history."""
    return new_history()
