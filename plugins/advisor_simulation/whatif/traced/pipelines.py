"""Finer pieces in a pipeline: what is received, computed and sent on at once is cut into ``PIECES``.

What the last rank goes on with, in regions from which nothing is passed on, is no part of the pipeline.

A message belongs to a pipeline if it is sent behind a computation and received in front of one, with no meeting in
between, and its two ranks do not exchange: in that stretch of calls the sender gets nothing from the receiver but what
this computes behind it, and the receiver sends nothing back before it computes. Nor do messages go round a ring, where
each rank sends one on and receives the next in one stretch. Between two meetings there have to be several that depend
on each other: one that is passed on, or one block after the other. One message that ends a computation is only late.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.replay.program import SENDING, Op
from advisor_simulation.whatif.changes import PIECES
from advisor_simulation.whatif.traced.rows import ReplayRows, message_mask
from advisor_simulation.whatif.traced.stretches import Stretches, count_since, find_message_ends, find_stretches

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Mask = npt.NDArray[np.bool_]

#: Where receives, computation and sends stand within a piece.
_RECEIVES, _COMPUTES, _SENDS = 0.0, 0.3, 0.6
_OUT: Final = (*SENDING, Op.SENT)


def refine_pipelines(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Return the rows with pipelines in ``PIECES`` pieces; None where there are none."""
    parts = find_stretches(rows)
    found = _find_pipeline_messages(rows, parts, chosen)
    if not len(found):
        return None
    number, begin = np.full(len(rows.program.source), -1, dtype=np.int64), np.full(len(rows), np.nan)
    number[found] = np.arange(len(found))
    mine = np.flatnonzero(message_mask(rows))
    mine = mine[number[rows.link[mine]] >= 0]
    sent, got = find_message_ends(rows)
    before, behind = parts.find_previous(parts.number[sent]), parts.find_next(parts.number[got])
    outgoing = rows.op_mask(*_OUT)[mine]
    begin[mine] = rows.key[parts.first[np.where(outgoing, before[rows.link[mine]], behind[rows.link[mine]])]]
    passing = rows.op_mask(Op.BURST) & np.isin(parts.number, before[found])
    cut = np.isin(parts.number, np.r_[before[found], behind[found]]) & np.isin(rows.region, rows.region[passing])
    begin[cut] = rows.key[parts.first[parts.number[cut]]]
    place = np.where(cut, _COMPUTES, np.where(rows.op_mask(*_OUT), _SENDS, _RECEIVES))
    made = _add_messages(rows, found)
    moving = np.flatnonzero(np.isfinite(begin))
    pieces = []
    for piece in range(PIECES):
        link = rows.link[moving].astype(np.int64)
        if piece:
            extra = len(rows.program.source) + (piece - 1) * len(found)
            link = np.where(cut[moving], link, extra + number[link])
        key = begin[moving] + (piece + place[moving]) / (PIECES + 1)
        pieces.append(_build_piece(made.select_rows(moving), key, link.astype(np.int32), cut[moving]))
    return made.select_rows(~np.isfinite(begin)).add_rows(*pieces)


def are_in_pipelines(rows: ReplayRows, chosen: Mask) -> Mask:
    """Return which rows belong to messages of pipelines: what is computed behind them needs them."""
    found = np.zeros(len(rows.program.source) + 1, dtype=bool)
    found[_find_pipeline_messages(rows, find_stretches(rows), chosen)] = True
    result: Mask = message_mask(rows) & found[np.where(message_mask(rows), rows.link, -1)]
    return result


def _find_pipeline_messages(rows: ReplayRows, parts: Stretches, chosen: Mask) -> IntArray:
    """Return the messages that belong to pipelines."""
    send, receive = find_message_ends(rows)
    whole = (send >= 0) & (receive >= 0)
    known = np.flatnonzero(whole)
    known = known[chosen[send[known]]]
    joins, ranks = count_since(rows, (Op.JOIN,)), rows.program.ranks
    source, target = rows.program.source.astype(np.int64), rows.program.target.astype(np.int64)
    here, there = parts.number[send].astype(np.int64), parts.number[receive].astype(np.int64)
    before, behind = parts.find_previous(here)[known], parts.find_next(there)[known]
    found = (before >= 0) & (behind >= 0)
    found &= joins[send[known]] == joins[parts.first[here[known]] - 1]
    found &= joins[receive[known]] == joins[parts.first[behind] - 1]
    every = np.flatnonzero(whole)
    got_back = _smallest((there * ranks + source)[every], here[every], here[known] * ranks + target[known])
    found &= got_back > there[known]
    answered = -_smallest((here * ranks + target)[every], -send[every], there[known] * ranks + source[known])
    found &= answered < receive[known]
    messages = known[found]
    messages = messages[~_are_in_rings(here[messages], there[messages])]
    before_rank = np.r_[0, joins][np.searchsorted(rows.line, np.arange(ranks))]
    meeting = joins[send[messages]] - before_rank[source[messages]]
    return messages[_are_in_chains(source[messages], target[messages], meeting)]


def _smallest(keys: IntArray, values: IntArray, wanted: IntArray) -> IntArray:
    """Return the smallest of the values with each wanted key, and more than any number for a key that none has."""
    known, number = np.unique(keys, return_inverse=True)
    smallest = np.full(len(known) + 1, np.iinfo(np.int64).max)
    np.minimum.at(smallest, number, values)
    place = np.searchsorted(known, wanted)
    found: IntArray = smallest[np.where(np.r_[known, -1][place] == wanted, place, len(known))]
    return found


def _are_in_rings(sent: IntArray, received: IntArray) -> Mask:
    """Return which messages go round: whoever receives them has sent its own in the same stretch, back to the first.

    ``sent`` and ``received`` are the stretches of their ends. What goes round depends on nobody's last computation.
    Messages from stretches that receive none of the others, and to those that send none, go until none is left.
    """
    _, stretch = np.unique(np.r_[sent, received], return_inverse=True)
    sent, received = stretch[: len(sent)], stretch[len(sent) :]
    left = _drop_first(sent, received)
    left[left] = _drop_first(received[left], sent[left])
    return left


def _drop_first(begun: IntArray, ended: IntArray) -> Mask:
    """Return which messages are left when all go that begin where none of the others ends, again and again."""
    left = np.ones(len(begun), dtype=bool)
    stretches = max(begun.max(initial=-1), ended.max(initial=-1)) + 1
    order = np.argsort(begun, kind="stable")
    first = np.searchsorted(begun[order], np.arange(stretches + 1)).tolist()
    many = np.bincount(ended, minlength=stretches).tolist()
    empty = [stretch for stretch, count in enumerate(many) if not count]
    while empty:
        stretch = empty.pop()
        gone = order[first[stretch] : first[stretch + 1]]
        left[gone] = False
        for other in ended[gone].tolist():
            many[other] -= 1
            if not many[other]:
                empty.append(other)
    return left


def _are_in_chains(source: IntArray, target: IntArray, meeting: IntArray) -> Mask:
    """Return which messages lie between two meetings where one is passed on, or several go the same way."""
    if not len(meeting):
        return np.zeros(0, dtype=bool)
    ways, times = np.unique(np.stack([meeting, source, target]), axis=1, return_counts=True)
    senders, receivers = ways[:2], ways[[0, 2]]
    ranks = int(max(source.max(), target.max())) + 1
    passing = np.isin(senders[0] * ranks + senders[1], receivers[0] * ranks + receivers[1])
    found: Mask = np.isin(meeting, ways[0, passing | (times > 1)])
    return found


def _add_messages(rows: ReplayRows, found: IntArray) -> ReplayRows:
    """Return the rows of a program with more messages: those ``found``, again for each further piece."""
    program = rows.program
    more = len(found) * (PIECES - 1)
    source, target = (np.r_[ends, np.tile(ends[found], PIECES - 1)] for ends in (program.source, program.target))
    messages = 2 * len(program.source)
    tells, awaits = (np.where(each >= messages, each + 2 * more, each) for each in (rows.tells, rows.awaits))
    return replace(rows, program=replace(program, source=source, target=target), tells=tells, awaits=awaits)


def _build_piece(rows: ReplayRows, key: FloatArray, link: npt.NDArray[np.int32], computes: Mask) -> ReplayRows:
    """Return one piece of computations and messages: the part of the work, and messages of their own."""
    tells, awaits = (np.where((each >= 0) & ~computes, 2 * link + each % 2, each) for each in (rows.tells, rows.awaits))
    seconds = np.where(computes, rows.seconds / PIECES, rows.seconds)
    return replace(rows, key=key, link=link, seconds=seconds, value=rows.value / PIECES, tells=tells, awaits=awaits)
