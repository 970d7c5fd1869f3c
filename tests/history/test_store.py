"""The history survives its writer, its disk and its users; what it says was stored is there."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stored_runs import ADVICE, kill_repeatedly, unit

from advisor.history import filesystems
from advisor.history.access import open_writer, read_history
from advisor.history.backups import copy_history
from advisor.history.database import NAME, HistoryWriter, open_read_only
from advisor.history.file_states import FileSignature, FileStates
from advisor.history.runs import ProfileUnit, RunStore
from advisor.history.schema import VERSION
from advisor.model.errors import StoreError
from advisor.output.advice_document import build_advice_document
from advisor.support import record_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.history.access import Writer
    from advisor.history.location import HistoryLocation
    from advisor.model.records import Advice

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[HistoryWriter]:
    made = HistoryWriter(tmp_path / "state")
    yield made
    made.close()


@pytest.fixture
def any_writer(place: HistoryLocation) -> Iterator[Writer]:
    """Who writes to either database."""
    made = open_writer(place)
    yield made
    made.close()


def add(writer: Writer, *units: ProfileUnit, advice: Advice = ADVICE) -> int:
    with writer.transaction() as connection:
        return RunStore(connection).add_run(advice, units, NOW)


def test_a_run_comes_back_as_it_was_stored(any_writer: Writer) -> None:
    number = add(any_writer, unit("a"))
    with read_history(any_writer.location) as connection:
        runs = RunStore(connection)
        assert build_advice_document(runs.load_advice(number)) == build_advice_document(ADVICE)
        (entry,) = runs.list_entries("fig4")
        assert (entry.number, entry.program, entry.actual_s, entry.verdict) == (number, "fig4", 47.0, "advice")
        assert runs.units_of_run(number) == (unit("a"),)
        assert runs.list_programs() == ("fig4",)


def test_what_a_run_costs_does_not_grow_with_the_programs(any_writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program has the summaries of its latest runs unpacked once, in whatever order the programs run."""
    with any_writer.transaction() as connection:
        for number in range(300):
            profile = replace(ADVICE.profile, program=f"p{number % 10}", run=str(number))
            RunStore(connection).add_run(replace(ADVICE, profile=profile), [unit(str(number), str(number))], NOW)
    unpack, unpacked = record_json.unpack_record, []
    monkeypatch.setattr(record_json, "unpack_record", lambda *of: unpacked.append(1) or unpack(*of))
    runs = RunStore(any_writer.connection)
    for _ in range(3):
        for program in range(10):
            assert len(runs.load_latest_summaries(f"p{program}", 100, (), 10**9).advice) == 30
    assert len(unpacked) == 300


def test_a_unit_that_changed_replaces_its_run(any_writer: Writer) -> None:
    first = add(any_writer, unit("a", "old"))
    assert add(any_writer, unit("a", "new"), unit("b", "more")) == first
    runs = RunStore(any_writer.connection)
    assert [one.digest for one in runs.units_of_run(first)] == ["new", "more"]
    assert len(runs.list_entries()) == 1
    assert runs.find_duplicate("more", Path("/data/c")) == Path("/data/b")
    assert runs.find_duplicate("more", Path("/data/b")) is None


def test_a_transaction_that_fails_leaves_nothing(any_writer: Writer) -> None:
    def failing() -> None:
        with any_writer.transaction() as connection:
            RunStore(connection).add_run(ADVICE, [unit("a")], NOW)
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert RunStore(any_writer.connection).list_entries() == ()


def test_only_the_user_can_see_it_whatever_the_mask(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        made = HistoryWriter(tmp_path / "state")
        add(made, unit("a"))
    finally:
        os.umask(mask)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert set(modes.values()) == {0o600}, modes
    made.close()


def test_a_second_writer_is_refused_and_told_who_is_there(writer: HistoryWriter) -> None:
    with pytest.raises(StoreError, match=rf"in use by another gapwatch \(process {os.getpid()} on "):
        HistoryWriter(writer.path.parent)


def test_readers_do_not_disturb_the_writer(any_writer: Writer) -> None:
    with read_history(any_writer.location) as reader:
        with any_writer.transaction() as connection:
            RunStore(connection).add_run(ADVICE, [unit("a")], NOW)
            assert RunStore(reader).list_entries() == ()
        assert len(RunStore(reader).list_entries()) == 1
        with pytest.raises((sqlite3.OperationalError, StoreError), match=r"read-?only"):
            reader.execute("DELETE FROM runs")


def test_there_is_no_history_before_there_is_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no history in"):
        open_read_only(tmp_path)


def test_a_history_of_a_newer_gapwatch_is_left_alone(writer: HistoryWriter) -> None:
    folder = writer.path.parent
    writer.connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    writer.close()
    before = (folder / NAME).read_bytes()
    for open_it in (HistoryWriter, open_read_only):
        with pytest.raises(StoreError, match="newer gapwatch"):
            open_it(folder)
    assert (folder / NAME).read_bytes() == before
    writer.__init__(folder.parent / "other")  # type: ignore[misc]


@pytest.mark.parametrize("damage", ["pages", "header", "foreign"])
def test_a_damaged_history_is_set_aside_and_a_new_one_made(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "state"
    made = HistoryWriter(folder)
    for number in range(50):
        add(made, unit(f"{number}"))
    made.close()
    content = bytearray((folder / NAME).read_bytes())
    if damage == "pages":
        content[4096::512] = bytes(byte ^ 0xFF for byte in content[4096::512])
    elif damage == "header":
        content[:100] = bytes(100)
    else:
        content = bytearray(b"This is a letter to somebody." * 100)
    (folder / NAME).write_bytes(content)
    made = HistoryWriter(folder)
    assert made.set_aside is not None
    assert (folder / "history.damaged-1").read_bytes() == content
    assert add(made, unit("a")) == 1
    made.close()


def test_a_lost_log_is_noticed_though_sqlite_calls_it_sound(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from advisor.history.database import HistoryWriter\n"
        "made = HistoryWriter(Path(sys.argv[1]))\n"
        "for n in range(20):\n"
        "    with made.transaction() as connection:\n"
        "        connection.execute('INSERT INTO folders (path) VALUES (?)', (b'%d' % n,))\n"
        "os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", script, folder], check=False)
    (folder / f"{NAME}-wal").unlink()
    made = HistoryWriter(folder)
    assert made.set_aside is None
    assert made.lost == "the last 20 changes, all of the history, are missing"
    made.close()
    made = HistoryWriter(folder)
    assert made.lost is None, "it is said once"
    made.close()


def test_a_backup_is_complete(writer: HistoryWriter, tmp_path: Path) -> None:
    add(writer, unit("a"))
    copy_history(writer.path.parent, tmp_path / "copy.sqlite")
    with sqlite3.connect(tmp_path / "copy.sqlite") as copied:
        assert build_advice_document(RunStore(copied).load_advice(1)) == build_advice_document(ADVICE)
    copied.close()
    with pytest.raises(StoreError, match="exists"):
        copy_history(writer.path.parent, tmp_path / "copy.sqlite")


def test_old_runs_can_be_dropped_and_their_files_stay_known(any_writer: Writer) -> None:
    for number in range(5):
        add(any_writer, unit(f"{number}", f"d{number}"))
    with any_writer.transaction() as connection:
        assert RunStore(connection).drop_oldest(3) == 3
        assert RunStore(connection).count_runs() == 2
    assert [entry.number for entry in RunStore(any_writer.connection).list_entries()] == [4, 5]
    assert RunStore(any_writer.connection).find_unit_number(Path("/data/0")) is not None


@pytest.mark.parametrize("seed", range(3))
def test_killed_writers_lose_nothing_that_they_said_was_stored(tmp_path: Path, seed: int) -> None:
    """A few of the two hundred of tests/crashes.py."""
    assert kill_repeatedly(tmp_path / "state", 5, seed) > 0


# The ledger


SIGNATURE = FileSignature(1, 2, 3, 4, 5)


def test_every_file_is_in_exactly_one_state(any_writer: Writer) -> None:
    folder, strange = Path("/data"), b"\xff\x00\n\x1b-rf".replace(b"\x00", b"")
    with any_writer.transaction() as connection:
        ledger = FileStates(connection)
        ledger.store_files(folder, {b"a": SIGNATURE, strange: SIGNATURE}, "waiting")
        ledger.store_files(folder, {b"a": SIGNATURE}, "quarantined", "damaged: byte 3")
        ledger.store_files(folder / "deeper", {b"a": SIGNATURE}, "ignored", "in no format that is known")
    ledger = FileStates(any_writer.connection)
    assert ledger.known_files(folder) == {b"a": (SIGNATURE, "quarantined"), strange: (SIGNATURE, "waiting")}
    assert ledger.count_states() == {"waiting": 1, "ingested": 0, "duplicate": 0, "quarantined": 1, "ignored": 1}
    assert ledger.waiting_files([folder]) == [(folder, strange, SIGNATURE)]
    assert ledger.find_troubles() == [("/data/a", "quarantined", "damaged: byte 3")]
    with any_writer.transaction():
        ledger.forget_files(folder, [strange])
    assert sum(ledger.count_states().values()) == 2


def test_an_impossible_state_is_refused(any_writer: Writer) -> None:
    with pytest.raises(StoreError, match=r"(?i)check"), any_writer.transaction() as connection:
        FileStates(connection).store_files(Path("/data"), {b"a": SIGNATURE}, "lost")  # type: ignore[arg-type]


# File systems


MOUNTS = """\
22 28 0:21 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:22 / /home rw - nfs4 server:/home rw
24 22 0:23 / /home/me/my\\040local rw - xfs /dev/sdb1 rw
25 22 0:24 / /lower rw - overlay overlay rw
26 22 0:25 / /homework rw - tmpfs tmpfs rw
27 22 0:26 / /twice rw - ext4 /dev/sdc1 rw
28 22 0:27 / /twice rw - lustre lustre rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind", "network", "announced"),
    [
        ("/", "ext4", False, True),
        ("/home/me/runs", "nfs4", True, False),
        ("/home/me/my local/x", "xfs", False, True),
        ("/lower/a", "overlay", False, False),
        ("/homework", "tmpfs", False, True),
        ("/twice/x", "lustre", True, False),
    ],
)
def test_file_systems_are_told_by_their_mounts(
    tmp_path: Path, path: str, kind: str, network: bool, announced: bool
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert filesystems.filesystem_type(Path(path), str(mounts)) == kind
    assert filesystems.is_network(Path(path), str(mounts)) is network
    assert filesystems.supports_inotify(Path(path), str(mounts)) is announced


def test_without_the_list_of_mounts_nothing_is_known(tmp_path: Path) -> None:
    assert filesystems.filesystem_type(tmp_path, str(tmp_path / "none")) is None


def test_a_disk_that_is_full_is_said_to_be_and_no_half_copy_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(sqlite3.Connection):
        def backup(self, *_: object, **__: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        def execute(self, sql: str, *_: object) -> sqlite3.Cursor:
            if sql.startswith("PRAGMA journal_mode"):
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql)

    HistoryWriter(tmp_path / "state").close()
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Full))
    with pytest.raises(StoreError, match="full; nothing was copied"):
        copy_history(tmp_path / "state", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    with pytest.raises(StoreError, match="disk is full"):
        HistoryWriter(tmp_path / "state")
