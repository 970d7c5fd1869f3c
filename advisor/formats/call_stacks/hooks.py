"""Profiles of call stacks: folded stacks, speedscope, pyinstrument, cProfile (see ``docs/formats/call_stacks.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.callpaths.records import CallPaths


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return how sure it is that the file at ``path`` holds call stacks; None where it does not."""
    from advisor.formats.call_stacks.format_list import find_format
    from advisor.formats.plain_text import read_ends

    found = find_format(read_ends(path))
    return found.sure if found else None


def read_call_paths(path: Path) -> CallPaths:
    """Return the call stacks in the file at ``path``; raises ``InputError`` with the place of what is damaged."""
    from advisor.formats.call_stacks.call_path_builder import build_call_paths
    from advisor.formats.call_stacks.format_list import find_format
    from advisor.formats.plain_text import read_ends

    found = find_format(read_ends(path))
    if found is None:
        raise InputError(path, "holds no call stacks in a format that is known here")
    return build_call_paths(found.parse(path), path)


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run of which the file at ``path`` holds call stacks; raises ``InputError`` where it is damaged."""
    from advisor.formats.call_stacks.unknown_waiting import drop_unknown_waiting
    from advisor.trace.callpaths.profile import from_call_paths

    return drop_unknown_waiting(from_call_paths(read_call_paths(path), path))
