"""HPCToolkit databases: version 4 (meta.db, profile.db) and experiment.xml (see ``docs/formats/hpctoolkit.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths

_GLANCE: Final = 1024
_MARKS: Final = (b"HPCTOOLKITmeta", b"HPCTOOLKITprof")
#: Its declaration alone, which comes along with HPCToolkit, is no document.
_DOCUMENTS: Final = (b"<!DOCTYPE HPCToolkitExperiment", b"<HPCToolkitExperiment")
#: The files of which one tells that a directory is a database.
_FILES: Final = ("meta.db", "experiment.xml")


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a database, and for the files in it that describe it; else None."""
    if path.is_dir():
        return 1.0 if any(_is_part(path / name) for name in _FILES) else None
    return 1.0 if _is_part(path) else None


def _is_part(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        head = stream.read(_GLANCE)
    return head.startswith(_MARKS) or (head.lstrip().startswith(b"<") and any(mark in head for mark in _DOCUMENTS))


def read_call_paths(path: Path) -> CallPaths:
    """Return the call paths of the database at ``path``, a directory or a file in it.

    Raises ``InputError`` with file and place for what is missing or damaged.
    """
    from advisor.formats.hpctoolkit.call_path_builder import build_call_paths
    from advisor.formats.hpctoolkit.experiment import read_experiment
    from advisor.formats.hpctoolkit.version4 import read_version_4

    directory = path if path.is_dir() else path.parent
    described = directory / "meta.db"
    is_new = described.is_file() if path.is_dir() else path.suffix != ".xml" and _is_part(described)
    database = read_version_4(directory) if is_new else read_experiment(path)
    return build_call_paths(database, path)


advisor_read = make_reader(read_call_paths)
