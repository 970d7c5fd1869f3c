"""What may be wrong with a database that is there, and what can still be read of it."""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.history.schema import VERSION
from advisor.model.errors import StoreError
from advisor.support.private_files import sync_folder

#: What may stand beside a database and belongs to it.
SIDE_FILES: Final = ("-wal", "-shm", "-journal")
#: Errors that no content of a database causes, by their primary codes.
_PRIMARY: Final = 0xFF
_TROUBLES_OF_HOST: Final = frozenset((
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH, sqlite3.SQLITE_NOLFS,
))  # fmt: skip
#: So many rows are read at a time, and so often it is tried to read around damage in one table.
_PART: Final = 256
_TRIES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a database is: how many transactions it holds, and why it cannot be used, None where it can."""

    commits: int
    damage: str | None = None


def inspect_database(path: Path, patience_s: float) -> Inspection:
    """Look through a whole database; raises ``StoreError`` for one that is sound, but no history for this gapwatch."""
    if not path.exists() or not path.stat().st_size:
        return Inspection(0)
    try:
        with closing(sqlite3.connect(path, timeout=patience_s)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                return Inspection(0, f"it is damaged: {' '.join(str(found).split())}")
            refuse_other_version(connection, path)
            return Inspection(_count_commits(connection, path))
    except sqlite3.DatabaseError as error:
        if _is_trouble_of_host(error):
            raise StoreError(describe_error(path, error)) from error
        return Inspection(0, f"it is damaged: {error}")


def _is_trouble_of_host(error: sqlite3.Error) -> bool:
    """Return whether an error says nothing of the database itself: the disk is full, a file may not be opened …"""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY in _TROUBLES_OF_HOST


def _count_commits(connection: sqlite3.Connection, path: Path) -> int:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return 0
    if not {"meta", "runs", "files"} <= tables:
        raise StoreError(f"{path} is a database of another program; choose another directory with --state")
    row = connection.execute("SELECT value FROM meta WHERE name = 'commits'").fetchone()
    return int(row[0]) if row is not None else 0


def refuse_other_version(connection: sqlite3.Connection, path: Path, older: str = "") -> None:
    """Raise ``StoreError`` for a database of a newer gapwatch; for one that is ``older``, too, where that is said."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer gapwatch (schema {version}, supported {VERSION}): upgrade this one"
        )
    if older and version < VERSION:
        raise StoreError(f"{path} is of version {version}, here {VERSION}; {older}")


def describe_error(path: Path, error: sqlite3.Error) -> str:
    """Return in words why a history cannot be read or written."""
    said = str(error)
    if isinstance(error, sqlite3.DatabaseError) and ("malformed" in said or "not a database" in said):
        return f"{path} is damaged ({said}); the next 'gapwatch watch' sets it aside and saves what can be read of it"
    if "no such table" in said:
        return f"{path} holds no history ({said}): it is empty, or a database of another program"
    if "readonly" in said:
        return f"{path} may not be written, nor the directory that it is in; allow it, or choose another with --state"
    return f"{path}: {said}"


def free_name(path: Path, why: str) -> Path:
    """Return a name of the form ``history.WHY-N`` that is not taken."""
    number = 1
    while path.with_suffix(f".{why}-{number}").exists():
        number += 1
    return path.with_suffix(f".{why}-{number}")


def replace_database(path: Path, new: Path, why: str) -> Path:
    """Put ``new`` in the place of a database, keep that one as ``history.WHY-N``, and return its name.

    Whoever is killed meanwhile leaves one of both at ``path``.
    """
    kept = free_name(path, why)
    try:
        kept.hardlink_to(path)
    except OSError:  # not every file system has such links
        shutil.copy2(path, kept)
    for suffix in SIDE_FILES:
        old = path.with_name(path.name + suffix)
        if old.exists():
            old.rename(kept.with_name(kept.name + suffix))
    new.replace(path)
    sync_folder(path.parent)
    return kept


def remove_database(path: Path) -> None:
    """Remove a database and what belongs to it, where it is there."""
    for suffix in ("", *SIDE_FILES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


# Saving what can be read


def decode_text(raw: bytes) -> str:
    """Return the text of a cell, also where damage has made it none: one flipped bit hides no other run."""
    return raw.decode("utf-8", "replace")


def salvage_rows(damaged: Path, into: sqlite3.Connection) -> dict[str, int]:
    """Copy what can be read of a damaged database into an empty one, in the caller's transaction.

    Returns the rows of each table that were saved. Files whose run is lost are left out: they are read again where they
    still exist.
    """
    try:
        source = sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        return {}
    with closing(source):
        try:
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error:
            return {}
        source.row_factory, source.text_factory = sqlite3.Row, decode_text
        _insert_rows(into, "folders", _read_rows(source, "folders"))
        runs = set(_insert_rows(into, "runs", filter(_is_advice_sound, _read_rows(source, "runs"))))
        units = set(
            _insert_rows(
                into, "units", (row for row in _read_rows(source, "units") if row["run"] is None or row["run"] in runs)
            )
        )
        files = _insert_rows(
            into, "files", (row for row in _read_rows(source, "files") if row["unit"] is None or row["unit"] in units)
        )
        saved = {"runs": len(runs), "files": len(files)}
        for table in ("summaries", "items", "steps", "plugin_faults"):
            saved[table] = len(_insert_rows(into, table, _read_rows(source, table)))
    return saved


def describe_salvage(saved: dict[str, int]) -> str:
    """Return in words what ``salvage_rows`` saved."""
    if not any(saved.values()):
        return "nothing of it could be read"
    return f"{saved['runs']} runs, {saved['items']} items and the states of {saved['files']} files were saved"


def _is_advice_sound(row: sqlite3.Row) -> bool:
    """Return whether the packed advice of a run is whole, by its check sum."""
    with suppress(zlib.error, TypeError):
        zlib.decompress(row["advice"])
        return True
    return False


def _insert_rows(into: sqlite3.Connection, table: str, rows: Iterable[sqlite3.Row]) -> list[object]:
    """Copy rows, without those that no history may hold, and return the first column of each that was copied."""
    saved: list[object] = []
    columns = [name for _, name, *_ in into.execute(f"PRAGMA table_info({table})")]
    for row in rows:
        there = row.keys()
        names = [name for name in columns if name in there]
        command = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        with suppress(sqlite3.IntegrityError):
            into.execute(command, [row[name] for name in names])
            saved.append(row[0])
    return saved


def _read_rows(source: sqlite3.Connection, table: str) -> Iterator[sqlite3.Row]:
    """Yield the rows of a table that can be read: around damage by number, or from both ends where there is none."""
    try:
        last = source.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0]
    except sqlite3.OperationalError:
        yield from _read_from_both_ends(source, table)
        return
    except sqlite3.DatabaseError:
        last = _TRIES * _PART
    tries = _TRIES
    parts = [(low, min(low + _PART - 1, last)) for low in range(1, (last or 0) + 1, _PART)][::-1]
    while parts and tries:
        low, high = parts.pop()
        try:
            rows = source.execute(f"SELECT * FROM {table} WHERE rowid BETWEEN ? AND ?", (low, high)).fetchall()
        except sqlite3.DatabaseError:
            tries -= 1
            middle = (low + high) // 2
            parts += [(middle + 1, high), (low, middle)] if low < high else []
            continue
        yield from rows


def _read_from_both_ends(source: sqlite3.Connection, table: str) -> Iterator[sqlite3.Row]:
    seen: set[tuple[object, ...]] = set()
    try:
        key = [name for _, name, *_, place in source.execute(f"PRAGMA table_info({table})") if place]
    except sqlite3.DatabaseError:
        return
    for order in ("ASC", "DESC") if key else ():
        with suppress(sqlite3.DatabaseError):
            for row in source.execute(f"SELECT * FROM {table} ORDER BY {', '.join(f'{name} {order}' for name in key)}"):
                identity = tuple(row[name] for name in key)
                if identity in seen:
                    break
                seen.add(identity)
                yield row
