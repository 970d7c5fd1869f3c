"""DFTracer traces (``.pfw``, ``.pfw.gz``): calls on files of all processes (see ``docs/formats/dftracer.md``)."""

from __future__ import annotations

import gzip
import re
import zlib
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.io_findings import build_access_findings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.model.records import Finding, Profile

#: An event as DFTracer writes it, one a line: other writers of Chrome's format order and space the fields otherwise.
_EVENT: Final = re.compile(
    rb'\s*\[?\s*\{"id":"?\d+"?,"name":"[^"]*","cat":"[^"]*","pid":"?\d+"?,"tid":"?\d+"?,("ts":"?\d+"?,"dur":|"ph":"M")'
)
_HEAD_BYTES: Final = 4096


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a trace of DFTracer, or a folder with those of several processes, else None."""
    if path.is_dir():
        traces = [each for each in path.iterdir() if each.name.endswith((".pfw", ".pfw.gz"))]
        return 1.0 if len(traces) > 1 and any(_is_trace(each) for each in sorted(traces)[:4]) else None
    return 1.0 if path.is_file() and _is_trace(path) else None


def _is_trace(path: Path) -> bool:
    try:
        with path.open("rb") as plain:
            head = plain.read(_HEAD_BYTES)
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(path) as packed:
                head = packed.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return False
    return bool(_EVENT.match(head))


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run whose calls on files the trace at ``path`` holds; raises ``InputError`` for what is damaged."""
    from advisor.formats.dftracer.reading import read_traces

    files = [each for each in path.iterdir() if each.name.endswith((".pfw", ".pfw.gz"))] if path.is_dir() else [path]
    return read_traces(sorted(files), path)


@hookimpl
def advisor_findings(profile: Profile) -> Sequence[Finding]:
    """Return how the run accesses files, with the cost of each pattern."""
    return build_access_findings(profile, "dftracer") if "dftracer" in profile.reader.split("+") else ()
