"""Profiles of TAU, and a word about its binary traces (see ``docs/formats/tau.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader
from advisor.formats.tau import layout

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a profile or trace of TAU, or a directory of them, else None."""
    return None if layout.detect_layout(path) is None else 1.0


def read_call_paths(path: Path, compiled: bool | None = None) -> CallPaths:
    """Return the call paths of the run at ``path``: a directory of profiles, or a single one.

    ``compiled`` chooses between the parser compiled by numba and the plain one; without it the size of the run does.
    Raises ``InputError`` with file and line for what is damaged or is a binary trace, and ``UsageError`` when the
    compiled parser is demanded without numba.
    """
    from advisor.formats.tau.call_path_builder import build_call_paths
    from advisor.model.errors import InputError

    form = layout.detect_layout(path)
    if form == "trace":
        raise InputError(path, layout.CONVERT)
    if form is None:
        raise InputError(path, "no profile of TAU here (profile.0.0.0 or MULTI__TIME/profile.0.0.0)")
    return build_call_paths(path, compiled)


advisor_read = make_reader(read_call_paths)
