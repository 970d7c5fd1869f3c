"""The loops of the fast engine: the order of the steps, found once, and one sweep over them for each set of points.

A rank goes on until a step has to wait; the stretches so found are kept, and a sweep walks through them. Steps that
have been executed free their slots, so a sweep touches as many numbers as there are messages under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from advisor_simulation.replay.numba_compiler import numba_helper
from advisor_simulation.replay.steps import Step

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Kinds = npt.NDArray[np.uint8]
    Numbers = npt.NDArray[np.int32]

BURST, FIXED, SEND, ANNOUNCE, READY, NOTE = (int(Step(number)) for number in range(6))
ARRIVE, RECEIVE, RELEASE, ACCEPT, LEAVE, AFTER = (int(Step(number)) for number in range(6, 12))
#: Places in the counts of ``OrderMarks``.
_RUNNABLE, _FREE, _SLOTS = range(3)


class OrderMarks(NamedTuple):
    """What has happened while the order is found.

    By condition ``waiter``: the last rank that waits for it, -1 none, -2 it is fulfilled; by rank ``next_waiter``. By
    message and collective operation ``pending_reads``: steps that have yet to read, and ``slots``; by collective
    operation ``missing_arrivals``. ``runnable`` and ``free`` are stacks of ranks and slots; ``counts`` how many are on
    them, and how many slots there are.
    """

    waiter: Numbers
    next_waiter: Numbers
    pending_reads: Numbers
    slots: Numbers
    missing_arrivals: Numbers
    runnable: Numbers
    free: Numbers
    counts: IntArray


class ArrangedSteps(NamedTuple):
    """Steps in an order in which each finds what it reads, stretch after stretch.

    By stretch ``rank``: whose it is, ``begin``: its first step on that rank, ``end``: where it ends here; by step
    ``kind``, ``value`` and ``slot``.
    """

    rank: Numbers
    begin: IntArray
    end: IntArray
    kind: Kinds
    value: FloatArray
    slot: Numbers


class Speeds(NamedTuple):
    """What steps cost: a factor on computation, startup on processors, latency on the wire, seconds per byte.

    ``ratio`` is (1,), the others (2,): between nodes and within one; ``cost`` (shapes,) are seconds of collective
    operations. Of several points, these are the last axis.
    """

    ratio: FloatArray
    latency: FloatArray
    flight: FloatArray
    gap: FloatArray
    cost: FloatArray


@numba_helper
def take_slot(marks: OrderMarks, base: int) -> None:
    """Give a message or collective operation a slot, one that is free again where there is one."""
    if marks.counts[_FREE] > 0:
        marks.counts[_FREE] -= 1
        marks.slots[base] = marks.free[marks.counts[_FREE]]
    else:
        marks.slots[base] = marks.counts[_SLOTS]
        marks.counts[_SLOTS] += 2


@numba_helper
def fulfil_condition(marks: OrderMarks, what: int, messages: int) -> None:
    """Note that a condition is fulfilled, or one arrival of it, and let those go on who wait for it."""
    if what >= 2 * messages:
        marks.missing_arrivals[what - 2 * messages] -= 1
        if marks.missing_arrivals[what - 2 * messages] > 0:
            return
    other = marks.waiter[what]
    marks.waiter[what] = -2
    while other >= 0:
        marks.runnable[marks.counts[_RUNNABLE]] = other
        marks.counts[_RUNNABLE] += 1
        other = marks.next_waiter[other]


@numba_helper
def free_slot(marks: OrderMarks, base: int) -> None:
    """Note that a step has read a slot; the last one frees it."""
    marks.pending_reads[base] -= 1
    if marks.pending_reads[base] == 0:
        marks.free[marks.counts[_FREE]] = marks.slots[base]
        marks.counts[_FREE] += 1


@numba_helper
def advance_rank(
    rank: int, begin: int, stop: int, kind: Kinds, condition: Numbers, messages: int, marks: OrderMarks, slot: Numbers
) -> int:
    """Execute the steps of a rank from ``begin``; return the one that waits, or ``stop``."""
    for i in range(begin, stop):
        what = condition[i]
        if what < 0:
            continue
        reads = (kind[i] & 15) >= RECEIVE
        joint = what >= 2 * messages
        base = what - messages if joint else what >> 1
        if reads and marks.waiter[what] != -2:
            marks.next_waiter[rank] = marks.waiter[what]
            marks.waiter[what] = rank
            return i
        if marks.slots[base] < 0 and marks.pending_reads[base] > 0:
            take_slot(marks, base)
            if joint:
                kind[i] = NOTE
        if marks.slots[base] >= 0:
            slot[i] = marks.slots[base] + (0 if joint else what & 1)
        if reads:
            free_slot(marks, base)
        else:
            fulfil_condition(marks, what, messages)
    return stop


def order_stretches(
    first: IntArray,
    kind: Kinds,
    condition: Numbers,
    messages: int,
    marks: OrderMarks,
    slot: Numbers,
    stretch_rank: Numbers,
    stretch_begin: IntArray,
    stretch_end: IntArray,
    place: IntArray,
) -> int:
    """Fill ``slot`` (steps,) and the stretches; return how many stretches there are.

    ``place`` (ranks,) ends at the step in which each rank stopped. The first arrival at a collective operation becomes
    a NOTE.
    """
    ranks = len(first) - 1
    stretches = 0
    for rank in range(ranks):
        marks.runnable[rank] = ranks - 1 - rank
        place[rank] = first[rank]
    marks.counts[_RUNNABLE] = ranks
    while marks.counts[_RUNNABLE] > 0:
        marks.counts[_RUNNABLE] -= 1
        rank = marks.runnable[marks.counts[_RUNNABLE]]
        begin = place[rank]
        place[rank] = advance_rank(rank, begin, first[rank + 1], kind, condition, messages, marks, slot)
        if place[rank] > begin:
            stretch_rank[stretches], stretch_begin[stretches] = rank, begin
            stretch_end[stretches] = place[rank]
            stretches += 1
    return stretches


def arrange_steps(arranged: ArrangedSteps, kind: Kinds, value: FloatArray, slot: Numbers) -> None:
    """Copy the steps into the order of the stretches, and let the ``end`` of each say where it ends then."""
    n = 0
    for s in range(len(arranged.rank)):
        for i in range(arranged.begin[s], arranged.end[s]):
            arranged.kind[n], arranged.value[n], arranged.slot[n] = kind[i], value[i], slot[i]
            n += 1
        arranged.end[s] = n


def sweep_point(
    steps: ArrangedSteps,
    speeds: Speeds,
    clock: FloatArray,
    slots: FloatArray,
    end_s: FloatArray,
    waited: npt.NDArray[np.bool_],
    keep: bool,
) -> None:
    """Move ``clock`` (ranks,) through all steps at one point.

    With ``keep`` the end of each step is noted where its rank has it, and if it waited.
    """
    rank, start, end, kind, value, slot = steps
    ratio, latency, flight, gap, cost = speeds
    begin = 0
    for s in range(len(rank)):
        t = clock[rank[s]]
        first, begin = begin, end[s]
        place = start[s] - first
        for i in range(first, begin):
            k, inner, v, own = kind[i] & 15, kind[i] >> 4, value[i], slot[i]
            other = -1.0
            if k == BURST:
                t += v * ratio[0]
            elif k == FIXED:
                t += v
            elif k == SEND:
                t += latency[inner]
                slots[own] = t + flight[inner] + v * gap[inner]
            elif k == RECEIVE:
                t += latency[inner]
                other = slots[own]
            elif k == NOTE:
                slots[own] = t
            elif k == ARRIVE:
                slots[own] = max(slots[own], t)
            elif k == LEAVE:
                other = slots[own] + cost[int(v)]
            elif k == ANNOUNCE:
                t += latency[inner]
                slots[own] = t
            elif k == READY:
                slots[own] = t + latency[inner]
            elif k == RELEASE:
                other = slots[own]
            elif k == ACCEPT:
                t += latency[inner]
                other = max(slots[own], slots[own + 1]) + flight[inner] + v * gap[inner]
            else:
                other = slots[own] + v
            t = max(t, other)
            if keep:
                end_s[i + place] = t
                waited[i + place] = other >= t and other >= 0.0
        clock[rank[s]] = t


def sweep_points(steps: ArrangedSteps, speeds: Speeds, clock: FloatArray, slots: FloatArray) -> None:
    """Move ``clock`` (ranks, points) through all steps at many points."""
    rank, _, end, kind, value, slot = steps
    ratio, latency, flight, gap, cost = speeds
    points = ratio.shape[1]
    begin = 0
    for s in range(len(rank)):
        t = clock[rank[s]]
        first, begin = begin, end[s]
        for i in range(first, begin):
            k, inner, v = kind[i] & 15, kind[i] >> 4, value[i]
            if k <= FIXED:
                for p in range(points):
                    t[p] += v * ratio[0, p] if k == BURST else v
                continue
            own, lat, fly, per_byte = slots[slot[i]], latency[inner], flight[inner], gap[inner]
            if k == SEND:
                for p in range(points):
                    t[p] += lat[p]
                    own[p] = t[p] + fly[p] + v * per_byte[p]
            elif k == RECEIVE:
                for p in range(points):
                    t[p] = max(t[p] + lat[p], own[p])
            elif k == NOTE:
                for p in range(points):
                    own[p] = t[p]
            elif k == ARRIVE:
                for p in range(points):
                    own[p] = max(own[p], t[p])
            elif k == LEAVE:
                price = cost[int(v)]
                for p in range(points):
                    t[p] = max(t[p], own[p] + price[p])
            elif k == ANNOUNCE:
                for p in range(points):
                    t[p] += lat[p]
                    own[p] = t[p]
            elif k == READY:
                for p in range(points):
                    own[p] = t[p] + lat[p]
            elif k == RELEASE:
                for p in range(points):
                    t[p] = max(t[p], own[p])
            elif k == ACCEPT:
                ready = slots[slot[i] + 1]
                for p in range(points):
                    t[p] = max(t[p] + lat[p], max(own[p], ready[p]) + fly[p] + v * per_byte[p])
            else:
                for p in range(points):
                    t[p] = max(t[p], own[p] + v)
