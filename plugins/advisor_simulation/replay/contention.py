"""Replay with links and buses: messages wait for them, first come, first served, so their order depends on times.

A message needs a link out of its node, a link into the other node and a bus, all at once, for bytes / bandwidth. It
queues for the first of them that is taken. Everything happens in the order of time, from a heap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from advisor_simulation.replay import deadlocks
from advisor_simulation.replay.compiling import fitting, helper
from advisor_simulation.replay.engine import prices, speeds
from advisor_simulation.replay.network import nodes
from advisor_simulation.replay.steps import Step, lowered

if TYPE_CHECKING:
    from advisor.model import FloatArray, IntArray
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program
    from advisor_simulation.replay.steps import Steps

Numbers = npt.NDArray[np.int32]

BURST, FIXED, SEND, ANNOUNCE, READY, NOTE = (int(Step(number)) for number in range(6))
ARRIVE, RECEIVE, RELEASE, ACCEPT, LEAVE = (int(Step(number)) for number in range(6, 11))
#: Steps of a sender, and its message's bytes are their values.
_SENDING: Final = (SEND, ANNOUNCE)


@dataclass(frozen=True, slots=True)
class Contended:
    """The end of every operation, the ends of the ranks, and how long each message waited for links and buses."""

    end_s: FloatArray
    clock: FloatArray
    resource_s: FloatArray

    @property
    def time_s(self) -> float:
        """The run time, seconds."""
        return float(self.clock.max(initial=0.0))


def replay(program: Program, network: Network) -> Contended:
    """Return the replay of ``program`` with the links and buses of ``network``; raises ``DeadlockError``."""
    steps = lowered(program, network)
    latency, flight, gap = speeds([network])
    cost = prices(steps, latency + flight, gap)[:, 0].copy()
    node = nodes(network, program)
    same = node[program.source] == node[program.target]
    messages = len(program.source)
    ways = np.stack([node[program.source], int(node.max(initial=0)) + 1 + node[program.target]], axis=1)
    ways = np.c_[ways, np.full(messages, 2 * (int(node.max(initial=0)) + 1))]
    end_s, clock = np.zeros(len(steps.kind)), steps.start_s.copy()
    resource_s, place = np.zeros(messages), steps.first[:-1].copy()
    lines = _lines(np.where(same[:, None], -1, ways), _capacities(network, int(node.max(initial=0)) + 1))
    point = Speeds(float(network.cpu_ratio), latency[:, 0].copy(), flight[:, 0].copy(), gap[:, 0].copy(), cost)
    fitting(compete, len(steps.kind))(
        steps.first, (steps.kind, steps.value, steps.condition), messages, _wires(steps), point, lines,
        (clock, end_s, place), resource_s,
        Heap(np.zeros(messages + 1), np.zeros(messages + 1, dtype=np.int64), np.zeros(2, dtype=np.int64)),
    )  # fmt: skip
    stuck = place < steps.first[1:]
    if stuck.any():
        raise deadlocks.error(program, np.searchsorted(np.maximum.accumulate(steps.last), place[stuck]).tolist())
    ends = np.repeat(steps.start_s, np.diff(program.first))
    ends[steps.last >= 0] = end_s[steps.last[steps.last >= 0]]
    return Contended(ends, clock, resource_s)


def _wires(steps: Steps) -> Wires:
    """Return that nothing has happened yet."""
    conditions = 2 * steps.messages + len(steps.needed)
    nothing = np.zeros(steps.messages)
    return Wires(
        np.full(conditions, -1.0), np.full(conditions, -1, dtype=np.int32), np.full(steps.ranks, -1, dtype=np.int32),
        steps.needed.copy(), nothing, nothing.copy(), nothing.copy(),
    )  # fmt: skip


def _lines(ways: IntArray, free: IntArray) -> Lines:
    """Return resources with empty queues."""
    empty = np.full(len(free), -1, dtype=np.int32)
    return Lines(ways.astype(np.int64), free, empty, empty.copy(), np.full(len(ways), -1, dtype=np.int32))


def _capacities(network: Network, count: int) -> IntArray:
    """Return how many messages each resource takes at a time: links out, links in, buses."""
    plenty = 2**31
    found: IntArray = np.r_[
        np.full(count, network.links_out or plenty), np.full(count, network.links_in or plenty), network.buses or plenty
    ].astype(np.int64)
    return found


class Wires(NamedTuple):
    """What has happened to messages and collective operations, and who waits.

    By condition ``known``: when it was fulfilled, of arrivals the latest (-1: not yet), and ``waiter``: the last rank
    that waits (-1 none, -2 the message is there); by rank ``next_waiter``; by collective operation ``needed``. By
    message ``asked``: when it could set out, ``lasts``: seconds on its links, and then when it arrived, ``flight``.
    """

    known: FloatArray
    waiter: Numbers
    next_waiter: Numbers
    needed: Numbers
    asked: FloatArray
    lasts: FloatArray
    flight: FloatArray


class Speeds(NamedTuple):
    """The point: factor on computation, startup, flight and seconds per byte (2,), seconds of collectives (shapes,)."""

    ratio: float
    latency: FloatArray
    flight: FloatArray
    gap: FloatArray
    cost: FloatArray


class Lines(NamedTuple):
    """Resources: which a message needs (messages, 3; -1 none), how many are free, and the queue at each."""

    ways: IntArray
    free: IntArray
    head: Numbers
    tail: Numbers
    follower: Numbers


@helper
def wake(wires: Wires, what: int, runnable: list[int]) -> None:
    """Let those go on who wait for a condition."""
    other = wires.waiter[what]
    wires.waiter[what] = -1
    while other >= 0:
        runnable.append(int(other))
        other = wires.next_waiter[other]


@helper
def tell(
    k: int, inner: int, what: int, bytes_: float, t: float, wires: Wires, speeds: Speeds, runnable: list[int]
) -> bool:
    """Note what a sender or receiver tells of a message at ``t``; return whether the message can set out now."""
    m = what >> 1
    wires.known[what] = t + speeds.latency[inner] if k == READY else t
    if k in _SENDING:
        wires.lasts[m] = bytes_ * speeds.gap[inner]
        wires.flight[m] = speeds.flight[inner]
    else:
        wake(wires, what, runnable)
    if k != SEND and wires.known[what ^ 1] < 0.0:
        return False
    wires.asked[m] = wires.known[what] if k == SEND else max(wires.known[what], wires.known[what ^ 1])
    return True


@helper
def awaited(k: int, inner: int, what: int, v: float, t: float, messages: int, wires: Wires, speeds: Speeds) -> float:
    """Return when a step that waits is over, -1 while that is not known."""
    if k == LEAVE:
        there = wires.needed[what - 2 * messages] == 0
        return max(t, wires.known[what] + speeds.cost[int(v)]) if there else -1.0
    if k == RELEASE:
        return max(t, wires.known[what]) if wires.known[what] >= 0.0 else -1.0
    return max(t + speeds.latency[inner], wires.lasts[what >> 1]) if wires.waiter[what] == -2 else -1.0


@helper
def find_taken(lines: Lines, m: int) -> int:
    """Return the first resource of a message that is taken, -1 where all are free."""
    for way in lines.ways[m]:
        if way >= 0 and lines.free[way] == 0:
            return int(way)
    return -1


@helper
def queue(lines: Lines, m: int, way: int) -> None:
    """Let a message wait for a resource, behind all others."""
    lines.follower[m] = -1
    if lines.head[way] < 0:
        lines.head[way] = m
    else:
        lines.follower[lines.tail[way]] = m
    lines.tail[way] = m


@helper
def move(lines: Lines, m: int, change: int) -> None:
    """Take (-1) or free (1) the resources of a message."""
    for way in lines.ways[m]:
        if way >= 0:
            lines.free[way] += change


@helper
def set_out(m: int, now: float, wires: Wires, lines: Lines, resource_s: FloatArray) -> bool:
    """Return whether a message finds all its resources free and takes them; else it waits for one."""
    taken = find_taken(lines, m)
    if taken >= 0:
        queue(lines, m, taken)
        return False
    move(lines, m, -1)
    resource_s[m] = now - wires.asked[m]
    return True


@helper
def next_in_line(lines: Lines, way: int) -> int:
    """Return the message that waits longest for a resource that is free, -1 for none; it waits no more."""
    if way < 0 or lines.head[way] < 0 or lines.free[way] == 0:
        return -1
    m = int(lines.head[way])
    lines.head[way] = lines.follower[m]
    return m


class Heap(NamedTuple):
    """What is to happen, the earliest first: times and events, and how many there are and have been (2,).

    Of events at one time the one that was put in first comes first.
    """

    times: FloatArray
    events: IntArray
    counts: IntArray


@helper
def push(heap: Heap, time: float, event: int) -> None:
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


@helper
def drop(heap: Heap) -> None:
    """Take out the first event."""
    heap.counts[0] -= 1
    count = heap.counts[0]
    time, number = heap.times[count], heap.events[count]
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


@helper
def run_rank(
    rank: int,
    stop: int,
    steps: tuple[npt.NDArray[np.uint8], FloatArray, Numbers],
    messages: int,
    wires: Wires,
    speeds: Speeds,
    runnable: list[int],
    heap: Heap,
    ends: tuple[FloatArray, FloatArray, IntArray],
) -> None:
    """Execute the steps of a rank until one has to wait; messages that can set out become events."""
    kind, value, condition = steps
    clock, end_s, place = ends
    t = clock[rank]
    for i in range(place[rank], stop):
        k, inner, what = kind[i] & 15, kind[i] >> 4, condition[i]
        if k <= FIXED:
            t += value[i] * (speeds.ratio if k == BURST else 1.0)
        elif k == ARRIVE:
            wires.known[what] = max(wires.known[what], t)
            wires.needed[what - 2 * messages] -= 1
            if wires.needed[what - 2 * messages] == 0:
                wake(wires, what, runnable)
        elif k < ARRIVE:
            t += speeds.latency[inner] if k <= ANNOUNCE else 0.0
            if tell(k, inner, what, value[i], t, wires, speeds, runnable):
                push(heap, wires.asked[what >> 1], what & ~1)
        else:
            over = awaited(k, inner, what, value[i], t, messages, wires, speeds)
            if over < 0.0:
                wires.next_waiter[rank], wires.waiter[what] = wires.waiter[what], rank
                break
            t = over
        end_s[i] = t
        place[rank] = i + 1
    clock[rank] = t


def compete(
    first: IntArray,
    steps: tuple[npt.NDArray[np.uint8], FloatArray, Numbers],
    messages: int,
    wires: Wires,
    speeds: Speeds,
    lines: Lines,
    ends: tuple[FloatArray, FloatArray, IntArray],
    resource_s: FloatArray,
    heap: Heap,
) -> None:
    """Execute all steps (kind, value, condition) in the order of time.

    ``ends`` (clock of the ranks, end of the steps, place of the ranks) and ``resource_s`` (messages,) are filled.
    """
    runnable = list(range(len(first) - 2, -1, -1))
    while True:
        while len(runnable) > 0:
            rank = runnable.pop()
            run_rank(rank, first[rank + 1], steps, messages, wires, speeds, runnable, heap, ends)
        if heap.counts[0] == 0:
            return
        now, event = heap.times[0], heap.events[0] & 0xFFFFFFFF
        drop(heap)
        m = event >> 1
        if event & 1 == 0:
            if set_out(m, now, wires, lines, resource_s):
                push(heap, now + wires.lasts[m], event + 1)
            continue
        move(lines, m, 1)
        wires.lasts[m] = now + wires.flight[m]
        wake(wires, 2 * m, runnable)
        wires.waiter[2 * m] = -2
        for turn in range(3):
            way = lines.ways[m, turn]
            other = next_in_line(lines, way)
            while other >= 0:
                if set_out(other, now, wires, lines, resource_s):
                    push(heap, now + wires.lasts[other], 2 * other + 1)
                other = next_in_line(lines, way)
