"""Which files callgrind or cachegrind wrote, told from their beginnings; imported at every start, so it is light."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: What is looked at: first a few bytes, and more where these may be right.
_FIRST: Final = 64
_HEAD: Final = 16 << 10
#: Files of a directory that are looked at.
_MOST: Final = 20_000
CALLGRIND: Final = re.compile(rb"(# callgrind format\n)?(version: \d+\n)?creator: callgrind-")
CACHEGRIND: Final = re.compile(rb"(desc: [^\n]*\n)*cmd: [^\n]*\nevents: \w[\w ]*\n")
_MAY_BEGIN: Final = re.compile(rb"# callgrind|version: \d|creator: callgrind-|desc: |cmd: |-{64}|Reading data from '")
#: What begins the tables that ``callgrind_annotate`` and ``cg_annotate`` print.
TABLES: Final = {
    CALLGRIND: re.compile(
        rb"(?:Reading data from '[^\n]*\n)?-{80}\r?\nProfile data file '[^\n]*' \(creator: callgrind-"
    ),
    CACHEGRIND: re.compile(rb"-{80}\r?\n(?:(?:I1|D1|LL) cache: [^\n]*\n)*Command: [^\n]*\nData file: "),
}


def is_output(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Return whether the file at ``path`` begins as ``pattern`` says."""
    with path.open("rb") as stream:
        head = stream.read(_FIRST)
        if not _MAY_BEGIN.match(head):
            return False
        return pattern.match(head + stream.read(_HEAD)) is not None


def find_outputs(directory: Path, pattern: re.Pattern[bytes]) -> Iterator[Path]:
    """Yield the files directly in ``directory`` that begin as ``pattern`` says, in no order."""
    with os.scandir(directory) as entries:
        for seen, entry in enumerate(entries):
            if seen >= _MOST:
                return
            path = Path(entry.path)
            try:
                if not entry.name.startswith(".") and entry.is_file() and is_output(path, pattern):
                    yield path
            except OSError:
                continue


def sniff_path(path: Path, pattern: re.Pattern[bytes]) -> float | None:
    """Return 1 for a file that begins as ``pattern`` says, or a directory with such files, else None.

    A printed table of functions is such a file, too.
    """
    try:
        if path.is_dir():
            return 1.0 if next(find_outputs(path, pattern), None) is not None else None
        return 1.0 if path.is_file() and (is_output(path, pattern) or is_output(path, TABLES[pattern])) else None
    except OSError:
        return None
