"""TALP, the monitor in DLB: JSON, tables and the report on stderr (see ``docs/formats/talp.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.formats.talp.recording import TalpRecording
    from advisor.model.records import Profile
    from advisor.trace.callpaths.records import CallPaths

#: What is looked at of a file: its beginning, and for the report in a program's output its end as well.
_HEAD: Final = 8 << 10
_TAIL: Final = 64 << 10
_PROCESSES: Final = b"Region,Rank,PID,"
_SUMS: Final = b"name,numCpus,"
_REPORTS: Final = (
    b"]: ################# Monitoring Region Summary ##",
    b"]: ############### Monitoring Region POP Metrics ##",
)


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for what TALP wrote, or a program's output with its report, else None.

    The table of sums belongs to the table of processes beside it, and is claimed only where that is missing.
    """
    form = _detect_layout(path) if path.is_file() else None
    if form == "csv" and _is_sums_of_another(path):
        return None
    return None if form is None else 1.0


def _detect_layout(path: Path) -> str | None:
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
        stream.seek(max(len(head), stream.seek(0, 2) - _TAIL))
        tail = stream.read(_TAIL)
    if head.lstrip().startswith(b"{") and b'"dlbVersion"' in head:
        return "json"
    if head.startswith((_PROCESSES, _SUMS)):
        return "csv"
    return "text" if any(mark in part for mark in _REPORTS for part in (head, tail)) else None


def _is_sums_of_another(path: Path) -> bool:
    from advisor.formats.talp.csv_tables import find_sibling

    with path.open("rb") as stream:
        return stream.read(len(_SUMS)) == _SUMS and find_sibling(path, processes=True) is not None


def _read_recording(path: Path) -> TalpRecording:
    from advisor.formats.talp import csv_tables, json_document, text_report
    from advisor.model.errors import InputError

    try:
        form = _detect_layout(path)
        if form == "json":
            return json_document.read_recording(path)
        return csv_tables.read_recording(path) if form == "csv" else text_report.read_recording(path)
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error


def read_call_paths(path: Path) -> CallPaths:
    """Return what TALP measured at ``path`` as call paths; raises ``InputError`` with the place of what is damaged."""
    from advisor.formats.talp.call_path_builder import build_call_paths

    return build_call_paths(_read_recording(path))


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run that TALP measured at ``path``; raises ``InputError`` with the place of what is damaged."""
    from dataclasses import replace

    from advisor.trace.callpaths.profile import from_call_paths

    # Which MPI calls were made is not recorded, so nothing can be said about who waited for whom.
    return replace(from_call_paths(read_call_paths(path), path), causes=None)
