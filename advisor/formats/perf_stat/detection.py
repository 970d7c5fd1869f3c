"""Which files hold counts of perf stat, told from their beginnings; imported at every start, so it is light."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from advisor.formats.plain_text import read_ends
from advisor.formats.rank_numbers import tell_processes

_HEAD: Final = 4 << 10
_MOST: Final = 20_000
_NUMBERS: Final = re.compile(r"\d+")
_COMMENTS: Final = re.compile(rb"\A(?:#[^\n]*\n|\s*\n)*")
_CSV: Final = re.compile(
    rb" *(?:\d+\.\d{6,9}[,;|\t])?(?:(?:CPU\d+|[SN]\d+(?:-D\d+)?(?:-C\d+)?|node\d+)[,;|\t](?:\d+[,;|\t])?)?"
    rb"(?:\d+(?:\.\d+)?|<not (?:supported|counted)>)(?P<sep>[,;|\t])[A-Za-z%/]{0,12}(?P=sep)"
    rb"[A-Za-z][^\n,;|\t]{0,200}(?P=sep)(?:[\d.]+%(?P=sep))?\d+(?P=sep)\d{1,3}\.\d\d(?:(?P=sep)|\n)"
)
_TITLE: Final = re.compile(rb"^ *Performance counter stats for .*:\r?$", re.MULTILINE)
_JSON: Final = re.compile(rb'\{(?:"[\w-]+" : (?:"[^"\n]*"|[\d.]+), )*"counter-value" : "')


def detect_layout(path: Path) -> str | None:
    """Return ``csv``, ``json`` or ``text`` for a file with counts of perf stat, else None."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    text = _COMMENTS.sub(b"", head)
    if _CSV.match(text):
        return "csv"
    if _JSON.match(text):
        return "json"
    return "text" if _TITLE.search(read_ends(path)) else None


def find_files(directory: Path) -> list[Path]:
    """Return the files of the directory that are called alike but for numbers, if any of them hold counts.

    Those are the files of one run; of several such groups the one with the most files. Names that number nothing, as
    those of runs of several sizes (``2k-small.txt``), are of runs of their own.
    """
    groups: dict[str, list[Path]] = {}
    with os.scandir(directory) as entries:
        for seen, entry in enumerate(entries):
            if seen >= _MOST:
                break
            if not entry.name.startswith(".") and entry.is_file():
                groups.setdefault(_NUMBERS.sub("0", entry.name), []).append(Path(entry.path))
    found = [
        group
        for group in groups.values()
        if tell_processes([file.name for file in group]) and any(map(_holds_counts, group))
    ]
    found.sort(key=len)
    return sorted(found[-1]) if found else []


def _holds_counts(path: Path) -> bool:
    try:
        return detect_layout(path) is not None
    except OSError:
        return False


def sniff_path(path: Path) -> float | None:
    """Return 1 for a file with counts of perf stat, or a directory with several files of such a run, else None."""
    try:
        if path.is_dir():
            return 1.0 if len(find_files(path)) > 1 else None
        return 1.0 if detect_layout(path) else None
    except OSError:
        return None
