"""Changes of collective operations: fewer barriers, and one operation instead of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.traced.background import of_role
from advisor_simulation.whatif.traced.sections import stretches

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor_simulation.whatif.traced.rows import Rows

    Mask = npt.NDArray[np.bool_]


def without_barriers(rows: Rows, chosen: Mask) -> Rows | None:
    """Leave out all barriers: messages alone say who waits for whom, into buffers of their own where need be."""
    gone = of_role(rows, Role.BARRIER) & chosen
    return rows.where(~gone) if gone.any() else None


def merged_barriers(rows: Rows, chosen: Mask) -> Rows | None:
    """Leave out barriers between which and the meeting before nobody does anything."""
    return _without_repeated(rows, of_role(rows, Role.BARRIER) & chosen, alike=False)


def merged_collectives(rows: Rows, chosen: Mask) -> Rows | None:
    """Make one collective operation of several alike in a row."""
    return _without_repeated(rows, of_role(rows, *set(Role) - {Role.BARRIER}) & chosen, alike=True)


def _without_repeated(rows: Rows, these: Mask, alike: bool) -> Rows | None:
    """Drop meetings that follow one of the same ranks on every rank, all in one stretch of calls."""
    joins = np.flatnonzero(rows.of(Op.JOIN))
    if len(joins) < 2:
        return None
    link, stretch = rows.link[joins].astype(np.int64), stretches(rows).number[joins]
    comm, role = rows.program.collectives.comm[link], rows.program.collectives.role[link]
    same = (stretch[1:] == stretch[:-1]) & (comm[1:] == comm[:-1])
    if alike:
        same &= role[1:] == role[:-1]
    follows = np.r_[False, same] & these[joins]
    others = np.bincount(link, ~follows, minlength=len(rows.program.collectives)) > 0
    gone = np.zeros(len(rows), dtype=bool)
    gone[joins[~others[link]]] = True
    return rows.where(~gone) if gone.any() else None
