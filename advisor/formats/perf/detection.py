"""Which files hold samples of perf, told from their beginnings; imported at every start, so it is light."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path
from typing import Final

#: A file of ``perf record`` itself, which only perf reads; that of other byte order, and what perf writes to a pipe.
DATA: Final = (b"PERFILE2", b"2ELIFREP")
_FIRST: Final = 1 << 10
_HEAD: Final = 16 << 10
_MOST: Final = 20_000
_NUMBERS: Final = re.compile(r"\d+")
#: The first line: process, time, event and the first function, or another record of perf. A word and a colon before a
#: number, as in many logs, are no process.
_SAMPLE: Final = re.compile(
    rb" *\S[^\n]{0,31}?(?<!:)[ \t]+\d{1,10}(/\d{1,10})? +(\[\d{3,6}\] +)?([.dDXxnNpPHhsbBGi]{4,7} +)?"
    rb"(\d{1,12}\.\d{6,9}: *(\d{1,18} +)?([A-Za-z][\w./:=,@-]*: *)?(\n\s*|\n\n|(?<= ))[0-9a-f]{3,16}[ \t\n]"
    rb"|\d{1,12}\.\d{6,9}: *(\d{1,18} +)?[A-Za-z][\w./:=,@-]*: *(\n\n|\n\t)"
    rb"|(\d{1,18} +)?[A-Za-z][\w./:=,@-]*: *(\n\s*|(?<= ))[0-9a-f]{3,16}[ \t\n]"
    rb"|\d{1,12}\.\d{6,9}: PERF_RECORD_)"
)
_HEADER: Final = re.compile(rb"# ========\n# captured on")
_GZIP: Final = b"\x1f\x8b"


def is_data(path: Path) -> bool:
    """Return whether the file at ``path`` is one of ``perf record``."""
    with path.open("rb") as stream:
        return stream.read(8) in DATA


def is_script(path: Path) -> bool:
    """Return whether the file at ``path`` is what ``perf script`` prints."""
    with path.open("rb") as stream:
        head = stream.read(_FIRST + _HEAD)
    if head.startswith(_GZIP):
        try:
            with gzip.open(path) as unpacked:
                head = unpacked.read(_FIRST + _HEAD)
        except (EOFError, zlib.error):
            return False
    if b"\0" in head[:_FIRST]:
        return False
    if _HEADER.match(head):
        head = re.sub(rb"\A(#[^\n]*\n|\n)*", b"", head)
        return not head or _SAMPLE.match(head) is not None
    return _SAMPLE.match(head[:_FIRST]) is not None


def find_files(directory: Path) -> list[Path]:
    """Return the files of the directory that are called alike but for numbers, and of which some hold samples.

    Those are the files of one run. Of several such groups that with the most files, then with the most bytes: call
    graphs tell more.
    """
    groups: dict[str, list[Path]] = {}
    for path in _list_files(directory):
        groups.setdefault(_NUMBERS.sub("0", path.name), []).append(path)
    found = [group for group in groups.values() if any(map(_holds_samples, group))]
    found.sort(key=lambda group: (len(group), sum(path.stat().st_size for path in group)))
    return sorted(found[-1]) if found else []


def _holds_samples(path: Path) -> bool:
    try:
        return is_script(path)
    except OSError:
        return False


def _list_files(directory: Path) -> list[Path]:
    found = []
    with os.scandir(directory) as entries:
        for seen, entry in enumerate(entries):
            if seen >= _MOST:
                break
            if not entry.name.startswith(".") and entry.is_file() and entry.stat().st_size:
                found.append(Path(entry.path))
    return found


def sniff_path(path: Path) -> float | None:
    """Return how sure it is that samples of perf are at ``path``: in a file, or in several of a directory.

    A file of ``perf record`` is claimed, to say what to do with it, unless samples were printed beside it.
    """
    try:
        if path.is_dir():
            return 1.0 if len(find_files(path)) > 1 else None
        if is_data(path):
            return 0.5 if not find_files(path.parent) else None
        return 1.0 if is_script(path) else None
    except OSError:
        return None
