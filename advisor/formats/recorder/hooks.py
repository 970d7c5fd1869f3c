"""Recorder's traces: calls on files and of MPI of all ranks (see ``docs/formats/recorder.md``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.io_findings import build_access_findings

if TYPE_CHECKING:
    from advisor.model.records import Finding, Profile


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for the folder of a trace, else None."""
    return 1.0 if path.is_dir() and (path / "recorder.mt").is_file() and (path / "VERSION").is_file() else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run whose calls the trace in the folder holds; raises ``InputError`` for what is damaged."""
    from advisor.formats.recorder.reading import read_trace

    return read_trace(path)


@hookimpl
def advisor_findings(profile: Profile) -> Sequence[Finding]:
    """Return how the run accesses files, with the cost of each pattern."""
    return build_access_findings(profile, "recorder") if "recorder" in profile.reader.split("+") else ()
