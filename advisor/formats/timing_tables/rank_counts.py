"""How many ranks a program says that it runs on, in the words that programs use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_COUNT: Final = re.compile(
    r".*?(?:\b(?:on|with|using|initialized with|over)\s+(\d{1,9})\s+(?:MPI\s+)?(?:ranks?|process(?:es|ors?)?|tasks?)\b"
    r"|\bnumber of (?:MPI\s+)?(?:ranks|process(?:es|ors)|tasks)\s*[:=]?\s*(\d{1,9})\b)",
    re.IGNORECASE,
)


def find_rank_count(text: PlainText, stop: int) -> int | None:
    """Return the number of ranks that the lines before ``stop`` state, None where they do not or contradict."""
    stated = {
        int(found[1] or found[2]) for n in text.find_lines(_COUNT, 0, stop) if (found := _COUNT.match(text.lines[n]))
    }
    return stated.pop() if len(stated) == 1 else None
