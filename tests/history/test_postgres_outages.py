"""A server that is killed, starts, or goes away in the midst of a commit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from stored_runs import ADVICE, unit

from advisor.history.access import open_writer
from advisor.history.dialect import StoreLost
from advisor.history.run_storage import store_run
from advisor.history.runs import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    from postgres_server import PostgresServer

    from advisor.history.access import Writer

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def store_while_killed(writer: Writer, server: PostgresServer) -> None:
    """Begin to store a run; the server is killed before the transaction ends."""
    with writer.transaction() as connection:
        store_run(connection, ADVICE, [unit("c", "c")], NOW)
        server.kill()
        server.start()
        RunStore(connection).count_runs()


def test_a_server_that_comes_back_is_written_to_again(tmp_path: Path) -> None:
    from postgres_server import PostgresServer

    with PostgresServer() as server:
        place = server.locate(server.make_database())
        with closing(open_writer(place)) as writer:
            with writer.transaction() as connection:
                store_run(connection, ADVICE, [unit("a", "a")], NOW)
            server.kill()
            with pytest.raises(StoreLost, match="is the server running"), writer.transaction():
                pass
            server.start()
            with writer.transaction() as connection:
                assert RunStore(connection).count_runs() == 1
                store_run(connection, ADVICE, [unit("b", "b")], NOW)
            with pytest.raises(StoreLost):
                store_while_killed(writer, server)
            with writer.lend_connection() as connection:
                assert RunStore(connection).count_runs() == 2


def test_a_server_that_starts_is_waited_for(tmp_path: Path) -> None:
    from postgres_server import PostgresServer

    with PostgresServer() as server:
        place = server.locate(server.make_database())
        server.stop()
        server.begin_start()
        with ThreadPoolExecutor(1) as pool:
            opened = pool.submit(open_writer, place)
            assert not wait([opened], timeout=1).done
            server.finish_start()
            with closing(opened.result()) as writer, writer.transaction() as connection:
                store_run(connection, ADVICE, [unit("a", "a")], NOW)


@pytest.mark.parametrize("lasted", [True, False])
def test_a_commit_whose_end_nobody_told_is_asked_for(
    postgres: PostgresServer, database: str, lasted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = postgres.locate(database)
    with closing(open_writer(place)) as writer:
        connection = writer.connection
        really = connection.commit_transaction  # type: ignore[attr-defined]

        def lose_answer() -> None:
            if lasted:
                really()
            connection.close()
            raise StoreLost("the server went away")

        monkeypatch.setattr(connection, "commit_transaction", lose_answer)
        if lasted:
            with writer.transaction() as open_one:
                store_run(open_one, ADVICE, [unit("a", "a")], NOW)
        else:
            with pytest.raises(StoreLost, match="went away"), writer.transaction() as open_one:
                store_run(open_one, ADVICE, [unit("a", "a")], NOW)
        assert RunStore(writer.connection).count_runs() == int(lasted)
