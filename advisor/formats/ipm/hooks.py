"""IPM's XML: MPI and I/O by call, size and task (see ``docs/formats/ipm.md``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile
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


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run in the document at ``path``; raises ``InputError`` with the line of what is damaged."""
    from advisor.trace.callpaths.profile import from_call_paths

    return from_call_paths(read_call_paths(path), path)
