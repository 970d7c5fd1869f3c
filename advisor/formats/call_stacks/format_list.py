"""The formats of call stacks that are known, the surest to be recognized first."""

from __future__ import annotations

from typing import Final

from advisor.formats.call_stacks import cprofile_text, folded, pstats, pyinstrument, speedscope
from advisor.formats.call_stacks.stacks import StackFormat

#: Each with how sure it is.
FORMATS: Final = (
    (StackFormat("speedscope", speedscope.match_ends, speedscope.parse), 1.0),
    (StackFormat("pyinstrument", pyinstrument.match_ends, pyinstrument.parse), 1.0),
    (StackFormat("cProfile, printed", cprofile_text.match_ends, cprofile_text.parse), 0.9),
    (StackFormat("cProfile", pstats.match_ends, pstats.parse), 0.8),
    (StackFormat("folded stacks", folded.match_ends, folded.parse), 0.6),
)


def find_format(ends: bytes) -> tuple[StackFormat, float] | None:
    """Return the format that the two ends of a file are in, and how sure that is; None where there is none."""
    return next(((each, sure) for each, sure in FORMATS if each.match_ends(ends)), None)
