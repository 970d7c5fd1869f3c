"""A history that is damaged, empty, another user's, read-only or restored: each has its sentence, and is saved."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_line import run
from daemon_runs import Watch, profile
from stored_runs import ADVICE, unit
from system_needs import needs
from test_store import add

from advisor.history.access import read_history
from advisor.history.backups import copy_history, restore_history
from advisor.history.database import NAME, HistoryWriter, open_read_only, open_transaction
from advisor.history.items import ItemStore
from advisor.history.runs import RunStore
from advisor.history.writer_lock import LOCK
from advisor.model.errors import StoreError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
COMMANDS = ("status", "history", "export", "report")


def make_history(folder: Path, runs: int = 30) -> None:
    """Store runs, the last of them with its item suppressed, and close the history."""
    made = HistoryWriter(folder)
    for number in range(runs):
        add(made, unit(f"{number}", f"d{number}"))
    with made.transaction() as connection:
        ItemStore(connection).update_items(runs, ADVICE, (), NOW)
    made.close()
    with open_transaction(folder) as connection:
        item = ItemStore(connection).items_of_program("fig4")[0]
        ItemStore(connection).mark_item(item, "suppressed", NOW, reason="known", until="2027-01-01")


def run_numbers(folder: Path) -> list[int]:
    """The runs of a history by number."""
    with closing(open_read_only(folder)) as connection:
        return [entry.number for entry in RunStore(connection).list_entries()]


@pytest.mark.parametrize("seed", range(12))
def test_st5_what_can_be_read_of_a_damaged_history_is_saved(tmp_path: Path, seed: int) -> None:
    folder, chance = tmp_path / "state", random.Random(seed)
    make_history(folder)
    with closing(open_read_only(folder)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'").fetchone()
    content = bytearray((folder / NAME).read_bytes())
    pages = set(range(1, len(content) // 4096)) - {root - 1}  # which leads to all runs
    for page in chance.sample(sorted(pages), 1 + seed % 3):
        content[page * 4096 : (page + 1) * 4096] = chance.randbytes(4096)
    (folder / NAME).write_bytes(content)
    made = HistoryWriter(folder)
    try:
        assert made.set_aside is not None, "a page of noise is noticed"
        assert (folder / "history.damaged-1").read_bytes() == content
        entries = RunStore(made.connection).list_entries()
        assert "were saved" in made.set_aside
        assert len(entries) >= 10
        for entry in entries:
            RunStore(made.connection).load_advice(entry.number)
        assert made.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert made.connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert add(made, unit("new", "new")) > max(entry.number for entry in entries)
    finally:
        made.close()


def test_st5_no_damage_is_more_than_a_sentence(tmp_path: Path) -> None:
    """Flipped bytes, lost and swapped pages, a cut: readers and the writer go on, or say why not."""
    make_history(tmp_path / "whole", 12)
    whole, saved = (tmp_path / "whole" / NAME).read_bytes(), 0
    for seed in range(60):
        folder = tmp_path / str(seed)
        folder.mkdir(mode=0o700)
        (folder / NAME).write_bytes(damage_content(whole, random.Random(seed)))
        with suppress(StoreError), read_history(folder) as connection:
            for entry in RunStore(connection).list_entries():
                with suppress(StoreError):
                    RunStore(connection).load_advice(entry.number)
        with suppress(StoreError):
            made = HistoryWriter(folder)
            saved += len(RunStore(made.connection).list_entries())
            add(made, unit("new", "new"))
            assert made.connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
            made.close()
    assert saved > 60 * 6, "most runs are saved"


def test_a_flipped_bit_in_a_name_hides_no_run(tmp_path: Path) -> None:
    make_history(tmp_path, 4)
    with closing(sqlite3.connect(tmp_path / NAME)) as connection, connection:
        connection.execute("UPDATE runs SET program = CAST(x'66b734' AS TEXT) WHERE id = 2")
    with read_history(tmp_path) as readable:
        names = [entry.program for entry in RunStore(readable).list_entries()]
    assert len(names) == 4
    assert names[1] == "f\ufffd4"


def damage_content(whole: bytes, chance: random.Random) -> bytes:
    """Return a database with one kind of damage somewhere."""
    content, page = bytearray(whole), 4096
    first, second = (chance.randrange(len(whole) // page) * page for _ in range(2))
    match chance.randrange(4):
        case 0:
            for _ in range(chance.randrange(1, 40)):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        case 1:
            content[first : first + page] = bytes(page)
        case 2:
            content[first : first + page] = whole[second : second + page]
        case _:
            del content[chance.randrange(len(content)) :]
    return bytes(content)


#: Leaves a history as a killed process does, fills the disk, and opens it: first there is no room, then there is.
ON_A_FULL_DISK = """
import os, shutil, sys
from pathlib import Path
from advisor.history.database import HistoryWriter
from advisor.history.runs import RunStore
from advisor.model.errors import StoreError
source, folder = Path(sys.argv[1]), Path(sys.argv[2])
for name in ("commits", "history.sqlite", "history.sqlite-wal"):
    shutil.copy(source / name, folder / name)
ballast = folder / "ballast"
with open(ballast, "wb", buffering=0) as file:
    try:
        while file.write(b"x" * 4096): pass
    except OSError:
        pass
try:
    HistoryWriter(folder)
except StoreError as error:
    print(error)
ballast.unlink()
made = HistoryWriter(folder)
print(made.set_aside and made.set_aside.partition(": ")[0], made.lost, len(RunStore(made.connection).list_entries()))
made.close()
print(sorted(one.name for one in folder.iterdir()))
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_st4_st5_a_full_disk_is_no_damage_and_moves_no_history_away(tmp_path: Path, damaged: bool) -> None:
    place = tmp_path / "full"
    place.mkdir(mode=0o700)
    mount = f"mount -t tmpfs -o size=4m,mode=0700 tmpfs '{place}'"
    needs("unshare", "-Urm", "sh", "-c", mount)
    made = HistoryWriter(tmp_path / "state")
    for number in range(30):
        add(made, unit(f"{number}", f"d{number}"))
    shutil.copytree(tmp_path / "state", tmp_path / "killed")
    made.close()
    if damaged:
        make_history(tmp_path / "other")
        content = bytearray((tmp_path / "other" / NAME).read_bytes())
        content[-4096:] = random.Random(1).randbytes(4096)
        (tmp_path / "killed" / NAME).write_bytes(content)
        (tmp_path / "killed" / f"{NAME}-wal").write_bytes(b"")
    script = f'{mount} && exec "$@"'
    told = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, "sh", sys.executable, "-c", ON_A_FULL_DISK, tmp_path / "killed", place],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = told.stdout.splitlines()
    assert len(lines) == 3, (lines, told.stderr)
    if damaged:
        assert lines[1].startswith("it is damaged None ")
        assert "history.damaged-1" in lines[2]
        assert "history.damaged-2" not in lines[2], "what had no room was not begun"
    else:
        assert lines[1] == "None None 30"
        assert lines[2] == "['commits', 'history.sqlite', 'lock']"
    assert any(words in lines[0] for words in ("full", "disk I/O error", "No space left"))
    assert "rebuilding" not in lines[2]


def test_st5_files_whose_run_is_lost_are_read_again(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    for number in range(20):
        profile(watch.root / f"{number}.json")
    watch.once()
    content = bytearray((tmp_path / "state" / NAME).read_bytes())
    middle = len(content) // 8192 * 4096
    content[middle : middle + 6 * 4096] = b"\xa5" * (6 * 4096)
    (tmp_path / "state" / NAME).write_bytes(content)
    again = Watch(tmp_path).once()
    assert any("was set aside" in text and "were saved" in text for text in again.remarks), again.remarks
    assert again.counts()["ingested"] == 20
    assert sorted(entry.run for entry in again.entries()) == sorted(str(number) for number in range(20))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("damage", ["empty", "pages", "no tables", "text"])
def test_a_history_that_cannot_be_read_is_a_sentence(tmp_path: Path, command: str, damage: str) -> None:
    folder = tmp_path / "state"
    make_history(folder, 5)
    place = folder / NAME
    if damage == "empty":
        place.write_bytes(b"")
    elif damage == "text":
        place.write_bytes(b"This is a letter to somebody." * 400)
    elif damage == "no tables":
        place.unlink()
        sqlite3.connect(place).close()
    else:
        content = bytearray(place.read_bytes())
        content[4096:] = b"\xa5" * (len(content) - 4096)
        place.write_bytes(content)
    made = run(command, "--state", str(folder), home=tmp_path)
    assert made.returncode == 2, made.stderr
    assert b"internal error" not in made.stderr
    assert str(place).encode() in made.stderr


def test_one_damaged_run_hides_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    make_history(folder, 5)
    with closing(sqlite3.connect(folder / NAME)) as connection, connection:
        connection.execute("UPDATE runs SET advice = x'00' WHERE id = 2")
    exported = run("export", "--state", str(folder), home=tmp_path)
    assert (exported.returncode, len(exported.stdout.splitlines())) == (2, 4)
    assert b"the advice on run 2 is damaged" in exported.stderr
    pages = run("report", "--state", str(folder), "-o", str(tmp_path / "pages"), home=tmp_path)
    assert b"the advice on run 2 is damaged" in pages.stderr
    assert len(list((tmp_path / "pages").glob("run-*.html"))) == 4


# Backups


def test_st7_a_backup_that_is_restored_is_what_was_backed_up(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    make_history(folder, 5)
    copy_history(folder, tmp_path / "backup")
    made = HistoryWriter(folder)
    add(made, unit("later", "later"))
    made.close()
    said = run("restore", str(tmp_path / "backup"), "--state", str(folder), home=tmp_path)
    assert said.returncode == 0, said.stderr
    assert b"history.replaced-1" in said.stdout
    assert run_numbers(folder) == [1, 2, 3, 4, 5]
    made = HistoryWriter(folder)
    assert made.set_aside is None
    assert made.lost == "a backup was put in its place, without the last change"
    assert add(made, unit("again", "again")) > 6, "the number of the lost run is not given again"
    assert [item.state for item in ItemStore(made.connection).items_of_program("fig4")].count("suppressed") == 1
    made.close()
    assert run("restore", str(folder / "history.replaced-1"), "--state", str(folder), home=tmp_path).returncode == 0
    assert run_numbers(folder) == [1, 2, 3, 4, 5, 6]


def test_st7_a_backup_may_be_copied_in_place_where_a_killed_writer_left_its_log(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    make_history(folder, 5)
    copy_history(folder, tmp_path / "backup")
    script = (
        "import os, sys\n"
        "sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from test_store import HistoryWriter, add, unit\n"
        "made = HistoryWriter(Path(sys.argv[1]))\n"
        "for n in range(9): add(made, unit(f'late {n}', f'late {n}'))\n"
        "os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", script, folder, *map(str, Path(__file__).parents[:2])], check=False)
    assert (folder / f"{NAME}-wal").stat().st_size
    shutil.copyfile(tmp_path / "backup", folder / NAME)
    assert run_numbers(folder) == [1, 2, 3, 4, 5], "readers see the backup alone"
    made = HistoryWriter(folder)
    assert made.set_aside is None
    assert made.lost == "a backup was put in its place, without the last 9 changes"
    assert made.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert len(RunStore(made.connection).list_entries()) == 5
    made.close()
    assert (folder / "history.replaced-wal").exists()


def test_st7_nothing_is_restored_over_a_writer_or_from_what_is_no_backup(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    make_history(folder, 3)
    copy_history(folder, tmp_path / "backup")
    (tmp_path / "letter").write_text("Dear reader")
    with pytest.raises(StoreError, match="is not a backup of a history"):
        restore_history(folder, tmp_path / "letter")
    with pytest.raises(StoreError, match="no such file"):
        restore_history(folder, tmp_path / "nothing")
    made = HistoryWriter(folder)
    with pytest.raises(StoreError, match="in use by another gapwatch"):
        restore_history(folder, tmp_path / "backup")
    made.close()
    assert run_numbers(folder) == [1, 2, 3]
    assert restore_history(tmp_path / "elsewhere", tmp_path / "backup") is None
    assert run_numbers(tmp_path / "elsewhere") == [1, 2, 3]


def test_another_program_s_database_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    with closing(sqlite3.connect(folder / NAME)) as connection, connection:
        connection.execute("CREATE TABLE bookmarks (address TEXT)")
    before = (folder / NAME).read_bytes()
    with pytest.raises(StoreError, match="database of another program"):
        HistoryWriter(folder)
    assert (folder / NAME).read_bytes() == before


# Whose it is


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away: run the tests as root")


@needs_root
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    os.chown(tmp_path / "state", 65534, 65534)
    with pytest.raises(StoreError, match="belongs to user 65534, not to you"):
        HistoryWriter(tmp_path / "state")


@needs_root
def test_a_database_of_another_user_is_refused(tmp_path: Path) -> None:
    make_history(tmp_path / "state", 1)
    os.chown(tmp_path / "state" / NAME, 65534, 65534)
    for open_it in (HistoryWriter, open_read_only):
        with pytest.raises(StoreError, match="belongs to user 65534, not to you"):
            open_it(tmp_path / "state")


@pytest.mark.parametrize("name", [LOCK, "commits", NAME, f"{NAME}-wal"])
def test_a_planted_link_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "precious").write_text("data")
    (tmp_path / "state" / name).symlink_to(tmp_path / "precious")
    with pytest.raises(StoreError, match="is a symbolic link; remove it"):
        HistoryWriter(tmp_path / "state")
    assert (tmp_path / "precious").read_text() == "data"


def test_a_pipe_in_the_place_of_the_lock_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    os.mkfifo(tmp_path / "state" / LOCK)
    with pytest.raises(StoreError, match="is not a regular file"):
        HistoryWriter(tmp_path / "state")


def test_a_history_that_may_not_be_written_is_read_all_the_same(tmp_path: Path) -> None:
    """As a user without rights over others' files, in a namespace where root may not write either."""
    from system_needs import needs

    make_history(tmp_path / "state", 3)
    bind = f"mount --bind '{tmp_path}/state' '{tmp_path}/state' && mount -o remount,ro,bind '{tmp_path}/state'"
    needs("unshare", "-Urm", "sh", "-c", bind)
    command = [sys.executable, "-m", "gapwatch"]
    here = ["unshare", "-Urm", "sh", "-c", f'{bind} && exec "$@"', "sh", *command]
    read = subprocess.run([*here, "export", "--state", tmp_path / "state"], capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    assert len([json.loads(line) for line in read.stdout.splitlines()]) == 3
    (tmp_path / "runs").mkdir()
    said = subprocess.run(
        [*here, "watch", tmp_path / "runs", "--once", "--state", tmp_path / "state"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 2
    assert "Read-only file system" in said.stderr


def test_a_restored_history_is_the_user_s_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        make_history(tmp_path / "state", 1)
        copy_history(tmp_path / "state", tmp_path / "backup")
        restore_history(tmp_path / "state", tmp_path / "backup")
    finally:
        os.umask(mask)
    for path in (tmp_path / "backup", *(tmp_path / "state").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
