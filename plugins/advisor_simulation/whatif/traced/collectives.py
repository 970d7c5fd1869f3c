"""Changes of collective operations: fewer barriers, and one operation instead of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Kind, Role, Trace
from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.traced.background import barrier_mask, reduction_mask, role_mask
from advisor_simulation.whatif.traced.rows import ReplayRows, message_mask
from advisor_simulation.whatif.traced.stretches import find_stretches

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

    Mask = npt.NDArray[np.bool_]

#: So many reductions of one visit of a region, with work in between, may be one; of two the second mostly needs the
#: first. More than ``MOST`` in a visit are no visit, but the whole program.
LEAST_IN_VISIT: Final = 3
MOST_IN_VISIT: Final = 100


def drop_barriers(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Leave out all barriers: messages alone say who waits for whom, into buffers of their own where need be."""
    gone = barrier_mask(rows) & chosen
    return rows.select_rows(~gone) if gone.any() else None


def merge_barriers(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Drop barriers with no work since the previous meeting."""
    return _drop_repeated(rows, barrier_mask(rows) & chosen, alike=False)


def merge_collectives(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Make one collective operation of several alike in a row."""
    return _drop_repeated(rows, role_mask(rows, *set(Role) - {Role.BARRIER}) & chosen, alike=True)


def fuse_reductions(rows: ReplayRows, chosen: Mask, visit: IntArray) -> ReplayRows | None:
    """Reduce once at the end of each visit of a region what it reduces piece by piece; None where none does.

    ``visit`` (rows,) is what ``number_visits`` tells. The work in between must not need the results, which no recording
    shows.
    """
    joins = np.flatnonzero(reduction_mask(rows) & chosen & (visit >= 0))
    if not len(joins):
        return None
    comm = rows.program.collectives.comm[rows.link[joins]]
    messages = np.cumsum(message_mask(rows))[joins]
    group = np.stack([rows.line[joins], visit[joins], rows.region[joins], comm, messages])
    _, number, count = np.unique(group, axis=1, return_inverse=True, return_counts=True)
    several = (count >= LEAST_IN_VISIT) & (count <= MOST_IN_VISIT)
    number = number.ravel()
    last = np.zeros(len(joins), dtype=bool)
    last[len(joins) - 1 - np.unique(number[::-1], return_index=True)[1]] = True
    goes = several[number] & ~last
    link = rows.link[joins].astype(np.int64)
    stays = np.bincount(link, ~goes, minlength=len(rows.program.collectives)) > 0
    gone = np.zeros(len(rows), dtype=bool)
    gone[joins[~stays[link]]] = True
    return rows.select_rows(~gone) if gone.any() else None


def number_visits(rows: ReplayRows, trace: Trace) -> IntArray:
    """Return for each meeting how many regions of the program its rank had entered before it; -1 without any."""
    found = np.full(len(rows), -1, dtype=np.int64)
    users = np.array([*(region.role == Role.USER for region in trace.regions), False])
    every = np.flatnonzero(rows.op_mask(Op.JOIN))
    first = np.searchsorted(rows.line[every], np.arange(rows.program.ranks + 1))  # rows are in the order of their lines
    for number, location in enumerate(trace.locations):
        events = slice(trace.first[number], trace.first[number + 1])
        kind = trace.kind[events]
        entered = np.cumsum((kind == Kind.ENTER) & users[trace.region[events]])
        joins = every[first[location.rank] : first[location.rank + 1]]
        meetings = np.flatnonzero(kind == Kind.COLLECTIVE)
        if len(joins) == len(meetings):
            found[joins] = np.where(entered[meetings] > 0, entered[meetings], -1)
    return found


def _drop_repeated(rows: ReplayRows, these: Mask, alike: bool) -> ReplayRows | None:
    """Drop meetings that follow one of the same ranks on every rank, all in one stretch of calls."""
    joins = np.flatnonzero(rows.op_mask(Op.JOIN))
    if len(joins) < 2:
        return None
    link, stretch = rows.link[joins].astype(np.int64), find_stretches(rows).number[joins]
    comm, role = rows.program.collectives.comm[link], rows.program.collectives.role[link]
    same = (stretch[1:] == stretch[:-1]) & (comm[1:] == comm[:-1])
    if alike:
        same &= role[1:] == role[:-1]
    follows = np.r_[False, same] & these[joins]
    others = np.bincount(link, ~follows, minlength=len(rows.program.collectives)) > 0
    gone = np.zeros(len(rows), dtype=bool)
    gone[joins[~others[link]]] = True
    return rows.select_rows(~gone) if gone.any() else None
