"""Text reports of mpiP, the lightweight MPI profiler (see ``docs/formats/mpip.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths

_FIRST_LINE: Final = b"@ mpiP\n"


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a report of mpiP, else None."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return 1.0 if stream.read(len(_FIRST_LINE)) == _FIRST_LINE else None


def read_call_paths(path: Path) -> CallPaths:
    """Return the call sites of the report at ``path``; raises ``InputError`` with the line of what is damaged."""
    from advisor.formats.mpip.call_path_builder import build_call_paths
    from advisor.formats.mpip.report import read_report

    return build_call_paths(read_report(path))


advisor_read = make_reader(read_call_paths)
