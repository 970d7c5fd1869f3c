"""Calls that wait for several messages at once: which of them the waiting was for.

Tracers note all completions when such a call ends. Taken as they stand, the message that was waited for and those that
were there long before are equally slow, and would be so again if the late one came earlier. A large message that is
sent waits for its receive, so a call may have waited for who receives from it as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.replay.program import POSTING, Op
from advisor_simulation.replay.waits import operation_starts
from advisor_simulation.whatif.traced.stretches import find_message_ends

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.whatif.traced.rows import ReplayRows

#: Completions are noted together if they lie within this last part of the call.
CLOSE: Final = 0.05
#: A large message is announced, allowed and moved, three ways between two ranks; who receives it is ready before the
#: last two, who sends it before all.
TRIPS: Final = 3


def split_waits(rows: ReplayRows) -> ReplayRows:
    """Return recorded rows in which what came last ends a wait for several messages, and nothing else does.

    That is the message that was sent last, or a receive that was posted later than that and before the call ended. In
    the others of that call nothing is left of the time in which the last one was under way.
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
    end = end_s[at[np.r_[new[1:], True]]]
    sent, decides = _find_latest(rows, at, group, begun, (begun[at[new]], end))
    last = np.full(count, -np.inf)
    np.maximum.at(last, group, sent)
    waited = last > begun[at[new]]
    flight = np.full(count, np.inf)
    np.minimum.at(flight, group[decides], (end_s[at] - sent)[decides])
    close = np.full(count, np.inf)
    np.minimum.at(close, group, end_s[at])
    together = end - close <= CLOSE * (end - begun[at[new]])
    posted = np.bincount(group, decides & (rows.op[at] == Op.SENT), minlength=count) > 0
    treated = waited & together & ((np.bincount(group) > 1) | posted)
    seconds, wait_s, awaits = rows.seconds.copy(), rows.wait_s.copy(), rows.awaits.copy()
    others = at[(end_s[at] > last[group]) & ~decides & treated[group]]
    seconds[others] = 0.0
    slow = rows.awaits[others] >= 0
    of_row = np.zeros(len(rows), dtype=np.int64)
    of_row[at] = group
    wait_s[others[slow]] = np.minimum(wait_s[others[slow]], flight[of_row[others[slow]]])
    late = decides & treated[group]
    awaits[at[late]] = 2 * rows.link[at[late]] + (rows.op[at[late]] == Op.SENT)
    seconds[at[late]], wait_s[at[late]] = 0.0, (end_s[at] - sent)[late]
    return replace(rows, seconds=seconds, wait_s=wait_s, awaits=awaits)


def _find_latest(
    rows: ReplayRows, at: IntArray, group: IntArray, begun: FloatArray, calls: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return when the partner of each completion ``at`` was ready (-inf: unknown), and which are the last of a call.

    A partner that receives counts only if it was ready later than all who send, and so long before the call ended as
    the fastest message takes for one of its ``TRIPS``: else the message did not wait for it. ``calls`` are begin and
    end of each group.
    """
    send, _ = find_message_ends(rows)
    posts = np.full(len(rows.program.source), -1, dtype=np.int64)
    posting = np.flatnonzero(rows.op_mask(*POSTING))
    posts[rows.link[posting]] = posting
    receives = rows.op[at] == Op.DONE
    partner = np.where(receives, send[rows.link[at]], posts[rows.link[at]])
    ready = np.where(partner >= 0, begun[partner], -np.inf)
    begin, end = calls
    sent = np.full(len(end), -np.inf)
    np.maximum.at(sent, group[receives], ready[receives])
    flight = (end[group] - ready)[receives & (ready > begin[group])]
    fastest = float(flight.min(initial=np.inf, where=flight > 0))
    latest = end[group] - (fastest / TRIPS if np.isfinite(fastest) else 0.0)
    ready[~receives & ((ready > latest) | (ready <= sent[group]))] = -np.inf
    last = np.full(len(end), -np.inf)
    np.maximum.at(last, group, ready)
    return ready, np.isfinite(ready) & (ready == last[group])
