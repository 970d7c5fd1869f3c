"""Text of gprof: flat profiles and call graphs, one report per process (see ``docs/formats/gprof.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a report of gprof, or a directory of reports whose names tell their ranks; else None."""
    from advisor.formats.gprof import detection

    try:
        return detection.sniff_directory(path) if path.is_dir() else detection.sniff_file(path)
    except OSError:
        return None


def read_call_paths(path: Path) -> CallPaths:
    """Return the functions reported at ``path``, a file or a directory of files of one run.

    Raises ``InputError`` with the line of what is damaged.
    """
    from advisor.formats.gprof import detection
    from advisor.formats.gprof.call_path_builder import build_call_paths
    from advisor.formats.gprof.report import read_reports
    from advisor.formats.rank_files import check_copies

    files = detection.find_files(path)
    return check_copies(build_call_paths([report for file in files for report in read_reports(file)], path), files)


advisor_read = make_reader(read_call_paths)
