"""Calls that wait for several messages at once: which of them the waiting was for.

Tracers note all completions when such a call ends. Taken as they stand, the message that was waited for and those that
were there long before are equally slow, and would be so again if the late one came earlier.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.replay.program import Op
from advisor_simulation.replay.steps import Step
from advisor_simulation.replay.waits import operation_starts
from advisor_simulation.whatif.traced.stretches import find_message_ends

if TYPE_CHECKING:
    from advisor_simulation.whatif.traced.rows import ReplayRows

#: Completions are noted together if they lie within this last part of the call.
CLOSE: Final = 0.05
#: Steps of a row, as in ``rows``.
_OWN, _WAIT = 2, 3


def split_waits(rows: ReplayRows) -> ReplayRows:
    """Return recorded rows in which the message that was sent last ends a wait for several, and no other.

    In the others of that call nothing is left of the time in which the last one was under way.
    """
    end_s = rows.program.end_s
    at = np.flatnonzero(rows.op_mask(Op.DONE, Op.SENT) & (rows.link >= 0))
    if end_s is None or not len(at):
        return rows
    begun = operation_starts(rows.program, end_s)
    new = (np.diff(at, prepend=-2) != 1) | (np.diff(rows.call[at], prepend=-2) != 0)
    new |= np.diff(rows.line[at], prepend=-1) != 0
    group = np.cumsum(new) - 1
    count = int(group[-1]) + 1
    send, _ = find_message_ends(rows)
    sent = np.full(len(at), -np.inf)
    got = (rows.op[at] == Op.DONE) & (send[rows.link[at]] >= 0)
    sent[got] = begun[send[rows.link[at][got]]]
    last = np.full(count, -np.inf)
    np.maximum.at(last, group, sent)
    waited = last > begun[at[new]]
    decides = got & (sent == last[group])
    flight = np.full(count, np.inf)
    np.minimum.at(flight, group[decides], (end_s[at] - sent)[decides])
    close = np.full(count, np.inf)
    np.minimum.at(close, group, end_s[at])
    end = end_s[at[np.r_[new[1:], True]]]
    together = end - close <= CLOSE * (end - begun[at[new]])
    treated = waited & together & (np.bincount(group) > 1)
    kind, cost, condition = rows.kind.copy(), rows.cost.copy(), rows.condition.copy()
    others = at[(end_s[at] > last[group]) & ~decides & treated[group]]
    cost[others, _OWN] = 0.0
    slow = rows.condition[others, _WAIT] >= 0
    of_row = np.zeros(len(rows), dtype=np.int64)
    of_row[at] = group
    cost[others[slow], _WAIT] = np.minimum(cost[others[slow], _WAIT], flight[of_row[others[slow]]])
    late = decides & treated[group]
    kind[at[late], _WAIT], condition[at[late], _WAIT] = Step.AFTER, 2 * rows.link[at[late]].astype(np.int64)
    cost[at[late], _OWN], cost[at[late], _WAIT] = 0.0, (end_s[at] - sent)[late]
    return replace(rows, kind=kind, cost=cost, condition=condition)
