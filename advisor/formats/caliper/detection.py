"""Which files are Caliper's, told from their beginnings and ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from advisor.formats.rank_numbers import find_ranks_by_name
from advisor.model.errors import InputError

Layout = Literal["cali", "split", "records", "object"]

_GLANCE: Final = 16 << 10  # bytes at each end of a file
_BOM: Final = b"\xef\xbb\xbf"
_SPLIT: Final = re.compile(rb'\{\s*"(data|columns|column_metadata|nodes)"\s*:\s*\[')
#: What Caliper itself begins a json-split file with, down to the spaces.
_SPLIT_AS_WRITTEN: Final = b'{\n  "data": [\n    [ '
_RECORDS: Final = re.compile(rb"\[\s*\{")
_OBJECT: Final = re.compile(rb'\{\s*"records"\s*:\s*\[')
#: Keys that nobody else uses.
_OWN_KEYS: Final = re.compile(rb'"(?:[a-z#]*time\.(?:inclusive\.)?duration[^"]*|mpi\.rank|Node order|aggregate\.slot)"')
_PLAIN_RECORD: Final = re.compile(rb'\[\n\{\s*"path":"[^"]*",\s*"(?:Min |Max |Avg |Total )?[tT]ime[^"]*":[0-9]')
_RANK_ATTRIBUTE: Final = re.compile(rb"__rec=node,id=([0-9]+),attr=8,data=mpi\.rank,")
#: What has one value for a run, and of a file over all ranks the names of what it holds.
_OF_RUN: Final = (b"launchdate", b"executablepath", b"mpi.world.size", b"jobsize", b"jobid")
_OF_RUN_ATTRIBUTE: Final = re.compile(
    rb"__rec=node,id=([0-9]+),attr=8,data=(launchdate|executablepath|mpi\.world\.size|jobsize|jobid)[,\n]"
)
_NODE: Final = re.compile(rb"__rec=node,id=[0-9]+,attr=([0-9]+),data=([^,\n]*)")
_OVER_RANKS: Final = re.compile(
    rb"data=(?:spot\.format\.version|(?:min|avg)#[a-z#]*#[a-z]+#time\.duration[a-z.]*)[,\n]"
)
_FIRST_RECORD: Final = re.compile(rb"__rec=ctx,[^\n]*attr=([0-9=]+),data=([^\n,]*)")


def detect_layout(head: bytes) -> Layout | None:
    """Return how a file that begins with ``head`` is laid out, None when that is no layout of Caliper."""
    text = head.removeprefix(_BOM).lstrip()
    if text.startswith(b"__rec="):
        return "cali"
    if _SPLIT.match(text):
        return "split"
    if _OBJECT.match(text):
        return "object"
    return "records" if _RECORDS.match(text) else None


def sniff_file(path: Path) -> float | None:
    """Return how sure it is that the file at ``path`` is Caliper's."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        head = stream.read(_GLANCE)
        stream.seek(max(len(head), stream.seek(0, 2) - _GLANCE))
        tail = stream.read()
    found = detect_layout(head)
    if found == "cali":
        return 1.0
    if found == "split":
        both = head + tail
        if b'"column_metadata"' in both or (b'"label"' in both and b'"column"' in both):
            return 1.0
        return 0.5 if head.startswith(_SPLIT_AS_WRITTEN) else None
    if found in ("records", "object") and _OWN_KEYS.search(head):
        return 1.0
    return 0.3 if found == "records" and _PLAIN_RECORD.match(head.removeprefix(_BOM)) else None


def sniff_directory(path: Path) -> float | None:
    """Return 1 for a directory whose ``.cali`` files are of different ranks, and so of one run."""
    files = _find_native_files(path)
    ranks = [_find_rank(file) for file in files]
    if all(rank is None for rank in ranks):
        apart = find_ranks_by_name([file.stem for file in files], ranks) is not None and not _are_runs(files)
    else:
        apart = None not in ranks and len(set(ranks)) == len(ranks)
    return 1.0 if files and (apart or len(files) == 1) else None


def find_files(path: Path) -> list[Path]:
    """Return the files of the run at ``path``; raises ``InputError`` when there are none."""
    if not path.is_dir():
        return [path]
    found = _find_native_files(path)
    if not found:
        raise InputError(path, "no .cali files of Caliper here")
    return found


def _are_runs(files: Sequence[Path]) -> bool:
    """Return whether files without ranks are so many runs: each holds all ranks together, or they differ as runs do."""
    stated = [_read_ends(file) for file in files]
    return any(_OVER_RANKS.search(text) for text, _ in stated) or any(
        len({found[name] for _, found in stated if name in found}) > 1 for name in _OF_RUN
    )


def _read_ends(file: Path) -> tuple[bytes, dict[bytes, bytes]]:
    """Return both ends of a ``.cali`` file and what identifies its run there."""
    try:
        with file.open("rb") as stream:
            text = stream.read(_GLANCE)
            stream.seek(max(len(text), stream.seek(0, 2) - _GLANCE))
            text += stream.read()
    except OSError:
        return b"", {}
    names = {found[1]: found[2] for found in _OF_RUN_ATTRIBUTE.finditer(text)}
    values = {names[found[1]]: found[2] for found in _NODE.finditer(text) if found[1] in names}
    return text, values


def _find_native_files(directory: Path) -> list[Path]:
    return [file for file in sorted(directory.iterdir()) if file.is_file() and _read_head(file).startswith(b"__rec=")]


def _read_head(file: Path, size: int = 8) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(size)
    except OSError:
        return b""


def _find_rank(file: Path) -> int | None:
    """Return the rank that the first records of a ``.cali`` file name, None when they name none."""
    head = _read_head(file, _GLANCE)
    attribute = _RANK_ATTRIBUTE.search(head)
    if attribute is None:
        return None
    for record in _FIRST_RECORD.finditer(head):
        attributes, data = record[1].split(b"="), record[2].split(b"=")
        if attribute[1] in attributes and len(attributes) == len(data):
            text = data[attributes.index(attribute[1])]
            return int(text) if text.isdigit() and len(text) < 10 else None
    return None
