"""Replay with links and buses: messages wait for them, first come, first served, so their order depends on times.

A message needs a link out of its node, a link into the other node and a bus for bytes / bandwidth, and takes them one
after the other, as Dimemas does. While it waits for the link in, a message that could go at once takes its link out.
Everything happens in the order of time, from a heap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor_simulation.replay import engine
from advisor_simulation.replay.contention import EventHeap, MessageState, Resources, Runnable, simulate_contention
from advisor_simulation.replay.lowering import lower_program
from advisor_simulation.replay.network import Network, rank_nodes
from advisor_simulation.replay.numba_compiler import choose_compiled

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.program import Program
    from advisor_simulation.replay.steps import Steps


@dataclass(frozen=True, slots=True)
class ContendedReplay:
    """The end of every operation, the ends of the ranks, and how long each message waited for links and buses."""

    end_s: FloatArray
    clock: FloatArray
    resource_s: FloatArray

    @property
    def time_s(self) -> float:
        """The run time, seconds."""
        return float(self.clock.max(initial=0.0))


def replay_contended(program: Program, network: Network) -> ContendedReplay:
    """Return the replay of ``program`` with the links and buses of ``network``; raises ``DeadlockError``."""
    steps = lower_program(program, network)
    node = rank_nodes(network, program)
    same = node[program.source] == node[program.target]
    messages = len(program.source)
    ways = np.empty((messages, 3), dtype=np.int32)
    ways[:, 0], ways[:, 1] = node[program.source], int(node.max(initial=0)) + 1 + node[program.target]
    ways[:, 2] = 2 * (int(node.max(initial=0)) + 1)
    ways[same] = -1
    end_s, clock = np.zeros(len(steps.kind)), steps.start_s.copy()
    resource_s, place = np.zeros(messages), steps.first[:-1].copy()
    lines = _empty_resources(ways, _resource_capacities(network, int(node.max(initial=0)) + 1))
    speeds = engine.point_speeds(steps, network)
    choose_compiled(simulate_contention, len(steps.kind))(
        steps.first, (steps.kind, steps.value, steps.condition), messages, _initial_state(steps), speeds, lines,
        (clock, end_s, place), resource_s,
        EventHeap(np.zeros(messages + 1), np.zeros(messages + 1, dtype=np.int64), np.zeros(2, dtype=np.int64)),
        Runnable(np.arange(steps.ranks, dtype=np.int32)[::-1].copy(), np.array([steps.ranks], dtype=np.int64)),
    )  # fmt: skip
    stuck = place < steps.first[1:]
    if stuck.any():
        raise engine.build_error(program, np.searchsorted(np.maximum.accumulate(steps.last), place[stuck]).tolist())
    ends = np.repeat(steps.start_s, np.diff(program.first))
    ends[steps.last >= 0] = end_s[steps.last[steps.last >= 0]]
    return ContendedReplay(ends, clock, resource_s)


def _initial_state(steps: Steps) -> MessageState:
    """Return that nothing has happened yet."""
    conditions = 2 * steps.messages + len(steps.arrivals)
    nothing = np.zeros(steps.messages)
    return MessageState(
        np.full(conditions, -1.0), np.full(conditions, -1, dtype=np.int32), np.full(steps.ranks, -1, dtype=np.int32),
        steps.arrivals.copy(), nothing, nothing.copy(), nothing.copy(),
    )  # fmt: skip


def _empty_resources(ways: npt.NDArray[np.int32], free: IntArray) -> Resources:
    """Return resources with empty queues."""
    by_resource, by_message = (np.full(len(each), -1, dtype=np.int32) for each in (free, ways))
    return Resources(
        ways, free, by_resource, by_resource.copy(), by_message, by_message.copy(), np.zeros(len(ways), dtype=np.int32),
        by_resource.copy(), by_resource.copy(), by_message.copy(),
    )  # fmt: skip


def _resource_capacities(network: Network, count: int) -> IntArray:
    """Return how many messages each resource takes at a time: links out, links in, buses."""
    plenty = 2**31
    found: IntArray = np.r_[
        np.full(count, network.links_out or plenty), np.full(count, network.links_in or plenty), network.buses or plenty
    ].astype(np.int64)
    return found
