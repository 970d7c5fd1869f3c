"""Text of gprof: flat profiles and call graphs, one report per process (see ``docs/formats/gprof.md``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile
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

    return build_call_paths([report for file in detection.find_files(path) for report in read_reports(file)], path)


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run reported at ``path``; raises ``InputError`` with the line of what is damaged."""
    from advisor.trace.callpaths.profile import from_call_paths

    return from_call_paths(read_call_paths(path), path)
