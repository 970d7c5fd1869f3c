"""What only a history on a server has: roles, several writers, errors in one line, a server that is killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from native_documents import PROFILES
from stored_runs import ADVICE, unit

from advisor.daemon.config import DaemonConfig
from advisor.daemon.retention import HistoryRetention
from advisor.history import postgres_schema
from advisor.history.access import describe_writers, open_read_only, open_transaction, open_writer, read_history
from advisor.history.child_reads import ParentConnection, answer_question
from advisor.history.dialect import StoreLost
from advisor.history.file_states import FileSignature, FileStates
from advisor.history.history_queries import StoredHistory
from advisor.history.items import ItemStore
from advisor.history.location import HistoryServer, parse_location
from advisor.history.remarks import RemarkStore
from advisor.history.run_storage import store_run
from advisor.history.runs import RunStore
from advisor.model.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postgres_server import PostgresServer


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SIGNATURE = FileSignature(1, 2, 3, 4, 5)


def store(place: HistoryServer, *names: str) -> None:
    """Store a run for each name."""
    with closing(open_writer(place)) as writer:
        for name in names:
            with writer.transaction() as connection:
                store_run(connection, ADVICE, [unit(name, name)], NOW)


def run_gapwatch(*words: str, state: str, home: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "GAPWATCH_STATE": state, "HOME": str(home), "PGPASSFILE": str(home / "pgpass")}
    command = [sys.executable, "-m", "gapwatch", *words]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


# Where it is


def test_a_url_is_a_server_and_all_else_a_directory() -> None:
    found = parse_location("postgresql://alice@db.site/gapwatch?sslmode=require&application_name=node-7")
    assert isinstance(found, HistoryServer)
    assert found.writer == "node-7"
    own = parse_location("postgres:///gapwatch")
    assert isinstance(own, HistoryServer)
    assert own.writer.endswith(re.sub(r"[^A-Za-z0-9._@+-]", "_", f"@{os.uname().nodename}"))
    assert parse_location("runs/postgresql") == Path("runs/postgresql")


@pytest.mark.parametrize(
    "url",
    ["postgresql://a:geheim@h/d", "postgresql://h/d?password=geheim", "postgres://h/d?sslpassword=geheim",
     "postgresql://a:geheim@[h/d", "postgresql://h/d?application_name=a%2Fb"],
)  # fmt: skip
def test_a_password_in_the_url_is_refused_and_not_repeated(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        parse_location(url)
    assert "geheim" not in str(refused.value)
    made = run_gapwatch("history", state=url, home=tmp_path)
    assert made.returncode == 2
    assert made.stderr.count("\n") == 1
    assert "geheim" not in made.stdout + made.stderr
    assert run_gapwatch("history", "--state", url, state="", home=tmp_path).stderr.count("geheim") == 0


# What goes wrong is one line


def test_errors_are_one_line(postgres: PostgresServer, database: str, tmp_path: Path) -> None:
    away = f"postgresql://owner@127.0.0.1:1/{database}"
    cases = {
        away: "Connection refused.*; is the server running?",
        postgres.url("none"): 'database "none" does not exist; create it on the server',
        postgres.url(database, "nobody_here"): 'role "nobody_here" does not exist',
        postgres.url(database): "holds no history; run 'gapwatch watch DIR' as the owner of the database, or ",
        postgres.url(database) + "?sslmode=never": "sslmode",
    }
    for url, expected in cases.items():
        made = run_gapwatch("history", state=url, home=tmp_path)
        assert (made.returncode, made.stderr.count("\n")) == (2, 1), made.stderr
        assert re.search(re.escape(expected).replace(r"\.\*", ".*"), made.stderr), made.stderr


def test_a_wrong_password_is_said_and_no_password(postgres: PostgresServer, database: str, tmp_path: Path) -> None:
    postgres.execute("postgres", "CREATE ROLE carol LOGIN PASSWORD 'geheim'")
    with postgres.ask_passwords("carol"):
        (tmp_path / "pgpass").write_text("*:*:*:carol:falsch\n")
        (tmp_path / "pgpass").chmod(0o600)
        made = run_gapwatch("history", state=postgres.url(database, "carol"), home=tmp_path)
    assert made.returncode == 2
    assert 'password authentication failed for user "carol"; check the user, and ~/.pgpass' in made.stderr
    assert made.stderr.count("\n") == 1
    assert "falsch" not in made.stderr


def test_another_version_of_the_tables_is_refused(postgres: PostgresServer, database: str) -> None:
    place = postgres.locate(database)
    store(place, "a")
    for version, expected in ((99, "by a newer gapwatch"), (0, "its owner upgrades it")):
        postgres.execute(database, f"UPDATE gapwatch.meta SET value = '{version}' WHERE name = 'schema'")
        with pytest.raises(StoreLost, match=expected):
            open_read_only(place)
    postgres.execute(database, "UPDATE gapwatch.meta SET value = '99' WHERE name = 'schema'")
    with pytest.raises(StoreLost, match="by a newer gapwatch"):
        open_writer(place)


def test_the_tables_are_brought_up_step_by_step(
    postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = postgres.locate(database)
    store(place, "a")
    steps = (*postgres_schema.STEPS, "CREATE TABLE more (id BIGINT);")
    monkeypatch.setattr(postgres_schema, "STEPS", steps)
    for _ in range(2):
        postgres.run_sql(database, postgres_schema.render_schema() + postgres_schema.render_roles())
    with postgres.connect(database) as connection:
        assert connection.execute("SELECT value FROM gapwatch.meta WHERE name = 'schema'").fetchone() == ("2",)
        assert connection.execute("SELECT count(*) FROM gapwatch.more").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM gapwatch.runs").fetchone() == (1,)


# Roles


@pytest.fixture
def shared(postgres: PostgresServer, database: str, tmp_path: Path) -> Iterator[str]:
    """A database set up as the page says, with a writer and a reader."""
    made = run_gapwatch("config", "database", state=str(tmp_path), home=tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "site.md").read_text(encoding="utf-8")
    members = re.findall(r"^CREATE ROLE .*$", page, re.MULTILINE)
    assert len(members) == 2
    postgres.run_sql(database, made.stdout + "\n".join(members))
    yield database
    postgres.execute(database, "DROP ROLE alice", "DROP ROLE bob")


def test_readers_read_and_writers_write(postgres: PostgresServer, shared: str) -> None:
    writer, reader = postgres.locate(shared, "alice"), postgres.locate(shared, "bob")
    store(writer, "a", "b")
    with read_history(reader) as connection:
        assert RunStore(connection).count_runs() == 2
    assert StoredHistory(reader).load_summaries("fig4")[0].profile.program == "fig4"
    with pytest.raises(StoreError, match=r"permission denied.*members of gapwatch_writer may write"):
        store(reader, "c")
    with pytest.raises(StoreError, match="permission denied"), open_transaction(reader) as connection:
        ItemStore(connection).apply_actions("fig4", [("A-35", None)], "tried", NOW)
    for table in ("runs", "files", "items", "meta", "summaries", "units", "steps", "folders", "plugin_faults"):
        with postgres.connect(shared, "bob") as own, pytest.raises(Exception, match="permission denied"):
            own.execute(f"DELETE FROM gapwatch.{table}".encode())
    for user in ("alice", "bob"):
        with postgres.connect(shared, user) as own, pytest.raises(Exception, match="must be owner"):
            own.execute(b"DROP TABLE gapwatch.runs")


def test_who_is_in_no_role_is_told(postgres: PostgresServer, shared: str) -> None:
    postgres.execute("postgres", "CREATE ROLE dave LOGIN")
    for use in (open_read_only, open_writer):
        with pytest.raises(StoreError, match="permission denied for schema gapwatch; members of gapwatch_writer"):
            use(postgres.locate(shared, "dave"))
    postgres.execute("postgres", "DROP ROLE dave")


# Several daemons


def test_each_daemon_keeps_its_own_files(postgres: PostgresServer, database: str) -> None:
    one, two = (postgres.locate(database, name=name) for name in ("one", "two"))
    folder = Path("/scratch")
    with closing(open_writer(one)) as first, closing(open_writer(two)) as second:
        for writer, state in ((first, "waiting"), (second, "quarantined")):
            with writer.transaction(lasting=False) as connection:
                FileStates(connection).store_files(folder, {b"a": SIGNATURE}, state, "why")  # type: ignore[arg-type]
                RemarkStore(connection).add_remark("said")
        states = FileStates(first.connection)
        assert states.known_files(folder) == {b"a": (SIGNATURE, "waiting")}
        assert [path for path, *_ in states.waiting_files([folder])] == [folder]
        assert states.known_folders(Path("/")) == {folder}
        assert FileStates(second.connection).waiting_files([folder]) == []
        assert {path for path, *_ in states.find_troubles()} == {"/scratch/a", "two:/scratch/a"}
        with first.transaction() as connection:
            FileStates(connection).retry_refused_files("why")
        assert FileStates(second.connection).known_files(folder)[b"a"][1] == "quarantined"
        assert RemarkStore(first.connection).latest_remarks() == ("two: said", "said")
        with read_history(one) as connection:
            assert describe_writers(one, connection) == "one, two"
        with pytest.raises(StoreError, match="in use by another gapwatch named one"):
            open_writer(one)
        with closing(open_writer(one, watches=False)) as beside, beside.transaction() as connection:
            store_run(connection, ADVICE, [unit("a", "a")], NOW)


def test_the_same_content_seen_by_two_is_one_run(postgres: PostgresServer, database: str) -> None:
    one, two = (postgres.locate(database, name=name) for name in ("one", "two"))
    store(one, "a")
    with read_history(two) as connection:
        assert RunStore(connection).find_duplicate("a", Path("/data/a")) == Path("one:/data/a")
    with read_history(one) as connection:
        assert RunStore(connection).find_duplicate("a", Path("/data/a")) is None


def test_many_writers_at_once_lose_nothing(postgres: PostgresServer, database: str) -> None:
    """Their runs are of one program, whose items each of them reads and writes."""
    problems: list[BaseException] = []

    def write(name: str) -> None:
        try:
            store(postgres.locate(database, name=name), *(f"{name}-{number}" for number in range(10)))
        except BaseException as error:
            problems.append(error)

    store(postgres.locate(database), "first")
    threads = [Thread(target=write, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with read_history(postgres.locate(database)) as connection:
        assert RunStore(connection).count_runs() == 41
        assert len(ItemStore(connection).items_of_program("fig4")) == len(ADVICE.recommendations)


def test_retention_holds_for_all(postgres: PostgresServer, database: str) -> None:
    place = postgres.locate(database)
    store(place, *map(str, range(30)))
    with closing(open_writer(place)) as writer:
        size = RunStore(writer.connection).size_B()
        assert HistoryRetention(writer, DaemonConfig(keep_runs=20)).drop_excess_runs() == 10
        HistoryRetention(writer, DaemonConfig(keep_B=size // 3)).drop_excess_runs()
        runs = RunStore(writer.connection)
        assert 0 < runs.size_B() <= size // 3
        assert runs.list_entries()[-1].number == 30


# What children may ask


def test_a_child_sees_the_past_and_nothing_else(postgres: PostgresServer, database: str) -> None:
    place = postgres.locate(database)
    store(place, "a", "b")
    with closing(open_writer(place)) as writer:

        def ask(question: dict[str, object]) -> dict[str, object]:
            return answer_question(writer.connection, question)

        told = StoredHistory(place, (Path("/data/b"),), held=ParentConnection(ask, place.writer))
        direct = StoredHistory(place, (Path("/data/b"),))
        assert told.load_summaries("fig4") == direct.load_summaries("fig4")
        assert len(told.load_advice("fig4")) == 1
        assert told.load_won_shares("fig4") == {}
        assert told.load_run_times("fig4", 2) == direct.load_run_times("fig4", 2)
        assert told.find_applied_actions() == ()
        assert told.update_item_states(ADVICE) == direct.update_item_states(ADVICE)
        for statement in ("SELECT 1", "DELETE FROM runs", "SELECT pg_sleep(1)"):
            with pytest.raises(StoreError, match="not for a child"):
                ParentConnection(ask, place.writer).execute(statement)
        for question in ([], {}, {"statement": []}, {"statement": "x", "values": 3}):
            assert "refused" in answer_question(writer.connection, question)


# Commands


def test_commands_read_and_write_there(postgres: PostgresServer, database: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    text = (PROFILES / "fig4.json").read_text()
    for name in ("fig4", "fig5"):
        (runs / f"{name}.json").write_text(text.replace("fig4", name))
    (runs / "copy.json").write_text(text)
    (runs / "note.txt").write_text("no profile")
    url = postgres.url(database)
    watched = run_gapwatch("watch", str(runs), "--once", "--format", "lines", state=url, home=tmp_path)
    assert watched.returncode == 0, watched.stderr
    assert "run 2: " in watched.stdout
    again = run_gapwatch("watch", str(runs), "--once", "--format", "lines", state=url, home=tmp_path)
    assert (again.returncode, again.stdout) == (0, "")
    status = run_gapwatch("status", state=url, home=tmp_path)
    assert f"no process is writing to the history in {url}" in status.stdout
    assert "2 runs of " in status.stdout
    assert "in no format that is known" in status.stdout
    assert "A-35" in run_gapwatch("history", "fig4", state=url, home=tmp_path).stdout
    assert "acknowledged" in run_gapwatch("ack", "A-35", "--program", "fig5", state=url, home=tmp_path).stdout
    for words in (
        ("advise", str(runs / "fig4.json")), ("explain", "1"), ("compare", "1", "1"), ("export",),
        ("watch", str(runs), "--once"),
    ):  # fmt: skip
        made = run_gapwatch(*words, state=url, home=tmp_path)
        assert made.returncode == 0, (words, made.stderr)
    for words in (("backup", str(tmp_path / "b")), ("restore", str(tmp_path / "b"))):
        refused = run_gapwatch(*words, state=url, home=tmp_path)
        assert "is on a server: back it up with pg_dump" in refused.stderr


def test_a_dump_is_a_backup(postgres: PostgresServer, database: str, tmp_path: Path) -> None:
    place = postgres.locate(database)
    store(place, "a", "b")
    dump = postgres.dump(database)
    other = postgres.make_database()
    postgres.run_sql(other, dump)
    store(postgres.locate(other), "c")
    with read_history(postgres.locate(other)) as connection:
        assert [entry.number for entry in RunStore(connection).list_entries()] == [1, 2, 3]
