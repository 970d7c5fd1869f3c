"""What ``likwid-perfctr`` and ``likwid-mpirun`` print: CSV and text tables (see ``docs/formats/likwid.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader
from advisor.formats.likwid import detection

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for output of likwid-perfctr, or a directory with that of several processes, else None."""
    if path.is_dir():
        return 1.0 if detection.find_files(path) else None
    return None if detection.detect_layout(path) is None else 1.0


def read_call_paths(path: Path) -> CallPaths:
    """Return the regions of a run: of a file, or of all files in a directory, one for each process.

    Raises ``InputError`` with the line of what is damaged.
    """
    from advisor.formats.likwid.call_path_builder import build_call_paths
    from advisor.formats.rank_files import check_copies
    from advisor.model.errors import InputError

    files = detection.find_files(path) if path.is_dir() else [path]
    if not files or detection.detect_layout(files[0]) is None:
        raise InputError(path, "no tables of likwid-perfctr here")
    return check_copies(build_call_paths(files, path), files)


advisor_read = make_reader(read_call_paths)
