"""Computations of programs without recorded functions, distinguished by the collective calls that end them.

A recorder of calls alone knows one region, the program. What computes before a broadcast is not what computes before
the reduction behind it: ranks have their own shares of each, and one of them may do all of one alone. Messages tell
nothing of the kind: in a pipeline each rank's work ends in another call.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.replay.program import Op
from advisor_simulation.whatif.traced.work import computing_mask

if TYPE_CHECKING:
    from advisor_simulation.whatif.traced.rows import ReplayRows

#: A region with this share of the computation is all that is known of it.
WHOLE: Final = 0.99


def tell_by_calls(rows: ReplayRows) -> ReplayRows:
    """Return the rows with a region for the computations before each meeting, where they lie in one region."""
    bursts = np.flatnonzero(computing_mask(rows))
    by_region = np.bincount(rows.region[bursts] + 1, rows.seconds[bursts])
    if not len(bursts) or by_region.max() < WHOLE * by_region.sum():
        return rows
    known = len(rows.program.names)
    at = bursts[rows.region[bursts] == int(by_region.argmax()) - 1]
    calls = np.flatnonzero(rows.op_mask(Op.JOIN) & (rows.call >= 0))
    place = np.searchsorted(calls, at)
    behind = calls[np.minimum(place, len(calls) - 1)] if len(calls) else at
    ended = (place < len(calls)) & (rows.line[behind] == rows.line[at])
    region = rows.region.copy()
    region[at[ended]] = known + rows.call[behind[ended]]
    names = (*rows.program.names, *(f"before {name}" for name in rows.program.names))
    return replace(rows, program=replace(rows.program, names=names), region=region)
