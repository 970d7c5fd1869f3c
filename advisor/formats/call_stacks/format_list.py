"""The formats of call stacks that are known, the surest to recognize first."""

from __future__ import annotations

from typing import Final

from advisor.formats.call_stacks import cprofile_text, folded, pstats, pyinstrument, speedscope
from advisor.formats.call_stacks.stacks import StackFormat

#: Each with how sure it is.
FORMATS: Final = (
    (StackFormat("speedscope", speedscope.recognize, speedscope.parse), 1.0),
    (StackFormat("pyinstrument", pyinstrument.recognize, pyinstrument.parse), 1.0),
    (StackFormat("cProfile, printed", cprofile_text.recognize, cprofile_text.parse), 0.9),
    (StackFormat("cProfile", pstats.recognize, pstats.parse), 0.8),
    (StackFormat("folded stacks", folded.recognize, folded.parse), 0.6),
)


def find_format(ends: bytes) -> tuple[StackFormat, float] | None:
    """Return the format that the two ends of a file are in, and how sure that is; None where there is none."""
    return next(((each, sure) for each, sure in FORMATS if each.recognize(ends)), None)
