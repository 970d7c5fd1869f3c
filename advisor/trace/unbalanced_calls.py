"""Events that do not nest: enters without a leave, leaves without an enter."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Kind, are_kinds

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray


def find_unbalanced_events(kind: npt.NDArray[np.uint8], region: npt.NDArray[np.int32]) -> IntArray:
    """Return the events of a location to pass over so that the names of its enters and leaves agree.

    A leave that does not fit the open call means one of three things. The open call's own leave comes next: the two
    overlap (EZTrace's shutdown), and nothing is passed over. It never comes: the tool forgot it (the first implicit
    task of OMPT), and its enter is passed over. Nothing of that name is open: the leave itself is.
    """
    events = np.flatnonzero(are_kinds(kind, Kind.ENTER, Kind.LEAVE))
    entering, regions = (kind[events] == Kind.ENTER).tolist(), region[events].tolist()
    places: dict[int, list[int]] = defaultdict(list)
    for place, name in enumerate(regions):
        places[name].append(place)
    passed: list[int] = []
    stack: list[int] = []
    for place, name in enumerate(regions):
        if entering[place]:
            stack.append(place)
            continue
        if not any(regions[opened] == name for opened in reversed(stack)):
            passed.extend(
                [place] if not stack or not _is_left_next(places, regions[stack[-1]], place, entering) else []
            )
            continue
        while regions[stack[-1]] != name and not _is_left_next(places, regions[stack[-1]], place, entering):
            passed.append(stack.pop())
        stack.pop()
    return events[np.array(sorted(passed), dtype=np.int64)]


def _is_left_next(places: dict[int, list[int]], name: int, place: int, entering: list[bool]) -> bool:
    """Return whether the next event of the region ``name`` after ``place`` is a leave."""
    mine = places[name]
    after = bisect_right(mine, place)
    return after < len(mine) and not entering[mine[after]]
