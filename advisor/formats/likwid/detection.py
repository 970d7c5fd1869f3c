"""Which files hold tables of likwid-perfctr, told from their beginning and end."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Final

_HEAD: Final = 4 << 10
_TAIL: Final = 16 << 10
#: Files of a directory that are looked into.
_LISTED: Final = 20_000
_CSV: Final = re.compile(rb"^STRUCT,Info,3,*\r?\n(.*\r?\n){1,8}?TABLE,(Region .*,)?Group \d+ Raw,", re.MULTILINE)
_TEXT: Final = re.compile(rb"^CPU name:\t.*\r?\nCPU type:\t.*\r?\n", re.MULTILINE)
_TABLE: Final = re.compile(rb"^\| +(Event +\| Counter +|Metric +|Region Info +)\|", re.MULTILINE)


def detect_layout(path: Path) -> str | None:
    """Return ``csv`` or ``text`` for output of likwid-perfctr, else None."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
            if b"STRUCT,Info,3" in head and _CSV.search(head):
                return "csv"
            if not _TEXT.search(head):
                return None
            # What the program prints stands between the heading and the tables.
            stream.seek(max(len(head), stream.seek(0, os.SEEK_END) - _TAIL))
            return "text" if _TABLE.search(head) or _TABLE.search(stream.read(_TAIL)) else None
    except OSError:
        return None


def find_files(folder: Path) -> list[Path]:
    """Return the files directly in a directory that hold such tables, by name."""
    try:
        with os.scandir(folder) as entries:
            paths = [Path(entry.path) for entry in islice(entries, _LISTED) if entry.is_file() and entry.name[0] != "."]
    except OSError:
        return []
    return sorted(path for path in paths if detect_layout(path) is not None)
