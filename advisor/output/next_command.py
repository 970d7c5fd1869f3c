"""The one command that would show most of what a run cannot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.model.records import Advice, Note

#: What has to be filled in before a command can be run.
_OPEN: Final = re.compile(
    r"…|\b(?:PROGRAM|SOURCES?|PATH|DIR|DIRECTORY|RANKS|COMMAND|RUN-1|P=1024)\b|(?:-n|--cores) N\b"
)


def worst_notes(advice: Advice) -> list[Note]:
    """Return what weakens the evidence, the worst first."""
    return sorted((note for note in advice.grade.notes if note.penalty > 0), key=lambda note: -note.penalty)


def is_open(advice: Advice) -> bool:
    """Return whether gaps are known and reliable, but no action matches them."""
    return advice.verdict == "insufficient evidence" and bool(advice.gaps) and advice.grade.letter != "F"


def select_command(advice: Advice) -> str | None:
    """Return the command to run next: against doubts first, then for what rules need, then for unknown bounds."""
    doubts = [note.collect for note in worst_notes(advice)]
    needs = [need.command for need in advice.needs]
    bounds = [bound.collect for bound in advice.bounds if bound.seconds is None]
    doubtful = advice.verdict == "insufficient evidence" and not is_open(advice)
    order = [*doubts, *needs, *bounds] if doubtful else [*needs, *bounds, *doubts]
    known = [command for command in order if command]
    return next((command for command in known if not _OPEN.search(command)), next(iter(known), None))
