"""What the rows of a rank are in turn: computation, and calls with next to no computation in between.

Two messages that a rank sends in one stretch of calls hold data that were known when it began; what is sent behind a
computation that follows a receive may depend on what was received. No trace says more about dependences than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.replay.program import RECEIVED, SENDING, Op
from advisor_simulation.whatif.traced.rows import freeze_array

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.whatif.traced.rows import Numbers, ReplayRows

    Mask = npt.NDArray[np.bool_]

#: The shortest bursts of a rank, which together hold this share of its computation, are nothing between two calls.
NOTHING: Final = 0.01
#: They are also shorter than this part of the usual computation: of many equal ones none is nothing.
SHORT: Final = 0.1
#: So brief they are nothing as well, however many: a message costs more than it takes to fetch the next number for it.
BRIEF_S: Final = 0.5e-6


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of rows of one line, in order: ``first`` (n + 1,), whether each ``computes``, ``number`` (rows,)."""

    first: IntArray
    computes: Mask
    line: IntArray
    number: Numbers

    def find_next(self, stretch: IntArray | Numbers) -> IntArray:
        """Return the stretch behind each of some, -1 where its line ends."""
        return self._find_neighbour(stretch, 1)

    def find_previous(self, stretch: IntArray | Numbers) -> IntArray:
        """Return the stretch before each of some, -1 where its line begins."""
        return self._find_neighbour(stretch, -1)

    def _find_neighbour(self, stretch: IntArray | Numbers, by: int) -> IntArray:
        there = np.clip(stretch + by, 0, len(self.line) - 1)
        same = (there == stretch + by) & (self.line[there] == self.line[stretch])
        found: IntArray = np.where(same, there, -1)
        return found


def computing_mask(rows: ReplayRows) -> Mask:
    """Return which rows are computations to speak of; not to be written to."""
    return rows.ask_once("computations to speak of", lambda: freeze_array(_find_computing_rows(rows)))


def _find_computing_rows(rows: ReplayRows) -> Mask:
    found = np.zeros(len(rows), dtype=bool)
    bursts = np.flatnonzero(rows.op_mask(Op.BURST))
    bursts = bursts[np.lexsort((rows.seconds[bursts], rows.line[bursts]))]
    first = np.flatnonzero(np.diff(rows.line[bursts], prepend=-1))
    size = np.diff(first, append=len(bursts))
    for count in np.unique(size):  # lines with as many bursts are looked at together
        order = bursts[first[size == count, None] + np.arange(count)]
        seconds = rows.seconds[order]
        held = np.cumsum(seconds, axis=1)
        total = held[:, -1:]
        usual = np.divide((seconds**2).sum(axis=1, keepdims=True), total, out=np.zeros_like(total), where=total > 0)
        found[order[((held > NOTHING * total) & (seconds > BRIEF_S)) | (seconds > SHORT * usual)]] = True
    return found


def find_stretches(rows: ReplayRows) -> Stretches:
    """Return the stretches of sorted rows; a burst of next to nothing belongs to the stretch that it is in."""
    return rows.ask_once("stretches", lambda: _cut_stretches(rows))


def _cut_stretches(rows: ReplayRows) -> Stretches:
    computes, calls = computing_mask(rows), ~rows.op_mask(Op.BURST)
    begins = np.diff(rows.line, prepend=-1) != 0
    telling = np.flatnonzero(computes | calls | begins)
    state = np.repeat(computes[telling], np.diff(telling, append=len(rows)))
    starts = begins | np.r_[True, state[1:] != state[:-1]][: len(rows)]
    first, number = np.flatnonzero(starts), np.cumsum(starts, dtype=np.int32) - 1
    return Stretches(np.r_[first, len(rows)], state[first], rows.line[first], freeze_array(number))


def count_since(rows: ReplayRows, ops: tuple[Op, ...]) -> IntArray:
    """Return how many rows of ``ops`` come up to each row, itself included; not to be written to."""
    counted: IntArray = rows.ask_once(("count since", ops), lambda: freeze_array(np.cumsum(rows.op_mask(*ops))))
    return counted


def find_message_ends(rows: ReplayRows) -> tuple[IntArray, IntArray]:
    """Return the row of the send and of the end of the receive of each message (-1: none); not to be written to."""
    return rows.ask_once("message ends", lambda: _find_message_ends(rows))


def _find_message_ends(rows: ReplayRows) -> tuple[IntArray, IntArray]:
    found = []
    for ops in (SENDING, RECEIVED):
        where = np.full(len(rows.program.source), -1, dtype=np.int64)
        at = np.flatnonzero(rows.op_mask(*ops))
        where[rows.link[at]] = at
        found.append(freeze_array(where))
    return found[0], found[1]


def group_medians(values: FloatArray, group: IntArray) -> FloatArray:
    """Return the median of each group, in the order of their numbers."""
    order = np.lexsort((values, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    size = np.diff(first, append=len(order))
    low, high = (values[order][first + (size - less) // 2] for less in (1, 0))
    found: FloatArray = np.where(size % 2 == 1, low, (low + high) / 2)
    return found


def group_means(values: FloatArray, group: IntArray, count: int) -> FloatArray:
    """Return the mean of each of ``count`` groups, 0 of an empty one."""
    total = np.bincount(group, values, minlength=count)
    mean: FloatArray = total / np.maximum(np.bincount(group, minlength=count), 1)
    return mean
