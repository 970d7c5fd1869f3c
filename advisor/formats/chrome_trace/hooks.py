"""Chrome trace JSON, as PyTorch's profiler writes it (see ``docs/formats/chrome_trace.md``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.plain_text import read_head

if TYPE_CHECKING:
    from advisor.model.records import Profile

#: What PyTorch's profiler, JAX and rocprof write near the beginning, and other programs' JSON does not.
_MARKS: Final = re.compile(rb'"(deviceProperties|distributedInfo|traceEvents)"\s*:')
_EVENT: Final = re.compile(rb'^\s*\[\s*\{[^{}]*"ph"\s*:')
_RANK: Final = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d+)')
#: Programs that call the profiler may write what they please before the events: so far a JSON object is looked into.
_FAR_BYTES: Final = 1 << 19
#: More files than this in a directory are not looked into.
_MOST_FILES: Final = 10_000


def list_traces(folder: Path) -> list[Path]:
    """Return the files directly in a directory that begin as Chrome traces."""
    return list(_iterate_traces(folder))


def _iterate_traces(folder: Path) -> Iterator[Path]:
    try:
        files = sorted(path for path in folder.iterdir() if path.name.endswith((".json", ".json.gz")))
    except OSError:
        return
    yield from (path for path in files[:_MOST_FILES] if path.is_file() and _is_trace(path))


def _holds_ranks(folder: Path) -> bool:
    """Return whether all traces of a directory are of different ranks; looks no further than the first that is not."""
    ranks: set[int] = set()
    for path in _iterate_traces(folder):
        rank = find_rank(path)
        if rank is None or rank in ranks:
            return False
        ranks.add(rank)
    return len(ranks) > 1


def find_rank(path: Path) -> int | None:
    """Return the rank that the file states near its beginning."""
    found = _RANK.search(read_head(path))
    return int(found[1]) if found else None


def _is_trace(path: Path) -> bool:
    head = read_head(path)
    if _MARKS.search(head) or _EVENT.match(head):
        return True
    far = head.lstrip()[:1] == b"{"
    return far and b'"traceEvents"' in read_head(path, _FAR_BYTES)


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 0.9 for a Chrome trace, and for a directory that holds one trace of each of several ranks."""
    if path.is_dir():
        return 0.95 if _holds_ranks(path) else None
    if not path.is_file() or not path.name.endswith((".json", ".json.gz")):
        return None
    return 0.9 if _is_trace(path) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded at ``path``, all ranks of it; raises ``InputError`` for what is damaged."""
    from advisor.formats.chrome_trace.trace_builder import NO_DEVICES, read_device_trace
    from advisor.formats.device_ranks import profile_device_ranks
    from advisor.model.errors import InputError

    files = list_traces(path) if path.is_dir() else [path]
    try:
        trace = read_device_trace(files)
    except InputError as error:
        if error.reason != NO_DEVICES or path.is_dir():
            raise
    else:
        return profile_device_ranks(trace, path, "chrome_trace", files)
    from advisor.formats.chrome_trace.host_events import read_call_paths
    from advisor.trace.callpaths.profile import from_call_paths

    return from_call_paths(read_call_paths(path), path)
