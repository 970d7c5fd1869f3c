"""Darshan logs: what a run read and wrote, by file, rank and interface (see ``docs/formats/darshan.md``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.model.records import Finding, Profile

#: Begins a log: the version of the format, and a number that also tells the order of bytes.
_MAGIC: Final = 6567223
_VERSION_BYTES: Final = 8


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a log of Darshan 3, else None."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        head = stream.read(2 * _VERSION_BYTES)
    version, magic = head[:_VERSION_BYTES].rstrip(b"\0"), head[_VERSION_BYTES:]
    known = len(version) == 4 and version.startswith(b"3.") and version[2:].isdigit()
    return 1.0 if known and _MAGIC in (int.from_bytes(magic, "little"), int.from_bytes(magic, "big")) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run whose I/O the log at ``path`` records; raises ``InputError`` for what is damaged."""
    from advisor.formats.darshan.logs import read_log
    from advisor.formats.darshan.profile import from_log

    return from_log(read_log(path), path)


@hookimpl
def advisor_findings(profile: Profile) -> Sequence[Finding]:
    """Return how the run accesses files, and the files with small, unaligned and shared access, each with its cost."""
    if "darshan" not in profile.reader.split("+") or profile.causes is None:
        return ()
    from advisor.formats.darshan.findings import build_findings
    from advisor.formats.io_findings import build_access_findings

    return (*build_access_findings(profile, "darshan"), *build_findings(profile, profile.causes))
