"""Where the files of a run are: ``profile.N.C.T`` for node, context and thread, once for each metric."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from advisor.formats.plain_text import read_head

#: What to say about binary traces, which gapwatch does not read itself.
CONVERT: Final = (
    "a binary trace of TAU; turn it into OTF2: run tau_treemerge.pl beside it, then tau2otf2 tau.trc tau.edf app.otf2 "
    "(tau_trace2otf2 where it has that name), and give gapwatch app.otf2"
)
METRIC_FOLDER: Final = "MULTI__"
#: Node, context and thread in the name of a file; what does not fit here is no rank.
_NAME: Final = re.compile(r"profile\.(-?\d{1,7})\.(\d{1,7})\.(\d{1,7})")
_PROFILE: Final = re.compile(rb"\d{1,9} templated_functions(_MULTI_[^\n]{1,500})?\r?\n# Name Calls ")
_EVENTS: Final = re.compile(rb"\d{1,9} dynamic_trace_events\r?\n")
#: How packed profiles begin, where they are not packed by gzip besides.
PACKED: Final = "PPK".encode("utf-16-be")
GZIP: Final = b"\x1f\x8b"
#: How a profile as XML begins: all ranks of a run merged, or snapshots of a thread.
_XML: Final = re.compile(rb"\s*<profile_xml>\s*<(definitions|thread|profile)[ >]")
_SNAPSHOT: Final = re.compile(r"snapshot\.-?\d{1,7}\.\d{1,7}\.\d{1,7}")
_HEAD: Final = 1024
#: A record of a trace: event, node, thread, parameter, microseconds.
_RECORD: Final = struct.Struct("<iHHqQ")
#: The first record of every trace; the second states its seconds.
_BEGIN: Final = 3
#: So many files of a directory are looked into, so many names are looked at, before it is given up.
_TRIED: Final = 3
_LISTED: Final = 100_000

Place = tuple[int, int, int]


def detect_layout(path: Path) -> str | None:
    """Return ``profile``, ``packed``, ``xml`` or ``trace`` for what TAU wrote, file or directory, else None."""
    if not path.is_dir():
        return _detect_file_layout(path)
    folders = [path, *_metric_folders(path)]
    if any(_holds_layout(_iterate_profiles(folder), "profile") for folder in folders):
        return "profile"
    if _holds_layout(find_snapshots(path), "xml"):
        return "xml"
    traces = (path / name for name in _list_names(path) if name.endswith((".trc", ".edf")))
    return "trace" if _holds_layout(traces, "trace") else None


def find_files(path: Path) -> list[dict[Place, Path]]:
    """Return the files of each metric by node, context and thread; a single file is that of the place it names."""
    if not path.is_dir():
        return [{_parse_place(path.name) or (0, 0, 0): path}]
    found = [_files_by_place(folder) for folder in _metric_folders(path)]
    return [files for files in found if files] or [_files_by_place(path)]


def find_snapshots(path: Path) -> list[Path]:
    """Return the snapshots in a directory, a file for each thread; ``path`` itself where it is a file."""
    if not path.is_dir():
        return [path]
    return sorted(path / name for name in _list_names(path) if _SNAPSHOT.fullmatch(name))


def has_mixed_metrics(path: Path) -> bool:
    """Return whether a directory holds profiles of several metrics and others beside them."""
    return path.is_dir() and bool(_metric_folders(path)) and bool(_files_by_place(path))


def _files_by_place(folder: Path) -> dict[Place, Path]:
    found = {
        place: path
        for path in _iterate_profiles(folder)
        if (place := _parse_place(path.name)) is not None and path.is_file()
    }
    return dict(sorted(found.items()))


def _metric_folders(path: Path) -> list[Path]:
    return sorted(
        path / name for name in _list_names(path) if name.startswith(METRIC_FOLDER) and (path / name).is_dir()
    )


def _iterate_profiles(folder: Path) -> Iterator[Path]:
    return (folder / name for name in _list_names(folder) if _NAME.fullmatch(name))


def _list_names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, _LISTED)]
    except OSError:
        return []


def _parse_place(name: str) -> Place | None:
    found = _NAME.fullmatch(name)
    return (max(int(found[1]), 0), int(found[2]), int(found[3])) if found else None


def _holds_layout(paths: Iterable[Path], wanted: str) -> bool:
    return any(_detect_file_layout(path) == wanted for path in islice(paths, _TRIED) if path.is_file())


def _detect_file_layout(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return None
    if _PROFILE.match(head):
        return "profile"
    if head.startswith(GZIP):
        head = read_head(path)
    if head.startswith(PACKED):
        return "packed"
    if _XML.match(head):
        return "xml"
    return "trace" if _EVENTS.match(head) or _is_trace(head) else None


def _is_trace(head: bytes) -> bool:
    """Return whether a file begins with the two records that each trace begins with."""
    if len(head) < 2 * _RECORD.size:
        return False
    _, _, _, begin, time = _RECORD.unpack_from(head)
    _, _, _, seconds, again = _RECORD.unpack_from(head, _RECORD.size)
    return bool(begin == _BEGIN and time == again and abs(time // 1_000_000 - (seconds & 0xFFFFFFFF)) <= 1)
