"""Which tables of rocprofv3 are of one recording: those whose moments do not lie far apart.

``--output-format csv`` without a process id in the name writes ``kernel_trace.csv`` over and over again, and tables of
an earlier recording that a later one did not write stay beside it. Clocks of nodes count from different moments: where
processes communicate they are of one run all the same.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

_ENDS: Final = 64 << 10
_COMMUNICATES: Final = re.compile(rb"nccl|rccl", re.IGNORECASE)
_COLUMNS: Final = ("Start_Timestamp", "End_Timestamp")
#: Within a recording nothing is silent for longer than this many nanoseconds and this many times what is recorded.
_PAUSE_NS: Final = 60e9
_TIMES: Final = 10.0

#: What has more digits is no time, and is refused when the table is read.
_DIGITS: Final = 18
Window = tuple[int, int]


def hold_one_run(processes: Iterable[Mapping[str, Path]]) -> bool:
    """Return whether the tables of several processes, by kind, may be of one run."""
    windows = []
    for tables in processes:
        if "rccl_api" in tables or _COMMUNICATES.search(b"\n".join(_read_ends(tables["kernel"]))):
            return True
        if window := read_window(tables["kernel"]):
            windows.append(window)
    return not lie_apart(windows)


def separate_tables(tables: Mapping[str, Path]) -> tuple[dict[str, Path], list[Path]]:
    """Return the tables of the recording that the kernels are of, by kind, and those of other recordings."""
    kernels = read_window(tables["kernel"])
    kept, foreign = {}, []
    for kind, path in tables.items():
        window = read_window(path) if kernels and kind != "kernel" else None
        if window and kernels and lie_apart([kernels, window]):
            foreign.append(path)
        else:
            kept[kind] = path
    return kept, foreign


def lie_apart(windows: Iterable[Window]) -> bool:
    """Return whether a pause between recordings, in nanoseconds, is out of proportion to what is recorded."""
    ordered = sorted(windows)
    recorded = sum(end - start for start, end in ordered)
    reached = ordered[0][1] if ordered else 0
    for _, (start, end) in pairwise(ordered):
        if start - reached > max(_PAUSE_NS, _TIMES * recorded):
            return True
        reached = max(reached, end)
    return False


def read_window(path: Path) -> Window | None:
    """Return the first start and the last end in the beginning and the end of a table; None where it holds none."""
    rows = _read_ends(path)
    reader = csv.DictReader(io.StringIO("\n".join(row.decode("utf-8", "replace") for row in rows)))
    starts, ends = [], []
    try:
        for row in reader:
            start, end = (row.get(column) or "" for column in _COLUMNS)
            if start.isdecimal() and end.isdecimal() and max(len(start), len(end)) <= _DIGITS:
                starts.append(int(start))
                ends.append(int(end))
    except csv.Error:
        return None
    return (min(starts), max(ends)) if starts else None


def _read_ends(path: Path) -> list[bytes]:
    """Return the whole lines at the beginning and the end of a file; none of what cannot be read."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_ENDS)
            size = stream.seek(0, 2)
            stream.seek(max(size - _ENDS, len(head)))
            tail = stream.read()
    except OSError:
        return []
    lines = head.split(b"\n")
    return [*(lines if len(head) == size else lines[:-1]), *tail.split(b"\n")[1:]]
