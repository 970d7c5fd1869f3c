"""Files in virtual time: servers that do one operation each at a time, first come first served."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from lab.messages import Request

if TYPE_CHECKING:
    from lab.engine import Engine, Process
    from lab.operations import StartTransfer, Transfer


class Files:
    """The storage of a run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._free_s = [0.0] * engine.machine.storage.servers
        self._locked_s: dict[str, float] = {}

    def transfer(self, process: Process, step: Transfer) -> None:
        """Do an operation and wait for its end."""
        engine = self._engine
        engine.note(process, engine.now, "enter", step.call)
        seconds = engine.machine.storage.seconds(step.call, step.size_B)
        end = self._end(seconds, step.file if step.exclusive else None)
        if step.call in ("read", "write"):
            engine.note(process, end, "io", step.file, step.size_B)
        engine.leave(process, end, step.call)

    def start(self, process: Process, step: StartTransfer) -> None:
        """Start an operation in the background."""
        engine = self._engine
        engine.note(process, engine.now, "enter", step.call)
        storage = engine.machine.storage
        seconds = step.pieces * storage.seconds(step.call, 0) + step.size_B / storage.bandwidth
        end = self._end(seconds + step.syncs * storage.seconds("fsync", 0), step.file if step.exclusive else None)
        process.requests[step.request] = Request("file", size_B=step.size_B, number=step.request, done_s=end)
        engine.leave(process, engine.now + engine.machine.network.overhead_s, step.call)

    def _end(self, seconds: float, lock: str | None) -> float:
        """Return when an operation of so many seconds that begins now will be over, behind those before it."""
        begin = max(self._engine.now, self._free_s[0], self._locked_s.get(lock, 0.0) if lock else 0.0)
        end = begin + seconds
        heapq.heapreplace(self._free_s, end)
        if lock:
            self._locked_s[lock] = end
        return end
