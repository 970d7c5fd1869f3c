"""Which files hold tables of likwid-perfctr, told from their beginning and end."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Final

from advisor.formats.rank_numbers import tell_processes

#: As ``-o out_%r_%h.csv`` names files: rank, then node.
RANK_AND_NODE: Final = re.compile(r".*?[-_.](\d{1,7})[-_.](?!(?:csv|txt|out|log|json)$)([A-Za-z][\w-]*)(?:\.\w{1,5})?")
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
    """Return the files directly in a directory that hold such tables, where their names tell that they are one run's.

    Other files are of runs of their own: of several sizes, groups of events or numbers of threads.
    """
    try:
        with os.scandir(folder) as entries:
            paths = [Path(entry.path) for entry in islice(entries, _LISTED) if entry.is_file() and entry.name[0] != "."]
    except OSError:
        return []
    found = sorted(path for path in paths if detect_layout(path) is not None)
    return found if _are_of_one_run([path.name for path in found]) else []


def _are_of_one_run(names: list[str]) -> bool:
    """Return whether the names of files state ranks, each of its own, or process ids."""
    matches = [RANK_AND_NODE.fullmatch(name) for name in names]
    told = {int(match[1]) for match in matches if match}
    return len(names) == len(told) or tell_processes(names)
