"""Which of the ranges that a program marks are its iterations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

#: Ranges of one name, numbers aside, that occur so often on one thread are iterations.
_FEWEST: Final = 3
#: So many of them begin at intervals of half to twice the usual one.
_REGULAR: Final = 0.7
#: What frameworks and libraries mark by themselves (``emit_nvtx``, FSDP, NCCL), and parts of a model, are none.
_PARTS: Final = re.compile(
    r"^(aten|autograd|c10d?|torch|FSDP|nccl|cudnn|cublas|cub)\w*(::|$|\()|, (seq|op_id) = #"
    r"|\b(layer|block|module|stage)s?[._ ]?#"
)


def find_iterations(ranges: Sequence[tuple[int, int, int, str]]) -> list[tuple[int, int]]:
    """Return start and end of the ranges that are iterations: the repeated name, numbers aside, that covers most time.

    Each range has start, end, thread and name. Ranges that overlap are no iterations, nor are those that begin now and
    then, and parts of an iteration.
    """
    groups: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for start, end, thread, name in ranges:
        groups.setdefault((thread, re.sub(r"\d+", "#", name)), []).append((start, end))
    covered: Counter[tuple[int, str]] = Counter()
    for key, spans in groups.items():
        spans.sort()
        apart = all(before[1] <= after[0] for before, after in pairwise(spans))
        if len(spans) >= _FEWEST and apart and not _PARTS.search(key[1]) and _are_regular(spans):
            covered[key] = sum(end - start for start, end in spans)
    return groups[covered.most_common(1)[0][0]] if covered else []


def _are_regular(spans: Sequence[tuple[int, int]]) -> bool:
    intervals = [after[0] - before[0] for before, after in pairwise(spans)]
    usual = median(intervals)
    return sum(0.5 * usual <= interval <= 2 * usual for interval in intervals) >= _REGULAR * len(intervals)
