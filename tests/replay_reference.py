"""The slow and obvious simulator: one operation after the other, as far as each rank gets.

It is what the fast engine is compared with, and what small programs are replayed by. Nothing here is shared with the
fast engine but the costs of collective operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay import collectives, engine
from advisor_simulation.replay.network import rank_nodes
from advisor_simulation.replay.program import Op

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program


@dataclass(slots=True)
class _SimulatorState:
    """Where everybody is: clocks and positions of the ranks, and what has happened to messages and collectives."""

    clock: list[float]
    place: list[int]
    sent: dict[int, float] = field(default_factory=dict)
    posted: dict[int, float] = field(default_factory=dict)
    arrived: dict[int, dict[int, float]] = field(default_factory=dict)


class ReferenceSimulator:
    """A run of a program on a network."""

    def __init__(self, program: Program, network: Network) -> None:
        self._program, self._network = program, network
        self._node = rank_nodes(network, program).tolist()
        self._sizes = program.sizes.tolist()
        self._ends = np.zeros(len(program.op))
        begin = [0.0] * program.ranks if program.start_s is None else program.start_s.tolist()
        self._state = _SimulatorState(begin, program.first[:-1].tolist())

    def run_program(self) -> FloatArray:
        """Return the end of every operation, seconds; raises ``DeadlockError``."""
        stops = self._program.first[1:].tolist()
        moved = True
        while moved:
            moved = False
            for rank in range(self._program.ranks):
                while self._state.place[rank] < stops[rank] and self._run_step(rank, self._state.place[rank]):
                    self._state.place[rank] += 1
                    moved = True
        waiting = [place for place, stop in zip(self._state.place, stops, strict=True) if place < stop]
        if waiting:
            raise engine.build_error(self._program, waiting)
        return self._ends

    def _run_step(self, rank: int, at: int) -> bool:
        """Execute an operation, or the part of it that can be; return whether it is over."""
        end = self._operation_end(rank, Op(self._program.op[at]), at, int(self._program.link[at]))
        if end is None:
            return False
        self._state.clock[rank] = end
        self._ends[at] = end
        return True

    def _operation_end(self, rank: int, op: Op, at: int, link: int) -> float | None:
        now = self._state.clock[rank]
        if op in (Op.BURST, Op.FIXED):
            return now + float(self._program.value[at]) * (self._computation_ratio(rank, at) if op == Op.BURST else 1.0)
        if op == Op.JOIN:
            return self._join_end(rank, at, link)
        if op in (Op.SEND, Op.ISEND):
            self._state.sent.setdefault(link, now + self._startup_seconds(link))
            if op == Op.ISEND:
                return self._state.sent[link]
            return self._send_end(link, self._state.sent[link])
        if op == Op.SENT:
            return self._send_end(link, now)
        if op in (Op.IRECV, Op.RECV):
            self._state.posted.setdefault(link, now + (self._startup_seconds(link) if op == Op.RECV else 0.0))
        return now if op == Op.IRECV else self._receive_end(link, now)

    def _computation_ratio(self, rank: int, at: int) -> float:
        network = self._network
        region = self._program.find_name(int(self._program.region[at]))
        return network.cpu_ratio * network.rank_ratios.get(rank, 1.0) * network.region_ratios.get(region, 1.0)

    def _inner_index(self, message: int) -> int:
        program = self._program
        return int(self._node[int(program.source[message])] == self._node[int(program.target[message])])

    def _startup_seconds(self, message: int) -> float:
        return self._network.latencies[self._inner_index(message)] if self._network.startup == "processor" else 0.0

    def _message_arrival(self, message: int) -> float | None:
        """Return when a message has arrived, None while that is not known."""
        if message not in self._state.sent:
            return None
        ready = self._state.sent[message]
        inner = self._inner_index(message)
        if self._sizes[message] > self._network.eager_bytes:
            if message not in self._state.posted:
                return None
            ready = max(ready, self._state.posted[message])
        flight = self._network.latencies[inner] if self._network.startup == "wire" else 0.0
        return float(ready + flight + self._sizes[message] * self._network.gaps[inner])

    def _send_end(self, message: int, now: float) -> float | None:
        """A message sent at once needs nobody; the sender of another one waits until its receiver is ready."""
        if self._sizes[message] <= self._network.eager_bytes:
            return now
        posted = self._state.posted.get(message)
        return None if posted is None else max(now, posted)

    def _receive_end(self, message: int, now: float) -> float | None:
        arrival = self._message_arrival(message)
        return None if arrival is None else max(now + self._startup_seconds(message), arrival)

    def _join_end(self, rank: int, at: int, link: int) -> float | None:
        joint, network = self._program.collectives, self._network
        members = self._program.communicators[int(joint.comm[link])]
        there = self._state.arrived.setdefault(link, {})
        there.setdefault(rank, self._state.clock[rank])
        name, role, root = collectives.short_name(joint.name[link]), int(joint.role[link]), int(joint.root[link])
        size = float(joint.size[link])
        algorithm = collectives.choose_algorithm(network.collectives, name, size)
        cost = collectives.compute_cost(algorithm, name, role, len(members), size)
        inner = int(len({self._node[member] for member in members}) == 1)
        seconds = cost.latencies * network.latencies[inner] + cost.bytes * network.gaps[inner]
        if algorithm != "dimemas" and root >= 0 and role in (Role.ONE_TO_ALL, Role.ALL_TO_ONE):
            if role == Role.ALL_TO_ONE and rank != root:
                return there[rank]
            if role == Role.ONE_TO_ALL:
                return None if root not in there else max(there[rank], there[root] + seconds)
        return None if len(there) < len(members) else max(there.values()) + seconds


def simulate_program(program: Program, network: Network) -> FloatArray:
    """Return the end of every operation of ``program`` on ``network``, seconds; raises ``DeadlockError``."""
    return ReferenceSimulator(program, network).run_program()
