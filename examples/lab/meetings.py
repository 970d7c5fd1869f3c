"""Collective operations of all ranks or of groups, blocking and nonblocking, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab.costs import ALL_TO_ALL, FROM_ROOT, collective_s
from lab.messages import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.engine import Engine, Process
    from lab.operations import Collective, StartCollective


@dataclass(slots=True)
class _Meeting:
    """A collective operation: when each rank entered it, its largest piece, and what follows for those that wait."""

    entered_s: dict[int, float] = field(default_factory=dict)
    size_B: int = 0
    waiting: dict[int, Callable[[float], None]] = field(default_factory=dict)


class Meetings:
    """The collective operations of a run: of a group, the n-th call of each member belongs to the n-th operation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._all = tuple(range(engine.ranks))
        self._calls: dict[tuple[tuple[int, ...], int], int] = {}
        self._open: dict[tuple[tuple[int, ...], int], _Meeting] = {}

    def enter(self, process: Process, step: Collective) -> None:
        """Call a collective operation and wait until this rank may leave it."""
        engine = self._engine
        engine.note(process, engine.now, "enter", step.call)
        engine.note(process, engine.now, "collective_begin")

        def end(time_s: float) -> None:
            engine.note(process, time_s, "collective", step.call, step.size_B, step.root, *step.members)
            engine.leave(process, time_s, step.call)

        self._join(process, step, step.root, end)

    def start(self, process: Process, step: StartCollective) -> None:
        """Start a nonblocking collective operation."""
        engine = self._engine
        call = "MPI_I" + step.call.removeprefix("MPI_").lower()
        request = Request("collective", ALL_TO_ALL.index(step.call), size_B=step.size_B, number=step.request)
        request.members = step.members
        process.requests[step.request] = request
        engine.note(process, engine.now, "enter", call)
        engine.note(process, engine.now, "icollective", step.request)
        engine.leave(process, engine.now + engine.machine.network.overhead_s, call)
        self._join(process, step, -1, request.complete)

    def _link(self, members: tuple[int, ...]) -> tuple[float, float]:
        """Return latency and bandwidth of a group: of messages between hosts, if it has several."""
        network, host = self._engine.machine.network, self._engine.host
        if len({host[rank] for rank in members}) > 1:
            return network.latency_s, network.bandwidth
        return network.inner_latency_s, network.inner_bandwidth

    def _join(
        self, process: Process, step: Collective | StartCollective, root: int, then: Callable[[float], None]
    ) -> None:
        """Enter an operation; ``then`` is called with the time at which this rank may leave."""
        engine, call, size_B, members = self._engine, step.call, step.size_B, step.members or self._all
        calls = self._calls.get((members, process.rank), 0)
        self._calls[members, process.rank] = calls + 1
        meeting = self._open.setdefault((members, calls), _Meeting())
        meeting.entered_s[process.rank] = engine.now
        size_B = meeting.size_B = max(meeting.size_B, size_B)
        meeting.waiting[process.rank] = then
        whole = len(meeting.entered_s) == len(members)
        overhead, (latency, bandwidth) = engine.machine.network.overhead_s, self._link(members)
        cost = collective_s(call, size_B, len(members), latency, bandwidth, overhead)
        own = overhead + size_B / bandwidth
        if call in ALL_TO_ALL:
            free = list(meeting.waiting) if whole else []
        elif call in FROM_ROOT:
            free = list(meeting.waiting) if root in meeting.entered_s else []
            cost = max(cost, own)
        else:
            free = [rank for rank in meeting.waiting if rank != root or whole]
            cost = own if process.rank != root and not whole else cost
        begin = meeting.entered_s[root] if call in FROM_ROOT and root in meeting.entered_s else engine.now
        for rank in free:
            leaves = begin + (own if call not in ALL_TO_ALL + FROM_ROOT and rank != root else cost)
            meeting.waiting.pop(rank)(max(leaves, engine.now + overhead))
        if whole:
            del self._open[members, calls]
