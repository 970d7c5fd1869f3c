"""Sending earlier, as far as other ranks of the same program show that it can be done.

In a program that all ranks execute, whatever some of them do before they send, the others could: a rank that sends
behind all of its work in a pass, where others send behind a tenth of it, may send behind a tenth. Where all ranks send
behind the same part, as in a stencil, nothing shows that any of the work could wait, whoever is late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.replay.program import RECEIVED, SENDING, Op
from advisor_simulation.whatif.traced import messages
from advisor_simulation.whatif.traced.background import cut_rows
from advisor_simulation.whatif.traced.pipelines import are_in_pipelines
from advisor_simulation.whatif.traced.stretches import group_medians
from advisor_simulation.whatif.traced.work import computing_mask, main_region, number_passes

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.whatif.traced.rows import Numbers, ReplayRows

    Mask = npt.NDArray[np.bool_]

#: A rank sends late if it has done so much more of a pass before, as a share of the pass.
LATER: Final = 0.1
#: Sends with less work than this share of a pass between them are made together.
TOGETHER: Final = 0.02


def send_early(rows: ReplayRows, place: tuple[Numbers, Numbers], chosen: Mask) -> ReplayRows | None:
    """Send as soon as other ranks do, and post receives early; None where nothing shows that it can be done.

    Where those that receive send nothing themselves, no other rank can show it: all of the work before the send is
    then taken for independent, unless it follows a receive, or block after block is computed and passed on.
    """
    moves = list(_moves(rows, place[0], place[1], chosen))
    if not moves:
        one_way = chosen & _one_way(rows) & ~are_in_pipelines(rows, chosen)
        return messages.send_early(rows, one_way) if (one_way & rows.op_mask(*SENDING)).any() else None
    cut, share, sends, of_move = (np.concatenate(each) for each in zip(*_number_moves(moves), strict=True))
    posted = messages.post_early(rows, chosen)
    key = rows.key.copy()
    key[sends] = rows.key[cut][of_move] + 0.25 + 0.2 * np.arange(len(sends)) / len(sends)
    return cut_rows(replace(posted, key=key), cut, share)


def is_shown(rows: ReplayRows, place: tuple[Numbers, Numbers], chosen: Mask) -> bool:
    """Return whether other ranks show that sends can be made earlier."""
    return next(_moves(rows, place[0], place[1], chosen), None) is not None


def _number_moves(
    moves: list[tuple[IntArray, FloatArray, IntArray, IntArray]],
) -> Iterator[tuple[IntArray, FloatArray, IntArray, IntArray]]:
    before = 0
    for cut, share, sends, of_move in moves:
        yield cut, share, sends, of_move + before
        before += len(cut)


def _moves(
    rows: ReplayRows, phase: Numbers, instance: Numbers, chosen: Mask
) -> Iterator[tuple[IntArray, FloatArray, IntArray, IntArray]]:
    """Yield for each phase what computations to cut, the part of each before the sends, these, and whose they are."""
    ranks = rows.program.ranks
    for number in np.unique(phase[chosen & rows.op_mask(*SENDING) & (phase >= 0)]):
        at = np.flatnonzero((phase == number) & (rows.line < ranks))
        bursts, computing = rows.op_mask(Op.BURST)[at], computing_mask(rows)[at]
        if not computing.any():
            continue
        main = computing & (rows.region[at] == main_region(rows.region[at[computing]], rows.seconds[at[computing]]))
        taking_part = np.isin(rows.line[at], rows.line[at[main]])  # who only serves shows nothing of the others
        at, bursts, main = at[taking_part], bursts[taking_part], main[taking_part]
        turn = number_passes(rows.line[at], instance[at], main)
        found = _of_phase(rows, at, rows.line[at] * (int(turn.max()) + 1) + turn, bursts)
        if found is not None:
            yield found


def _of_phase(
    rows: ReplayRows, at: IntArray, group: IntArray, bursts: Mask
) -> tuple[IntArray, FloatArray, IntArray, IntArray] | None:
    count = int(group.max()) + 1
    seconds = np.where(bursts, rows.seconds[at], 0.0)
    total = np.bincount(group, seconds, minlength=count)
    order = np.argsort(group, kind="stable")
    done = np.cumsum(seconds[order]) - seconds[order]
    start = np.r_[True, np.diff(group[order]) != 0]
    done -= np.repeat(done[start], np.diff(np.r_[np.flatnonzero(start), len(order)]))
    before = np.empty(len(at))
    before[order] = done
    sends = np.flatnonzero(rows.op_mask(*SENDING)[at] & (total[group] > 0))
    first = np.full(count, np.inf)
    np.minimum.at(first, group[sends], before[sends])
    sending = np.flatnonzero(np.isfinite(first))
    if not len(sending):
        return None
    share = first[sending] / total[sending]
    passes = count // max(int(rows.line[at].max()) + 1, 1)
    rank = sending // max(passes, 1)
    least = float(group_medians(share, rank).min())
    late = sending[share > least + LATER]
    if not len(late):
        return None
    wanted = least * total
    holds = np.flatnonzero(
        bursts & np.isin(group, late) & (before <= wanted[group]) & (before + seconds > wanted[group])
    )
    cut_of = np.full(count, -1, dtype=np.int64)
    cut_of[group[holds]] = np.arange(len(holds))
    together = before[sends] <= (first + TOGETHER * total)[group[sends]]
    moved = sends[np.isin(group[sends], late) & together & (cut_of[group[sends]] >= 0)]
    part = (wanted[group[holds]] - before[holds]) / seconds[holds]
    return at[holds], part, at[moved], cut_of[group[moved]]


def _one_way(rows: ReplayRows) -> Mask:
    """Return which rows belong to messages whose receiver sends nothing."""
    ranks = rows.program.ranks
    sends = np.zeros(ranks, dtype=bool)
    sends[rows.line[rows.op_mask(*SENDING) & (rows.line < ranks)]] = True
    telling = rows.op_mask(*SENDING, *RECEIVED) & (rows.link >= 0)
    found = np.zeros(len(rows), dtype=bool)
    found[telling] = ~sends[rows.program.target[rows.link[telling]]]
    return found
