"""Processes that look for a message again and again until it is there wait for it in the call that receives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.regions import POLLS, PROBES
from advisor_simulation.replay.program import RECEIVED, Op

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.events import Trace
    from advisor_simulation.replay.scanning import ScannedRows

#: Calls that look for a message, or whether an operation is complete.
_LOOKING: Final = frozenset((*PROBES, *POLLS))
#: Who computes more than this share of the time of its polls does something useful between them.
USEFUL: Final = 0.1


def wait_in_receives(trace: Trace, rows: ScannedRows, links: IntArray, spent_s: FloatArray) -> FloatArray:
    """Return when each row ends (rows,), with polls that find nothing ending at once: the receive behind them waits.

    ``links`` is the message of each row, ``spent_s`` how long each took. As a time of their own polls would last
    as long however early the message came.
    """
    named = np.array([*(region.name in _LOOKING for region in trace.regions), False])
    polls, bursts = named[rows.call] & (rows.op == Op.FIXED), rows.op == Op.BURST
    if not polls.any():
        return rows.end_s
    receives = np.flatnonzero(np.isin(rows.op, (*RECEIVED, Op.SENT)) & (links >= 0))
    breaks = np.union1d(np.flatnonzero(~polls & ~bursts), rows.first[:-1] - 1)
    since = breaks[np.searchsorted(breaks, receives) - 1] + 1
    places = np.flatnonzero(polls)
    place = np.searchsorted(places, since)
    since = np.r_[places, len(polls)][place]
    polled_s, computed_s = (np.r_[0.0, np.cumsum(np.where(those, spent_s, 0.0))] for those in (polls, bursts))
    idle = since < receives
    since, receives = since[idle], receives[idle]
    idle = computed_s[receives] - computed_s[since] <= USEFUL * (polled_s[receives] - polled_s[since])
    end_s = rows.end_s.copy()
    first, count = since[idle], receives[idle] - since[idle]
    moved = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
    begun_s = end_s[first] - spent_s[first] - computed_s[first]
    end_s[moved] = np.repeat(begun_s, count) + computed_s[moved + 1]
    return end_s
