"""Changes of collective operations: fewer barriers, and one operation instead of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.traced.background import role_mask
from advisor_simulation.whatif.traced.stretches import find_stretches

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor_simulation.whatif.traced.rows import ReplayRows

    Mask = npt.NDArray[np.bool_]


def drop_barriers(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Leave out all barriers: messages alone say who waits for whom, into buffers of their own where need be."""
    gone = role_mask(rows, Role.BARRIER) & chosen
    return rows.select_rows(~gone) if gone.any() else None


def merge_barriers(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Leave out barriers between which and the meeting before nobody does anything."""
    return _drop_repeated(rows, role_mask(rows, Role.BARRIER) & chosen, alike=False)


def merge_collectives(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Make one collective operation of several alike in a row."""
    return _drop_repeated(rows, role_mask(rows, *set(Role) - {Role.BARRIER}) & chosen, alike=True)


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
