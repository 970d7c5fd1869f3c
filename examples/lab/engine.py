"""The simulator: processes in virtual time, one event after the other in the order of time.

A process is a generator of operations, one for each rank; threads live inside a parallel region. Messages, collective
operations and files are in modules of their own. Nothing here is shared with what it judges.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lab import operations as op
from lab.costs import Network, Storage, Threads
from lab.files import Files
from lab.meetings import Meetings
from lab.messages import Messages, Request
from lab.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: An event of a trace: seconds, what it is, and its values.
Event = tuple[float, str, tuple[Any, ...]]


class DeadlockError(Exception):
    """Nobody can go on."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What programs run on. With ``cores`` the threads of a host share so many; else there are always enough."""

    network: Network = field(default_factory=Network)
    storage: Storage = field(default_factory=Storage)
    teams: Threads = field(default_factory=Threads)
    ranks_per_host: int | None = None
    cores: int | None = None


@dataclass(slots=True, eq=False)
class Process:
    """A rank or a thread: the place of its events, its program, its open requests, and what follows its end."""

    place: int
    rank: int
    program: op.Program
    requests: dict[int, Request] = field(default_factory=dict)
    then: Callable[[], None] | None = None
    doing: op.Operation | None = None


@dataclass(frozen=True, slots=True)
class _Turn:
    """Seconds that a process still has to compute, and what follows."""

    process: Process
    seconds: float
    then: Callable[[], None]


@dataclass(slots=True)
class _Lock:
    held: bool = False
    queue: deque[Callable[[], None]] = field(default_factory=deque)


class Engine:
    """A run of ``ranks`` programs on a machine; with ``record`` its events are kept in ``log``, by location."""

    def __init__(self, ranks: int, machine: Machine, *, threads: int = 1, record: bool = False) -> None:
        self.ranks, self.threads, self.machine = ranks, threads, machine
        self.host = [rank // (machine.ranks_per_host or ranks) for rank in range(ranks)]
        hosts = self.host[-1] + 1
        self.now = 0.0
        self.log: list[list[Event]] = [[] for _ in range(ranks * threads if record else 0)]
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = self._alive = 0
        self._idle = [machine.cores or 0] * hosts
        self._ready: list[deque[_Turn]] = [deque() for _ in range(hosts)]
        self._held: tuple[Process, float] | None = None
        self._locks: dict[str, _Lock] = {}
        messages, meetings, files, windows = Messages(self), Meetings(self), Files(self), Windows(self)
        self._do: dict[type, Callable[[Process, Any], None]] = {
            op.Work: self._work, op.Pass: self._pass, op.Critical: self._critical, op.Parallel: self._parallel,
            op.Background: self._background,
            op.Send: messages.send, op.Recv: messages.recv, op.Isend: messages.isend, op.Irecv: messages.irecv,
            op.Sendrecv: messages.sendrecv, op.Wait: messages.wait,
            op.Collective: meetings.enter, op.StartCollective: meetings.start,
            op.Put: windows.put, op.Fence: windows.fence, op.Expose: windows.expose, op.Access: windows.access,
            op.EndAccess: windows.end_access, op.EndExposure: windows.end_exposure,
            op.Transfer: files.transfer, op.StartTransfer: files.start,
        }  # fmt: skip

    def run(self, programs: Sequence[op.Program]) -> float:
        """Execute one program for each rank and return when the last one ends; raises ``DeadlockError``."""
        processes = [Process(rank * self.threads, rank, program) for rank, program in enumerate(programs)]
        self._alive = len(processes)
        for process in processes:
            self.at(0.0, self._advance, process, None)
        while self._queue:
            self.now, _, call, values = heapq.heappop(self._queue)
            call(*values)
        if self._alive:
            stuck = [f"rank {each.rank} in {each.doing}" for each in processes if each.doing]
            raise DeadlockError("; ".join(stuck[:4]))
        return self.now

    def at(self, time_s: float, call: Callable[..., None], *values: object) -> None:
        """Let ``call`` happen at a time; what happens at the same time happens in the order of the calls of ``at``."""
        self._count += 1
        heapq.heappush(self._queue, (time_s, self._count, call, values))

    def note(self, process: Process, time_s: float, kind: str, *values: object) -> None:
        """Record an event."""
        if self.log:
            self.log[process.place].append((time_s, kind, values))

    def leave(self, process: Process, time_s: float, call: str, value: int | None = None) -> None:
        """Let a process leave a call at a time and go on, with ``value`` for its program."""
        self.note(process, time_s, "leave", call)
        self.at(time_s, self._advance, process, value)

    def _advance(self, process: Process, value: int | None = None) -> None:
        """Let a process go on until its next operation that takes time."""
        while True:
            try:
                step = process.program.send(value)
            except StopIteration:
                process.doing = None
                if process.then:
                    process.then()
                else:
                    self._alive -= 1
                return
            kind = type(step)
            if kind is not op.Enter and kind is not op.Leave:
                process.doing = step
                self._do[kind](process, step)
                return
            self.note(process, self.now, "enter" if kind is op.Enter else "leave", step[0])
            value = None

    def _pass(self, process: Process, step: op.Pass) -> None:
        self.note(process, self.now, "enter", step.call)
        self.leave(process, self.now + step.seconds, step.call)

    def _work(self, process: Process, step: op.Work) -> None:
        self._compute(process, step.seconds, lambda: self._advance(process))

    def _background(self, process: Process, step: op.Background) -> None:
        process.requests[step.request] = Request("background", number=step.request, done_s=self.now + step.seconds)
        self.at(self.now, self._advance, process)

    def _compute(self, process: Process, seconds: float, then: Callable[[], None]) -> None:
        """Compute on a core of the host, in turns where cores are short; who goes on computing keeps its core."""
        if self.machine.cores is None:
            self.at(self.now + seconds, then)
            return
        turn = _Turn(process, seconds, then)
        if self._held and self._held[0] is process and self._held[1] > 0:
            self._start_turn(turn, self._held[1])
            self._held = None
            return
        host = self.host[process.rank]
        self._ready[host].append(turn)
        self._dispatch(host)

    def _dispatch(self, host: int) -> None:
        """Give idle cores to those who wait for one, for a slice of time each."""
        while self._idle[host] and self._ready[host]:
            self._idle[host] -= 1
            self._start_turn(self._ready[host].popleft(), self.machine.teams.slice_s)

    def _start_turn(self, turn: _Turn, slice_s: float) -> None:
        seconds = min(turn.seconds, slice_s)
        self.at(self.now + seconds, self._release, replace(turn, seconds=turn.seconds - seconds), slice_s - seconds)

    def _release(self, turn: _Turn, left_s: float) -> None:
        """Take the core from who has computed, unless it goes on at once with what is left of its slice."""
        host = self.host[turn.process.rank]
        if turn.seconds > 0:
            self._ready[host].append(turn)
        else:
            self._held = held = (turn.process, left_s)
            turn.then()
            if self._held is not held:
                return
            self._held = None
        self._idle[host] += 1
        self._dispatch(host)

    def _critical(self, process: Process, step: op.Critical) -> None:
        """Take a lock, first come first served, compute, and give it back."""
        lock = self._locks.setdefault(f"{process.rank} {step.lock}", _Lock())
        outer, inner = f"!$omp critical @{step.lock}", f"!$omp critical sblock @{step.lock}"
        self.note(process, self.now, "enter", outer)

        def take() -> None:
            lock.held = True
            self.note(process, self.now, "enter", inner)
            self._compute(process, step.seconds, give)

        def give() -> None:
            self.note(process, self.now, "leave", inner)
            self.note(process, self.now, "leave", outer)
            lock.held = False
            if lock.queue:
                lock.queue.popleft()()
            self._advance(process)

        if lock.held:
            lock.queue.append(take)
        else:
            take()

    def _parallel(self, process: Process, step: op.Parallel) -> None:
        """Start a team, let every thread execute its program, and go on once the last one has ended."""
        region, barrier = f"!$omp parallel @{step.region}", f"!$omp implicit barrier @{step.region}"
        costs, left = self.machine.teams, len(step.threads)
        self.note(process, self.now, "fork", left)
        team = [Process(process.place + number, process.rank, each) for number, each in enumerate(step.threads)]

        def begin(thread: Process) -> None:
            self.note(thread, self.now, "begin")
            self.note(thread, self.now, "enter", region)
            self._advance(thread)

        def arrive(thread: Process) -> None:
            nonlocal left
            self.note(thread, self.now, "enter", barrier)
            left -= 1
            if not left:
                self.at(self.now + costs.join_s, end)

        def end() -> None:
            for thread in team:
                self.note(thread, self.now, "leave", barrier)
                self.note(thread, self.now, "leave", region)
                self.note(thread, self.now, "end")
            self.note(process, self.now, "join")
            self._advance(process)

        for thread in team:
            thread.then = lambda thread=thread: arrive(thread)
            self.at(self.now + costs.fork_s, begin, thread)
