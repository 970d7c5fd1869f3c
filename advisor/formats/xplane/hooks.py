"""XPlane recordings of JAX and TensorFlow (see ``docs/formats/xplane.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.model.records import Profile

_SUFFIX: Final = ".xplane.pb"
#: A document begins with its first plane: field 1, with a length.
_FIRST: Final = b"\x0a"


def list_spaces(folder: Path) -> list[Path]:
    """Return the recordings directly in a directory: one for each host."""
    try:
        return sorted(path for path in folder.iterdir() if _is_space(path))
    except OSError:
        return []


def _is_space(path: Path) -> bool:
    if not path.name.endswith(_SUFFIX) or not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(1) == _FIRST
    except OSError:
        return False


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a recording, and a little less for a directory with some."""
    if path.is_dir():
        return 0.95 if list_spaces(path) else None
    return 1.0 if _is_space(path) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run recorded at ``path``, all hosts of it; raises ``InputError`` for what is damaged."""
    from dataclasses import replace

    from advisor.formats.device_ranks import profile_device_ranks
    from advisor.formats.rank_files import iterate_copies
    from advisor.formats.xplane.spaces import read_spaces
    from advisor.model.records import Note

    files = list_spaces(path) if path.is_dir() else [path]
    # Two hosts never record the same to the picosecond: a copy is no other rank.
    copies = dict(iterate_copies(files))
    kept = [file for file in files if file not in copies]
    profile = profile_device_ranks(read_spaces(kept), path, "xplane", kept)
    told = (
        Note("the same file twice", f"left out, it holds the same as {other.name}: {file.name}", 0.1)
        for file, other in list(copies.items())[:1]
    )
    return replace(profile, notes=(*profile.notes, *told))
