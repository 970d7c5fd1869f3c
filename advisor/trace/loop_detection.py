"""The loop of a program, found in the sequence of its synchronizations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.nesting import count_previous

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

#: Longest cycle looked for, in synchronizations per iteration.
LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Cycle:
    """``sequence[start:end]`` repeats every ``period`` elements; empty (period 0) when nothing repeats."""

    start: int
    end: int
    period: int


def find_longest_cycle(sequence: IntArray) -> Cycle:
    """Return the repetition that covers most of ``sequence``, the shortest period and the earliest start on ties.

    A cycle stands at least twice in a row.
    """
    best = Cycle(0, 0, 0)
    for period in range(1, min(len(sequence) // 2, LONGEST) + 1):
        if _is_confined(sequence, best, period):
            continue
        start, length = _find_longest_run(sequence[:-period] == sequence[period:])
        if length >= period and length + period > best.end - best.start:
            best = Cycle(start, start + length + period, period)
    return best


def _is_confined(sequence: IntArray, best: Cycle, period: int) -> bool:
    """Return whether no repetition by ``period`` can be longer than ``best``, told from two places.

    A longer one would have to contain the middle of the sequence, so it would be that which contains the middle of
    ``best``, and that ends where ``best`` does.
    """
    count, covered = len(sequence), best.end - best.start
    if not covered or count - covered > covered - period:
        return False
    before, behind = best.start - 1, best.end - period
    ends_before = before < 0 or sequence[before] != sequence[before + period]
    return bool(ends_before and (best.end == count or sequence[behind] != sequence[behind + period]))


def identify_elements(sequence: IntArray) -> tuple[IntArray, IntArray]:
    """Return the phase and the iteration of each element of ``sequence``.

    Inside the longest cycle the phase is the position in it; before and after it equal elements are one phase, those
    before apart from those after. Phases are numbered by first occurrence; the iteration counts occurrences.
    """
    cycle = find_longest_cycle(sequence)
    place = np.arange(len(sequence))
    inside = (place >= cycle.start) & (place < cycle.end)
    part = np.where(inside, 1, np.where(place < cycle.start, 0, 2))
    position = np.where(inside, (place - cycle.start) % max(cycle.period, 1), 0)
    key = np.stack((part, position, np.where(inside, 0, sequence)))
    _, first, phase = np.unique(key, axis=1, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    phases = number[phase.reshape(-1)]
    return phases, count_previous(phases)


def _find_longest_run(same: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return start and length of the first longest run of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, same, False]))
    if not len(edges):
        return 0, 0
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    best = int(np.argmax(lengths))
    return int(starts[best]), int(lengths[best])
