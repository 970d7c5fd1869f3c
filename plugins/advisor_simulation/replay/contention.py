"""The loop of the replay with links and buses: events in the order of time, and queues at what is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from advisor_simulation.replay.kernels import ANNOUNCE, ARRIVE, BURST, FIXED, LEAVE, READY, RELEASE, SEND, Speeds
from advisor_simulation.replay.numba_compiler import numba_helper

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Numbers = npt.NDArray[np.int32]

#: Steps of a sender, and its message's bytes are their values.
_SENDING: Final = (SEND, ANNOUNCE)


class MessageState(NamedTuple):
    """What has happened to messages and collective operations, and who waits.

    By condition ``fulfilled_s``: when it was fulfilled, of arrivals the latest (-1: not yet), and ``waiter``: the last
    rank that waits (-1 none, -2 the message is there); by rank ``next_waiter``; by collective operation
    ``missing_arrivals``. By message ``ready_s``: when it could set out, ``lasts``: seconds on its links, and then when
    it arrived, ``flight``.
    """

    fulfilled_s: FloatArray
    waiter: Numbers
    next_waiter: Numbers
    missing_arrivals: Numbers
    ready_s: FloatArray
    lasts: FloatArray
    flight: FloatArray


class Resources(NamedTuple):
    """Links and buses, and the messages that hold them or wait for them.

    ``ways`` (messages, 3) are the link out, the link in and the bus that a message needs (-1 none). By resource:
    how many are ``free``, and ``head`` and ``tail`` of the queue at it. By message: its neighbours in a queue,
    ``follower`` and ``leader``, and how many of its ways it ``holds``. ``blocked`` (messages,) links those that hold a
    link out and wait for one in, by link out: ``first_blocked``, ``last_blocked`` and ``next_blocked``.
    """

    ways: Numbers
    free: IntArray
    head: Numbers
    tail: Numbers
    follower: Numbers
    leader: Numbers
    holds: Numbers
    first_blocked: Numbers
    last_blocked: Numbers
    next_blocked: Numbers


@numba_helper
def wake_waiters(wires: MessageState, what: int, runnable: Runnable) -> None:
    """Let those go on who wait for a condition."""
    other = wires.waiter[what]
    wires.waiter[what] = -1
    while other >= 0:
        runnable.ranks[runnable.many[0]] = other
        runnable.many[0] += 1
        other = wires.next_waiter[other]


@numba_helper
def record_message_end(
    k: int, inner: int, what: int, bytes_: float, t: float, wires: MessageState, speeds: Speeds, runnable: Runnable
) -> bool:
    """Note that sender or receiver of a message is ready at ``t``; return whether the message can start now."""
    m = what >> 1
    wires.fulfilled_s[what] = t + speeds.latency[inner] if k == READY else t
    if k in _SENDING:
        wires.lasts[m] = bytes_ * speeds.gap[inner]
        wires.flight[m] = speeds.flight[inner]
    else:
        wake_waiters(wires, what, runnable)
    if k != SEND and wires.fulfilled_s[what ^ 1] < 0.0:
        return False
    wires.ready_s[m] = (
        wires.fulfilled_s[what] if k == SEND else max(wires.fulfilled_s[what], wires.fulfilled_s[what ^ 1])
    )
    return True


@numba_helper
def compute_wait_end(
    k: int, inner: int, what: int, v: float, t: float, messages: int, wires: MessageState, speeds: Speeds
) -> float:
    """Return when a step that waits is over, -1 while that is not known."""
    if k == LEAVE:
        there = wires.missing_arrivals[what - 2 * messages] == 0
        return max(t, wires.fulfilled_s[what] + speeds.cost[int(v)]) if there else -1.0
    if k == RELEASE:
        return max(t, wires.fulfilled_s[what]) if wires.fulfilled_s[what] >= 0.0 else -1.0
    return max(t + speeds.latency[inner], wires.lasts[what >> 1]) if wires.waiter[what] == -2 else -1.0


@numba_helper
def queue_message(lines: Resources, m: int, way: int) -> None:
    """Let a message wait for a resource, behind all others."""
    last = lines.tail[way] if lines.head[way] >= 0 else -1
    lines.follower[m], lines.leader[m] = -1, last
    if last < 0:
        lines.head[way] = m
    else:
        lines.follower[last] = m
    lines.tail[way] = m


@numba_helper
def queue_message_first(lines: Resources, m: int, way: int) -> None:
    """Let a message wait for a resource, before all others."""
    other = lines.head[way]
    lines.follower[m], lines.leader[m] = other, -1
    if other < 0:
        lines.tail[way] = m
    else:
        lines.leader[other] = m
    lines.head[way] = m


@numba_helper
def leave_queue(lines: Resources, m: int, way: int) -> None:
    """Take a message out of the queue at a resource."""
    before, behind = lines.leader[m], lines.follower[m]
    if before < 0:
        lines.head[way] = behind
    else:
        lines.follower[before] = behind
    if behind < 0:
        lines.tail[way] = before
    else:
        lines.leader[behind] = before


@numba_helper
def start_message(m: int, now: float, wires: MessageState, lines: Resources, resource_s: FloatArray) -> bool:
    """Return whether a message holds all its resources now; else it waits for one of them."""
    out, into, bus = lines.ways[m]
    robbed = -1
    if lines.holds[m] == 0 and out >= 0:
        if lines.free[out] > 0:
            lines.free[out] -= 1
            lines.holds[m] = 1
        else:
            robbed = lines.first_blocked[out]
            if robbed < 0:
                queue_message(lines, m, out)
                return False
    if lines.holds[m] < 2 and into >= 0:
        if lines.free[into] == 0:
            if robbed >= 0:
                queue_message(lines, m, out)
            else:
                queue_message(lines, m, into)
                block_link(lines, m, out)
            return False
        if robbed >= 0:
            lines.first_blocked[out] = lines.next_blocked[robbed]
            lines.holds[robbed] = 0
            leave_queue(lines, robbed, lines.ways[robbed, 1])
            queue_message_first(lines, robbed, out)
        lines.free[into] -= 1
        lines.holds[m] = 2
    if bus >= 0:
        if lines.free[bus] == 0:
            queue_message(lines, m, bus)
            return False
        lines.free[bus] -= 1
    resource_s[m] = now - wires.ready_s[m]
    return True


@numba_helper
def block_link(lines: Resources, m: int, out: int) -> None:
    """Note that a message holds a link out, and waits for a link in."""
    if out < 0:
        return
    lines.next_blocked[m] = -1
    if lines.first_blocked[out] < 0:
        lines.first_blocked[out] = m
    else:
        lines.next_blocked[lines.last_blocked[out]] = m
    lines.last_blocked[out] = m


@numba_helper
def unblock_link(lines: Resources, m: int, out: int) -> None:
    """Note that a message no longer waits for a link in."""
    if out < 0:
        return
    other = lines.first_blocked[out]
    if other == m:
        lines.first_blocked[out] = lines.next_blocked[m]
        return
    while other >= 0:
        if lines.next_blocked[other] == m:
            lines.next_blocked[other] = lines.next_blocked[m]
            if lines.last_blocked[out] == m:
                lines.last_blocked[out] = other
            return
        other = lines.next_blocked[other]


@numba_helper
def pop_waiting_message(lines: Resources, m: int, turn: int) -> int:
    """Free a resource of a message; return the message that waits longest for it, -1 for none; it waits no more."""
    way = lines.ways[m, turn]
    if way < 0:
        return -1
    lines.free[way] += 1
    other = int(lines.head[way])
    if other >= 0:
        leave_queue(lines, other, way)
        if turn == 1:
            unblock_link(lines, other, lines.ways[other, 0])
    return other


class Runnable(NamedTuple):
    """Ranks that can go on, as a stack, and how many there are (1,)."""

    ranks: Numbers
    many: IntArray


class EventHeap(NamedTuple):
    """What is to happen, the earliest first: times and events, and how many there are and have been (2,).

    Of events at one time the one that was put in first comes first.
    """

    times: FloatArray
    events: IntArray
    counts: IntArray


@numba_helper
def push_event(heap: EventHeap, time: float, event: int) -> None:
    """Put in an event."""
    at = heap.counts[0]
    heap.counts[0] += 1
    heap.counts[1] += 1
    number = (heap.counts[1] << 32) | event
    while at > 0:
        above = (at - 1) >> 2
        if heap.times[above] < time or (heap.times[above] == time and heap.events[above] < number):
            break
        heap.times[at], heap.events[at] = heap.times[above], heap.events[above]
        at = above
    heap.times[at], heap.events[at] = time, number


@numba_helper
def place_event(heap: EventHeap, count: int, time: float, number: int) -> None:
    """Put an event in the place of the first one, of ``count``."""
    at = 0
    while 4 * at + 1 < count:
        least = 4 * at + 1
        for below in range(least + 1, min(least + 4, count)):
            sooner = heap.times[below] < heap.times[least]
            if sooner or (heap.times[below] == heap.times[least] and heap.events[below] < heap.events[least]):
                least = below
        if heap.times[least] > time or (heap.times[least] == time and heap.events[least] > number):
            break
        heap.times[at], heap.events[at] = heap.times[least], heap.events[least]
        at = least
    heap.times[at], heap.events[at] = time, number


@numba_helper
def drop_event(heap: EventHeap) -> None:
    """Take out the first event."""
    heap.counts[0] -= 1
    count = heap.counts[0]
    place_event(heap, count, heap.times[count], heap.events[count])


@numba_helper
def replace_event(heap: EventHeap, time: float, event: int) -> None:
    """Put in an event, and take out the first one."""
    heap.counts[1] += 1
    place_event(heap, heap.counts[0], time, (heap.counts[1] << 32) | event)


@numba_helper
def run_rank(
    rank: int,
    stop: int,
    steps: tuple[npt.NDArray[np.uint8], FloatArray, Numbers],
    messages: int,
    wires: MessageState,
    speeds: Speeds,
    runnable: Runnable,
    heap: EventHeap,
    ends: tuple[FloatArray, FloatArray, IntArray],
) -> None:
    """Execute the steps of a rank until one has to wait; messages that can set out become events."""
    kind, value, condition = steps
    clock, end_s, place = ends
    t = clock[rank]
    for i in range(place[rank], stop):
        k, inner, what = kind[i] & 15, kind[i] >> 4, condition[i]
        if k <= FIXED:
            t += value[i] * (speeds.ratio[0] if k == BURST else 1.0)
        elif k == ARRIVE:
            wires.fulfilled_s[what] = max(wires.fulfilled_s[what], t)
            wires.missing_arrivals[what - 2 * messages] -= 1
            if wires.missing_arrivals[what - 2 * messages] == 0:
                wake_waiters(wires, what, runnable)
        elif k < ARRIVE:
            t += speeds.latency[inner] if k <= ANNOUNCE else 0.0
            if record_message_end(k, inner, what, value[i], t, wires, speeds, runnable):
                push_event(heap, wires.ready_s[what >> 1], what & ~1)
        else:
            over = compute_wait_end(k, inner, what, value[i], t, messages, wires, speeds)
            if over < 0.0:
                wires.next_waiter[rank], wires.waiter[what] = wires.waiter[what], rank
                break
            t = over
        end_s[i] = t
        place[rank] = i + 1
    clock[rank] = t


def simulate_contention(
    first: IntArray,
    steps: tuple[npt.NDArray[np.uint8], FloatArray, Numbers],
    messages: int,
    wires: MessageState,
    speeds: Speeds,
    lines: Resources,
    ends: tuple[FloatArray, FloatArray, IntArray],
    resource_s: FloatArray,
    heap: EventHeap,
    runnable: Runnable,
) -> None:
    """Execute all steps (kind, value, condition) in the order of time.

    ``ends`` (clock of the ranks, end of the steps, place of the ranks) and ``resource_s`` (messages,) are filled.
    """
    while True:
        while runnable.many[0] > 0:
            runnable.many[0] -= 1
            rank = runnable.ranks[runnable.many[0]]
            run_rank(rank, first[rank + 1], steps, messages, wires, speeds, runnable, heap, ends)
        if heap.counts[0] == 0:
            return
        now, event = heap.times[0], heap.events[0] & 0xFFFFFFFF
        m = event >> 1
        if event & 1 == 0:
            if start_message(m, now, wires, lines, resource_s):
                replace_event(heap, now + wires.lasts[m], event + 1)
            else:
                drop_event(heap)
            continue
        drop_event(heap)
        wires.lasts[m] = now + wires.flight[m]
        wake_waiters(wires, 2 * m, runnable)
        wires.waiter[2 * m] = -2
        for turn in range(3):
            other = pop_waiting_message(lines, m, turn)
            if other >= 0 and start_message(other, now, wires, lines, resource_s):
                push_event(heap, now + wires.lasts[other], 2 * other + 1)
