"""Which waits complete which sends, where a recording tells it of receives only, as those of Extrae do.

A wait in which nothing is recorded completes the oldest send that is still open, one for several (``MPI_Waitall``) all
of them; so does one for several that completes receives.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay.program import Op

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor.trace.events import Trace
    from advisor_simulation.replay.scanning import ScannedRows


def match_completions(trace: Trace, rows: ScannedRows, rank: IntArray) -> tuple[IntArray, IntArray]:
    """Return rows of waits in which nothing is recorded, and the row of the send that each completes."""
    nothing = np.zeros(0, dtype=np.int64)
    sends = np.flatnonzero((rows.op == Op.ISEND) & (rows.event >= 0))
    told = ((rows.op == Op.SENT) & (rows.mate < 0)).any()
    if told or not len(sends):
        return nothing, nothing
    role = np.array([region.role for region in trace.regions], dtype=np.int64)
    known = np.maximum(rows.call, 0)
    waiting = (rows.call >= 0) & (role[known] == Role.WAIT) & np.isin(rows.op, (Op.FIXED, Op.DONE))
    for_all = np.array(["all" in region.name.lower() for region in trace.regions])[known]
    test = np.array(["test" in region.name.lower() for region in trace.regions])[known]
    waits = np.flatnonzero(waiting & ~test & (for_all | (rows.op == Op.FIXED)))
    everything = np.sort(np.r_[sends, waits])
    columns = rank[everything], rows.op[everything], for_all[everything]
    return _match_in_order(everything, *(column.tolist() for column in columns))


def _match_in_order(row: IntArray, rank: list[int], op: list[int], for_all: list[bool]) -> tuple[IntArray, IntArray]:
    """Go through sends and waits in the order of each rank."""
    waits, completed = [], []
    open_: deque[int] = deque()
    last = -1
    for at, who, what, several in zip(row.tolist(), rank, op, for_all, strict=True):
        if who != last:
            open_.clear()
            last = who
        if what == Op.ISEND:
            open_.append(at)
        elif open_:
            latest = open_[-1] if several else open_.popleft()
            if several:
                open_.clear()
            if what == Op.FIXED:
                waits.append(at)
                completed.append(latest)
    return np.array(waits, dtype=np.int64), np.array(completed, dtype=np.int64)
