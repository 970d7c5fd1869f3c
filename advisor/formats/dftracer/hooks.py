"""DFTracer traces (``.pfw``, ``.pfw.gz``): calls on files of all processes (see ``docs/formats/dftracer.md``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.io_findings import build_access_findings
from advisor.formats.plain_text import read_head

if TYPE_CHECKING:
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
    return bool(_EVENT.match(read_head(path, _HEAD_BYTES)))


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run whose calls on files the trace at ``path`` holds; raises ``InputError`` for what is damaged."""
    from dataclasses import replace

    from advisor.formats.dftracer.reading import read_traces
    from advisor.formats.rank_files import note_copies

    files = [each for each in path.iterdir() if each.name.endswith((".pfw", ".pfw.gz"))] if path.is_dir() else [path]
    profile = read_traces(sorted(files), path)
    return replace(profile, notes=(*profile.notes, *note_copies(files)))


@hookimpl
def advisor_findings(profile: Profile) -> Sequence[Finding]:
    """Return how the run accesses files, with the cost of each pattern."""
    return build_access_findings(profile, "dftracer") if "dftracer" in profile.reader.split("+") else ()
