"""The hook of readers whose formats hold call paths, or regions with their times, and no events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.callpaths.records import CallPaths


def make_reader(read_call_paths: Callable[[Path], CallPaths]) -> Callable[[Path], Profile]:
    """Return the hook ``advisor_read`` of a format whose call paths are read by a function."""

    @hookimpl
    def advisor_read(path: Path) -> Profile:
        """Return the run recorded at ``path``; raises ``InputError`` with the place of what is damaged."""
        from advisor.trace.callpaths.profile import from_call_paths

        return from_call_paths(read_call_paths(path), path)

    return advisor_read
