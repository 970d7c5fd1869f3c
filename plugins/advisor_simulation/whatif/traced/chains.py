"""Reductions in a row, with nothing but computation in between: inner products of an iterative solver, say.

What lies between two of them is built on their results or feeds them, so that no later work hides them; several of them
can mostly be one, as far as they do not need each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.traced.background import reduction_mask
from advisor_simulation.whatif.traced.rows import ReplayRows, message_mask

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

    Mask = npt.NDArray[np.bool_]

#: Reductions in a row that are a chain: of two the second mostly needs the first, and more than ``MOST`` are no step of
#: an iteration, but a program that exchanges nothing else.
LEAST: Final = 3
MOST: Final = 100
#: So many of each chain stay: one for all that do not need each other, and a last one, which needs their results (the
#: norm of what was made orthogonal).
STAY: Final = 2
#: Up to this size a reduction takes its time for its rounds of messages, not for its bytes.
SMALL_B: Final = 4096


def are_in_chains(rows: ReplayRows) -> Mask:
    """Return which rows are reductions of a chain."""
    joins, number = _number_chains(rows)
    found = np.zeros(len(rows), dtype=bool)
    found[joins[number >= 0]] = True
    return found


def fuse_chains(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Leave ``STAY`` reductions of each chain, the last ones; None where there is no chain."""
    joins, number = _number_chains(rows)
    behind = np.zeros(len(joins), dtype=np.int64)  # how many reductions of its chain follow each
    if len(joins):
        ends = np.flatnonzero(np.diff(number, append=-2))
        behind = ends[np.searchsorted(ends, np.arange(len(joins)))] - np.arange(len(joins))
    goes = (number >= 0) & chosen[joins] & (behind >= STAY)
    stays = np.bincount(rows.link[joins].astype(np.int64), ~goes, minlength=len(rows.program.collectives)) > 0
    gone = np.zeros(len(rows), dtype=bool)
    gone[joins[~stays[rows.link[joins]]]] = True
    return rows.select_rows(~gone) if gone.any() else None


def _number_chains(rows: ReplayRows) -> tuple[IntArray, IntArray]:
    """Return all meetings of the ranks, in order, and the chain of each, -1 for those of none.

    A chain is of one communicator, and lies between messages: without any, nothing tells one iteration from the next.
    """
    calls = np.flatnonzero(~rows.op_mask(Op.BURST, Op.FIXED) & (rows.line < rows.program.ranks))
    line, joins = rows.line[calls], rows.op_mask(Op.JOIN)[calls]
    small = (reduction_mask(rows) & (rows.value <= SMALL_B))[calls]
    comm = np.full(len(calls), -1)
    comm[joins] = rows.program.collectives.comm[rows.link[calls[joins]]]
    goes_on = np.r_[False, small[1:] & small[:-1] & (comm[1:] == comm[:-1]) & (line[1:] == line[:-1])][: len(calls)]
    number = np.cumsum(~goes_on) - 1
    first = np.flatnonzero(~goes_on)
    stop = np.r_[first[1:], len(calls)]
    passing = np.r_[message_mask(rows)[calls], False]  # the last one stands for "no call" before and behind
    before = np.where((first > 0) & (line[first - 1] == line[first]), first - 1, -1)
    after = np.where((stop < len(calls)) & (line[np.minimum(stop, len(calls) - 1)] == line[first]), stop, -1)
    size = stop - first
    is_chain = small[first] & (size >= LEAST) & (size <= MOST) & passing[before] & passing[after]
    chain = np.where(is_chain[number], number, -1) if len(calls) else number
    return calls[joins], chain[joins]
