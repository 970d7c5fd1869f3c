"""Which of the ranges that a program marks are its iterations."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Ranges of one name, numbers aside, that occur so often on one thread are iterations.
_FEWEST: Final = 3


def find_iterations(ranges: Sequence[tuple[int, int, int, str]]) -> list[tuple[int, int]]:
    """Return start and end of the ranges that are iterations: the repeated name, numbers aside, that covers most time.

    Each range has start, end, thread and name. Ranges that overlap are no iterations.
    """
    groups: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for start, end, thread, name in ranges:
        groups.setdefault((thread, re.sub(r"\d+", "#", name)), []).append((start, end))
    covered: Counter[tuple[int, str]] = Counter()
    for key, spans in groups.items():
        spans.sort()
        apart = all(before[1] <= after[0] for before, after in pairwise(spans))
        if len(spans) >= _FEWEST and apart:
            covered[key] = sum(end - start for start, end in spans)
    return groups[covered.most_common(1)[0][0]] if covered else []
