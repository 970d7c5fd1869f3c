"""CSV tables of rocprofv3 (see ``docs/formats/rocprof.md``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

#: One process writes several tables with names that begin alike.
_TABLE: Final = re.compile(
    r"^(?P<prefix>.*?)_?(?P<kind>kernel|memory_copy|hip_api|hsa_api|marker_api|rccl_api)_trace\.csv$"
)
_COLUMNS: Final = (b"Start_Timestamp", b"End_Timestamp", b"Correlation_Id")
_HEAD_BYTES: Final = 4096


def group_tables(folder: Path) -> dict[str, dict[str, Path]]:
    """Return the tables in a directory and one level below, by process and kind."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted([*folder.glob("*_trace.csv"), *folder.glob("*/*_trace.csv")]):
        match = _TABLE.match(path.name)
        if match and _is_table(path):
            found.setdefault(f"{path.parent}/{match['prefix']}", {})[match["kind"]] = path
    return {process: tables for process, tables in found.items() if "kernel" in tables}


def _is_table(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            first = stream.read(_HEAD_BYTES).split(b"\n", 1)[0]
    except OSError:
        return False
    return all(column in first for column in _COLUMNS)


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a directory that holds tables of kernels, and for such a table."""
    if path.is_dir():
        return 0.95 if group_tables(path) else None
    match = _TABLE.match(path.name)
    return 1.0 if match and match["kind"] == "kernel" and path.is_file() and _is_table(path) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded at ``path``; a table brings the others of its process.

    Raises ``InputError`` for what is damaged.
    """
    from advisor.formats.rocprof.tables import read_device_trace
    from advisor.trace.devices.profile import profile_devices

    processes = group_tables(path if path.is_dir() else path.parent)
    if not path.is_dir():
        processes = {name: tables for name, tables in processes.items() if tables["kernel"] == path}
    if not processes:
        raise InputError(path, "no table of kernels (kernel_trace.csv) of rocprofv3 here")
    return profile_devices(read_device_trace(list(processes.values())), path, "rocprof")
