"""Nsight Systems reports, exported as SQLite, Parquet or Arrow, and summaries (see ``docs/formats/nsys.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.analysis.quality import RECORD_CUDA
from advisor.extension.hookspecs import hookimpl
from advisor.formats.nsys.columns import is_report_folder
from advisor.formats.nsys.detection import is_activity_list, is_command_line_log, is_summary
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import Profile

_MAGIC: Final = b"SQLite format 3\0"


def list_reports(folder: Path) -> list[Path]:
    """Return the exported reports directly in a directory."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in (".sqlite", ".db"))
    except OSError:
        return []
    return [path for path in files if _is_report(path)]


def _is_report(path: Path) -> bool:
    return _holds_devices(_list_tables(path))


def _holds_devices(tables: set[str]) -> bool:
    return bool({"StringIds", "StringTable"} & tables) and any(
        name.startswith(("CUPTI_ACTIVITY_KIND_", "NVTX_", "META_DATA_")) for name in tables
    )


def _is_empty(tables: set[str]) -> bool:
    """Return whether nothing of devices is in a report: they were not recorded, or nothing used them."""
    return {"StringIds", "TARGET_INFO_SESSION_START_TIME"} <= tables and not _holds_devices(tables)


def _list_tables(path: Path) -> set[str]:
    """Return the tables of a database; none of what is no database."""
    try:
        with path.open("rb") as stream:
            if stream.read(len(_MAGIC)) != _MAGIC:
                return set()
    except OSError:
        return set()
    from advisor.formats.nsys.report import list_tables  # only now: SQLite is not loaded for other files

    return set(list_tables(path))


def _start_together(reports: list[Path]) -> bool:
    """Return whether reports may be of one run's processes: sessions that begin long apart are runs of their own."""
    from advisor.formats.nsys.report import read_start_s
    from advisor.formats.rank_files import WINDOW_S

    starts = [start for report in reports if (start := read_start_s(report)) is not None]
    return len(starts) < len(reports) or max(starts) - min(starts) <= WINDOW_S


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for an exported report, and a little less for a directory with several."""
    if path.is_dir() and is_report_folder(path):
        return 1.0
    if path.is_dir():
        reports = list_reports(path)
        return 0.95 if len(reports) > 1 and _start_together(reports) else None
    if not path.is_file():
        return None
    tables = _list_tables(path)
    if _holds_devices(tables) or _is_empty(tables):
        return 1.0
    return 0.9 if is_summary(path) or is_activity_list(path) or is_command_line_log(path) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded at ``path``, all reports of it; raises ``InputError`` for what is damaged."""
    from advisor.formats.device_ranks import profile_device_ranks

    tables = _list_tables(path) if path.is_file() else set()
    if _is_empty(tables):
        raise InputError(path, f"Nsight Systems recorded nothing of devices in this run: {RECORD_CUDA}")
    if path.is_file() and not _holds_devices(tables):
        if is_activity_list(path):
            from advisor.formats.nsys.activity_lists import read_device_trace as read_list

            return profile_device_ranks(read_list(path), path, "nsys", [path])
        if is_command_line_log(path):
            from advisor.formats.nsys.command_line_log import read_command_line_log

            return read_command_line_log(path)
        from advisor.formats.nsys.summary_tables import read_summary

        return read_summary(path)
    from advisor.formats.nsys.report import read_device_trace

    files = list_reports(path) if path.is_dir() and not is_report_folder(path) else [path]
    return profile_device_ranks(read_device_trace(files), path, "nsys", [file for file in files if file.is_file()])
