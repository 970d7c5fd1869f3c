"""What ``perf stat`` prints: CSV, JSON, a table; one file for each rank (see ``docs/formats/perf.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for counts of perf stat in any of its forms, or a directory with that of several ranks, else None."""
    from advisor.formats.perf_stat import detection

    return detection.sniff_path(path)


def read_call_paths(path: Path) -> CallPaths:
    """Return CPU times and counts of each rank; raises ``InputError`` with the line of what is damaged."""
    from advisor.formats.perf_stat import detection
    from advisor.formats.perf_stat.call_path_builder import build_call_paths
    from advisor.formats.perf_stat.table import read_table
    from advisor.formats.perf_stat.text_table import read_text_table
    from advisor.formats.rank_files import check_copies
    from advisor.model.errors import InputError

    try:
        files = detection.find_files(path) if path.is_dir() else [path]
        forms = [detection.detect_layout(file) for file in files]
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
    if not files:
        raise InputError(path, "no counts of perf stat here")
    tables = [
        read_text_table(file) if form == "text" else read_table(file, form or "csv")
        for file, form in zip(files, forms, strict=True)
    ]
    return check_copies(build_call_paths(tables, path), files)


advisor_read = make_reader(read_call_paths)
