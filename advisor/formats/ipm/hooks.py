"""IPM's XML: MPI and I/O by call, size and task (see ``docs/formats/ipm.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a document of IPM, else None."""
    from advisor.formats.plain_text import read_ends

    return 1.0 if b"<ipm_job_profile>" in read_ends(path)[:1024] else None


def read_call_paths(path: Path) -> CallPaths:
    """Return the tasks in the document at ``path``; raises ``InputError`` with the line of what is damaged."""
    from advisor.formats.ipm.call_path_builder import build_call_paths
    from advisor.formats.ipm.job_profile import read_tasks

    return build_call_paths(read_tasks(path), path)


advisor_read = make_reader(read_call_paths)
