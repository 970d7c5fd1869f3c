"""Outputs of cachegrind: instructions, data accesses, cache misses by function (see ``docs/formats/cachegrind.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader
from advisor.formats.valgrind import detection

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for an output of cachegrind, or a directory that holds some: one run, a file or more per process."""
    return detection.sniff_path(path, detection.CACHEGRIND)


def read_call_paths(path: Path) -> CallPaths:
    """Return what was counted in each function; raises ``InputError`` with the line of what is damaged."""
    from advisor.formats.valgrind.call_path_builder import read_outputs

    return read_outputs(path, "cachegrind")


advisor_read = make_reader(read_call_paths)
