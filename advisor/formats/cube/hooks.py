"""CUBE files (version 4, ``.cubex``), the profiles of Score-P and Scalasca (see ``docs/formats/cube.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a CUBE archive, else None."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        stream.seek(257)
        if stream.read(5) != b"ustar":
            return None
    from advisor.formats.cube.archive import is_cube_file

    return 1.0 if is_cube_file(path) else None


def read_call_paths(path: Path) -> CallPaths:
    """Return the call paths of the CUBE file at ``path``; raises ``InputError`` with member and place of damage."""
    from advisor.formats.cube.call_path_builder import build_call_paths

    return build_call_paths(path)


advisor_read = make_reader(read_call_paths)
