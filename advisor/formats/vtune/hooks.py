"""Reports of VTune: summaries and hotspots, as text and CSV (see ``docs/formats/vtune.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.model.records import Profile

#: Less sure than of a file that is nothing else: a summary stands somewhere in the output of a program.
_SURE: Final = 0.9


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return how sure it is that the file at ``path`` is a report of VTune; None where it is none."""
    from advisor.formats.plain_text import read_ends
    from advisor.formats.vtune.report_kinds import find_kind

    return _SURE if find_kind(read_ends(path)) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run that the report at ``path`` tells of; raises ``InputError`` with the line of what is damaged."""
    from advisor.formats.plain_text import read_ends, read_plain_text
    from advisor.formats.vtune.hotspots import read_hotspots
    from advisor.formats.vtune.report_kinds import HOTSPOTS, find_kind
    from advisor.formats.vtune.summary import read_summary
    from advisor.formats.vtune.summary_profile import build_profile
    from advisor.trace.callpaths.profile import from_call_paths

    text = read_plain_text(path)
    if find_kind(read_ends(path)) == HOTSPOTS:
        return from_call_paths(read_hotspots(text), path)
    return build_profile(read_summary(text), path)
