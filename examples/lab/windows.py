"""One-sided communication in virtual time: puts, and the two ways of saying that data are there.

A put moves by itself, like the data of a message. A fence is a barrier of all ranks behind all puts before it. Between
pairs, a target exposes its memory to some origins, which is a notice to each; an origin begins its access when all its
targets have, and ends it with a notice that follows its data.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from lab.costs import collective_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.engine import Engine, Process
    from lab.operations import Access, EndAccess, EndExposure, Expose, Fence, Put


class Windows:
    """The memory that ranks write into, one window for each run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._put_s: dict[tuple[int, int], float] = {}
        self._fenced: list[Process] = []
        #: Notices by kind, from whom and to whom: when they come; and who waits for them.
        self._notices: dict[tuple[str, int, int], deque[float]] = defaultdict(deque)
        self._waiting: dict[tuple[str, int, int], Callable[[], None]] = {}

    def put(self, process: Process, step: Put) -> None:
        """Start to move data to another rank."""
        engine, network = self._engine, self._engine.machine.network
        engine.note(process, engine.now, "enter", "MPI_Put")
        latency, bandwidth = self._link(process.rank, step.to)
        begin = engine.now + network.overhead_s
        end = begin + latency + step.size_B / bandwidth
        self._put_s[process.rank, step.to] = max(end, self._put_s.get((process.rank, step.to), 0.0))
        engine.leave(process, begin, "MPI_Put")

    def fence(self, process: Process, _step: Fence) -> None:
        """Wait for all ranks and for all puts."""
        engine, network = self._engine, self._engine.machine.network
        engine.note(process, engine.now, "enter", "MPI_Win_fence")
        self._fenced.append(process)
        if len(self._fenced) < engine.ranks:
            return
        far = engine.host[-1] > 0
        latency = network.latency_s if far else network.inner_latency_s
        end = engine.now + collective_s("MPI_Barrier", 0, engine.ranks, latency, network.bandwidth, network.overhead_s)
        end = max([end, *self._put_s.values()])
        self._put_s.clear()
        for each in self._fenced:
            engine.leave(each, end, "MPI_Win_fence")
        self._fenced = []

    def expose(self, process: Process, step: Expose) -> None:
        """Tell the origins that they may write."""
        for origin in step.origins:
            self._notify("exposed", process.rank, origin, self._engine.now)
        self._go_on(process, "MPI_Win_post")

    def access(self, process: Process, step: Access) -> None:
        """Wait for the notices of the targets."""
        self._wait(process, "MPI_Win_start", [("exposed", target, process.rank) for target in step.targets])

    def end_access(self, process: Process, step: EndAccess) -> None:
        """Tell the targets that all was written, behind the data."""
        for target in step.targets:
            there = self._put_s.pop((process.rank, target), 0.0) - self._link(process.rank, target)[0]
            self._notify("written", process.rank, target, max(there, self._engine.now))
        self._go_on(process, "MPI_Win_complete")

    def end_exposure(self, process: Process, step: EndExposure) -> None:
        """Wait for the notices of the origins."""
        self._wait(process, "MPI_Win_wait", [("written", origin, process.rank) for origin in step.origins])

    def _go_on(self, process: Process, call: str) -> None:
        self._engine.note(process, self._engine.now, "enter", call)
        self._engine.leave(process, self._engine.now + self._engine.machine.network.overhead_s, call)

    def _link(self, source: int, to: int) -> tuple[float, float]:
        network, host = self._engine.machine.network, self._engine.host
        if host[source] == host[to]:
            return network.inner_latency_s, network.inner_bandwidth
        return network.latency_s, network.bandwidth

    def _notify(self, kind: str, source: int, to: int, time_s: float) -> None:
        """Let a notice come one latency after a time."""
        there = time_s + self._link(source, to)[0]
        key = kind, source, to
        self._notices[key].append(there)
        if key in self._waiting:
            self._waiting.pop(key)()

    def _wait(self, process: Process, call: str, keys: list[tuple[str, int, int]]) -> None:
        """Leave a call when one notice of each key has come."""
        engine = self._engine
        engine.note(process, engine.now, "enter", call)
        left = [key for key in keys if not self._notices[key]]
        missing = len(left)

        def finish() -> None:
            end = max([engine.now, *(self._notices[key].popleft() for key in keys)])
            engine.leave(process, end + engine.machine.network.overhead_s, call)

        def told() -> None:
            nonlocal missing
            missing -= 1
            if not missing:
                finish()

        for key in left:
            self._waiting[key] = told
        if not left:
            finish()
