"""Copies of a history: made while it is written to, put in its place again, and complete in one file.

A backup has a mark in its first page and keeps no log. So it may also be copied to the place of the history by hand:
whoever opens it next knows by the mark that logs beside it belong to another database, and moves them away.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from advisor.history import damage
from advisor.history.database import BACKUP_MARK, NAME, PATIENCE_S, open_read_only
from advisor.history.writer_lock import acquire_lock
from advisor.model.errors import StoreError
from advisor.support.private_files import make_private_folder, open_private_file, sync_folder

_COPIED_PAGES: Final = "history.restored.part"


def copy_history(folder: Path, target: Path) -> None:
    """Write a complete copy of the history to ``target``, also while it is written to; raises ``StoreError``.

    ``target`` must not exist. A plain copy of the file would lack what stands in its log.
    """
    with closing(open_read_only(folder)) as source:
        _write_backup(source, target)


def restore_history(folder: Path, backup: Path) -> Path | None:
    """Replace the history by a backup; raises ``StoreError`` if it is none, or if there is a writer.

    Returns what the history that was there is called now, None where there was none. The next writer says what the
    backup lacks, by the count of transactions, which stays.
    """
    if not backup.is_file():
        raise StoreError(f"{backup}: no such file; create one with 'gapwatch backup FILE'")
    found = damage.inspect_database(backup, PATIENCE_S)
    if found.damage is not None or not found.commits:
        raise StoreError(f"{backup} is not a backup of a history: {found.damage or 'it is empty'}; nothing was changed")
    try:
        make_private_folder(folder)
        lock = acquire_lock(folder)
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: {error.strerror}") from error
    try:
        part = folder / _COPIED_PAGES
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(f"{backup.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE_S)) as source:
            _write_backup(source, part)
        place = folder / NAME
        if not place.exists():
            part.rename(place)
            sync_folder(folder)
            return None
        damage.inspect_database(place, PATIENCE_S)  # takes the log into a sound one, and the log goes
        return damage.replace_database(place, part, "replaced")
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: {error.strerror}") from error
    finally:
        os.close(lock)


def _write_backup(source: sqlite3.Connection, target: Path) -> None:
    """Write a copy that needs no other file, and wait until it is on the disk; raises ``StoreError``."""
    try:
        os.close(open_private_file(target, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    except FileExistsError as error:
        raise StoreError(f"{target}: {error.strerror}; choose a file that does not exist") from error
    except OSError as error:
        raise StoreError(f"{target}: {error.strerror}") from error
    try:
        with closing(sqlite3.connect(target, isolation_level=None)) as made:
            source.backup(made)
            made.execute("PRAGMA synchronous = EXTRA")
            made.execute("PRAGMA journal_mode = DELETE")
            made.execute(f"PRAGMA application_id = {BACKUP_MARK}")
        descriptor = open_private_file(target, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(target.absolute().parent)
    except (sqlite3.Error, OSError) as error:
        target.unlink(missing_ok=True)
        raise StoreError(f"{target}: {error}; nothing was copied") from error
