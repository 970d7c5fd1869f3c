"""Slurm's accounts of a job, as ``sacct -P`` and ``seff`` print them (see ``docs/formats/slurm.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl
from advisor.formats.call_path_reader import make_reader

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths

#: What every output of ``seff`` says.
SEFF: Final = (b"Job ID: ", b"CPU Utilized: ", b"Job Wall-clock time: ")


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return how sure it is that the file at ``path`` is an account of a job; None where it is none."""
    from advisor.formats.plain_text import HEAD, read_ends

    head = read_ends(path)[:HEAD]
    if all(mark in head for mark in SEFF):
        return 0.9
    if b"Elapsed" not in head or b"TotalCPU" not in head or b"JobID" not in head:
        return None
    from advisor.formats.job_accounts import has_sacct_head

    lines = head.decode("utf-8", "replace").split("\n")[:50]
    return 0.9 if any(has_sacct_head(*pair) for pair in zip(lines, (*lines[1:], ""), strict=True)) else None


def read_call_paths(path: Path) -> CallPaths:
    """Return the job in the file at ``path``; raises ``InputError`` with the line of what is damaged."""
    from advisor.formats.job_accounts import read_account
    from advisor.formats.slurm.call_path_builder import build_call_paths

    return build_call_paths(read_account(path), path)


advisor_read = make_reader(read_call_paths)
