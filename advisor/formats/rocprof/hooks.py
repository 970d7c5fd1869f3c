"""Databases, CSV tables and JSON of rocprofv3 (see ``docs/formats/rocprof.md``)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.plain_text import read_head
from advisor.model.errors import InputError
from advisor.model.records import Note, Profile

if TYPE_CHECKING:
    from advisor.trace.devices.events import DeviceTrace

#: One process writes several tables with names that begin alike.
_TABLE: Final = re.compile(
    r"^(?P<prefix>.*?)_?(?P<kind>kernel|memory_copy|hip_api|hsa_api|marker_api|rccl_api)_trace\.csv$"
)
_COLUMNS: Final = (b"Start_Timestamp", b"End_Timestamp", b"Correlation_Id")
_HEAD_BYTES: Final = 4096
#: The first key of rocprofv3's JSON stands within so many bytes.
_MARK_BYTES: Final = 64
_SUMS: Final = re.compile(rb'"?Name"?,"?Calls"?,"?TotalDurationNs?"?,"?AverageNs?"?,"?Percentage"?')
_MAGIC: Final = b"SQLite format 3\0"
_ANEW: Final = "rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --marker-trace -d NEW_FOLDER -- ./PROGRAM"


def group_tables(folder: Path) -> dict[str, dict[str, Path]]:
    """Return the tables in a directory and one level below, by process and kind."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted([*folder.glob("*_trace.csv"), *folder.glob("*/*_trace.csv")]):
        match = _TABLE.match(path.name)
        if match and _is_table(path):
            found.setdefault(f"{path.parent}/{match['prefix']}", {})[match["kind"]] = path
    return {process: tables for process, tables in found.items() if "kernel" in tables}


def _is_table(path: Path) -> bool:
    first = _read_header(path)
    return all(column in first for column in _COLUMNS)


def _is_kernel_table(path: Path) -> bool:
    """Return whether a table holds kernels, whatever it is called."""
    return b"Kernel_Name" in _read_header(path) and _is_table(path)


def _read_header(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES).split(b"\n", 1)[0]
    except OSError:
        return b""


def list_databases(folder: Path) -> list[Path]:
    """Return the databases of rocprofv3 in a directory and one level below."""
    return [path for path in sorted([*folder.glob("*.db"), *folder.glob("*/*.db")]) if _is_database(path)]


def list_documents(folder: Path) -> list[Path]:
    """Return the JSON documents of rocprofv3 in a directory and one level below."""
    files = [*folder.glob("*results.json*"), *folder.glob("*/*results.json*")]
    return [path for path in sorted(files) if _is_json(path)]


def _is_database(path: Path) -> bool:
    if not path.is_file() or read_head(path, len(_MAGIC)) != _MAGIC:
        return False
    from advisor.formats.rocprof.rocpd import has_kernels  # only now: SQLite is not loaded for other files

    return has_kernels(path)


def _is_json(path: Path) -> bool:
    return path.is_file() and b'"rocprofiler-sdk-tool"' in read_head(path, _HEAD_BYTES)[:_MARK_BYTES]


def _is_first_json(path: Path) -> bool:
    """Return whether a document is one of rocprof 1 or 2."""
    head = read_head(path, _HEAD_BYTES) if path.is_file() else b""
    return b'"traceEvents"' in head[:_MARK_BYTES] and b'"CPU HIP API"' in head and b'"process_name"' in head


def _is_statistics(path: Path) -> bool:
    """Return whether a table holds sums of kernels or calls."""
    return path.suffix == ".csv" and _SUMS.match(_read_header(path)) is not None


def _is_first_database(path: Path) -> bool:
    if not path.is_file() or read_head(path, len(_MAGIC)) != _MAGIC:
        return False
    from advisor.formats.rocprof.first_version import is_database

    return is_database(path)


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for tables of kernels, databases and JSON documents of rocprofv3, and less for directories of them.

    A directory whose tables of kernels are of several recordings is left alone: each of them is a run.
    """
    if path.is_dir():
        return 0.95 if list_databases(path) or _holds_one_run(path) or list_documents(path) else None
    if path.name.endswith((".json", ".json.gz")):
        return 1.0 if _is_json(path) or _is_first_json(path) else None
    if path.suffix == ".db":
        return 1.0 if _is_database(path) or _is_first_database(path) else None
    if path.is_file() and _is_statistics(path):
        return 0.9
    match = _TABLE.match(path.name)
    if match and match["kind"] != "kernel":
        return None
    return 1.0 if path.is_file() and _is_kernel_table(path) else None


def _holds_one_run(folder: Path) -> bool:
    processes = group_tables(folder)
    if len(processes) < 2:
        return bool(processes)
    from advisor.formats.rocprof.recordings import hold_one_run

    return hold_one_run(processes.values())


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded at ``path``; a table brings the others of its process.

    Where a directory holds the run in several formats the database counts. Raises ``InputError`` for what is damaged.
    """
    if path.is_file() and _is_statistics(path):
        from advisor.formats.rocprof.statistics_tables import read_statistics

        return read_statistics(path)
    from advisor.formats.device_ranks import profile_device_ranks

    trace, files, foreign = _read_trace(path)
    profile = profile_device_ranks(trace, path, "rocprof", files)
    if not foreign:
        return profile
    names = ", ".join(sorted(each.name for each in foreign))
    text = f"tables of another recording lie beside the kernels and are left out: {names}"
    return replace(profile, notes=(*profile.notes, Note("tables of another recording", text, 0.2, _ANEW)))


def _read_trace(path: Path) -> tuple[DeviceTrace, list[Path], list[Path]]:
    """Return the trace, the files of kernels that it is in, and tables beside them that are of other recordings."""
    if _is_first_database(path) or _is_first_json(path):
        from advisor.formats.rocprof.first_version import read_recordings

        return read_recordings([path]), [path], []
    databases = list_databases(path) if path.is_dir() else [path] if path.suffix == ".db" else []
    if databases:
        from advisor.formats.rocprof.rocpd import read_databases

        return read_databases(databases), databases, []
    processes = group_tables(path if path.is_dir() else path.parent)
    if not path.is_dir():
        processes = {name: tables for name, tables in processes.items() if tables["kernel"] == path}
        if not processes and _is_kernel_table(path):
            processes = {"": {"kernel": path}}
    if processes:
        from advisor.formats.rocprof.recordings import separate_tables
        from advisor.formats.rocprof.tables import read_device_trace

        separated = [separate_tables(tables) for tables in processes.values()]
        trace = read_device_trace([kept for kept, _ in separated])
        return trace, [kept["kernel"] for kept, _ in separated], [each for _, foreign in separated for each in foreign]
    documents = list_documents(path) if path.is_dir() else [path] if _is_json(path) else []
    if not documents:
        raise InputError(path, "no kernels of rocprofv3 here: neither a database, nor kernel_trace.csv, nor JSON")
    from advisor.formats.rocprof.results_json import read_documents

    return read_documents(documents), documents, []
