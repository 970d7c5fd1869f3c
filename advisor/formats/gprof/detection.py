"""Which files are reports of gprof, and which of them belong to one run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError

_GLANCE: Final = 4096  # bytes
_FLAT: Final = re.compile(
    rb"^Flat profile:[ \t\r]*\n[ \t\r]*\nEach sample counts as [0-9.]+ seconds\.[ \t\r]*$", re.MULTILINE
)
_GRAPH: Final = re.compile(
    rb"^[ \t\f\r\n]*Call graph( \(explanation follows\))?[ \t\r]*\n[ \t\r\n]*granularity: each sample hit covers ",
    re.MULTILINE,
)
_NUMBER: Final = re.compile(r"[0-9]+")


def sniff_file(path: Path) -> float | None:
    """Return 1 for a file that begins with a table of gprof, after a heading of whoever put it there."""
    head = _read_head(path)
    return 1.0 if _FLAT.search(head) or _GRAPH.search(head) else None


def sniff_directory(path: Path) -> float | None:
    """Return 1 for a directory with one report, or with several whose names differ in a single number."""
    found = _find_reports(path)
    return 1.0 if found and (len(found) == 1 or find_file_numbers([file.name for file in found]) is not None) else None


def find_files(path: Path) -> list[Path]:
    """Return the reports of the run at ``path``, ordered by rank; raises ``InputError`` when there are none."""
    if not path.is_dir():
        return [path]
    found = _find_reports(path)
    if not found:
        raise InputError(path, "no reports of gprof here")
    numbers = find_file_numbers([file.name for file in found])
    if numbers is None and len(found) > 1:
        raise InputError(path, "reports of several runs: their names do not differ in a number alone")
    return [found[n] for n in sorted(range(len(found)), key=lambda n: numbers[n] if numbers else n)]


def find_file_numbers(names: Sequence[str]) -> list[int] | None:
    """Return the number in which ``names`` differ, for each; None when they do not differ in one number alone."""
    parts = [_NUMBER.split(name) for name in names]
    numbers = [[int(text[:18]) for text in _NUMBER.findall(name)] for name in names]
    if any(part != parts[0] for part in parts):
        return None
    differing = [column for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    return list(differing[0]) if len(differing) == 1 and len(set(differing[0])) == len(names) else None


def _find_reports(directory: Path) -> list[Path]:
    return [file for file in sorted(directory.iterdir()) if sniff_file(file) is not None]


def _read_head(file: Path) -> bytes:
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as stream:
            return stream.read(_GLANCE)
    except OSError:
        return b""
