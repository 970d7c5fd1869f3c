"""Reports that Nsight Systems exported as a directory of Parquet or Arrow files, one for each table."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from advisor.model.errors import InputError

if TYPE_CHECKING:
    import sqlite3

SUFFIXES: Final = (".parquet", ".arrow")
#: The table that every report has.
_STRINGS: Final = "StringIds"
_INSTEAD: Final = "pip install pyarrow, or export the report as SQLite: nsys export --type=sqlite report.nsys-rep"


def is_report_folder(folder: Path) -> bool:
    """Return whether a directory holds the tables of an exported report."""
    return any((folder / f"{_STRINGS}{suffix}").is_file() for suffix in SUFFIXES)


def load_folder(folder: Path) -> sqlite3.Connection:
    """Return the tables of a report as a database in memory.

    Raises ``InputError`` where pyarrow is missing, or a file is damaged.
    """
    import sqlite3  # only now: the folder of another format is looked at, too

    try:
        arrow: Any = import_module("pyarrow")
        feather: Any = import_module("pyarrow.ipc")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError(folder, f"is read by pyarrow, which is not installed: {_INSTEAD}") from error
    database = sqlite3.connect(":memory:")
    for path in sorted(folder.iterdir()):
        if path.suffix not in SUFFIXES:
            continue
        try:
            if path.suffix == ".parquet":
                table: Any = parquet.read_table(path)
            else:  # with an index of its parts at the end, or as a stream
                open_table = feather.open_file if _begins_with(path, b"ARROW1") else feather.open_stream
                table = open_table(path).read_all()
        except (OSError, arrow.ArrowException) as error:
            database.close()
            raise InputError(path, f"is damaged: {error}") from error
        names = ", ".join(f'"{name}"' for name in table.column_names)
        if names:
            database.execute(f'CREATE TABLE "{path.stem}" ({names})')
            insert = f'INSERT INTO "{path.stem}" VALUES ({", ".join("?" * len(table.column_names))})'
            for batch in table.to_batches():
                database.executemany(insert, zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return database


def _begins_with(path: Path, mark: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(mark)) == mark
