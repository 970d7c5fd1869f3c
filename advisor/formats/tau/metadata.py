"""What the metadata of a file say about the run; the command line stays where it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from html import unescape
from typing import Final
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from advisor.formats.rank_files import Origin

_LIMIT: Final = 1 << 20
_BEGIN, _END = b"<metadata>", b"</metadata>"
_RANGE: Final = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """Program, start (ISO 8601, UTC where known) and whether the XML could be read."""

    program: str
    started: str | None
    sound: bool


def read_metadata(header: bytes) -> RunMetadata:
    """Return what the metadata in the second line of a file say about the run."""
    begin, end = header.find(_BEGIN), header.rfind(_END)
    if begin < 0:
        return RunMetadata("", None, sound=True)
    if end < begin or end - begin > _LIMIT:
        return RunMetadata("", None, sound=False)
    try:
        found = {
            attribute.findtext("name") or "": attribute.findtext("value") or ""
            for attribute in fromstring(header[begin : end + len(_END)])
        }
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        return RunMetadata("", None, sound=False)
    path = found.get("Executable") or (found.get("Command Line", "").split() or [""])[0]
    return RunMetadata(
        path.rpartition("/")[2], _parse_start_time(found.get("UTC Time") or found.get("Local Time")), sound=True
    )


def find_host(header: bytes) -> str | None:
    """Return the node that the file was written on."""
    return _find_value(header, b"Hostname") or _find_value(header, b"Node Name")


def find_process(header: bytes) -> str | None:
    """Return the number of the process that wrote the file, as the system gave it."""
    return _find_value(header, b"pid")


def find_start(header: bytes) -> int:
    """Return when the process started, in microseconds since 1970; 0 where the file does not tell."""
    start = _find_value(header, b"Starting Timestamp") or ""
    return int(start) if start.isascii() and start.isdigit() and len(start) < 18 else 0


def read_origin(header: bytes, name: str) -> Origin:
    """Return what the file ``name`` with this header says of its process."""
    program = _find_value(header, b"Executable") or ""
    start, process = find_start(header), find_process(header)
    identity = (
        f"{find_host(header)} {process} {start} {_find_value(header, b'tid')}".encode() if start and process else b""
    )
    return Origin(name, program, start * 1e-6 if start else None, None, identity)


def count_cores(headers: Sequence[bytes]) -> int | None:
    """Return on how many cores the processes might run, over all nodes; None where one does not say."""
    allowed: dict[str | None, set[int]] = {}
    for header in headers:
        mine = _parse_numbers(_find_value(header, b"CPUs Allowed List") or "")
        if not mine:
            return None
        allowed.setdefault(find_host(header), set()).update(mine)
    return sum(map(len, allowed.values())) or None


def _find_value(header: bytes, name: bytes) -> str | None:
    """Return the value of an attribute without reading the others: runs have thousands of files."""
    mark = b"<name>" + name + b"</name><value>"
    begin = header.find(mark)
    end = header.find(b"</value>", begin)
    if begin < 0 or end < 0 or end - begin > 10_000:
        return None
    return unescape(header[begin + len(mark) : end].decode("utf-8", "surrogateescape")) or None


@lru_cache(maxsize=64)
def _parse_numbers(text: str) -> frozenset[int]:
    """Return the numbers of a list such as ``0-3,8``; none where it is no list."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if not match:
            return frozenset()
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)


def _parse_start_time(text: str | None) -> str | None:
    try:
        return datetime.fromisoformat(text).isoformat() if text else None
    except ValueError:
        return None
