"""Messages in virtual time: eager and rendezvous protocol, matching, links that are busy, requests.

An eager message leaves at once and its sender goes on when it is copied. A larger one, or a synchronous one, announces
itself, and begins to move one latency after both sides are there. Messages of two ranks do not overtake each other, and
receives match in the order in which they were posted. Data move without the processor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab.operations import ANY, Irecv, Isend, Recv, Send, Sendrecv, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lab.engine import Engine, Process


@dataclass(slots=True, eq=False)
class Request:
    """Something under way; ``done_s`` is its end once that is known, ``told`` who wants to know."""

    kind: str
    partner: int = ANY
    tag: int = 0
    size_B: int = 0
    number: int = -1
    done_s: float | None = None
    told: Callable[[], None] | None = None
    members: tuple[int, ...] = ()

    def complete(self, time_s: float) -> None:
        """State its end, which may lie ahead."""
        self.done_s = time_s
        if self.told:
            self.told()


@dataclass(slots=True, eq=False)
class _Message:
    """A message on its way: who sent it, and whether its data come by themselves."""

    source: int
    sent: Request
    eager: bool


@dataclass(slots=True)
class _Mailbox:
    """Receives that wait for a message and messages that wait for a receive, of one rank, in order."""

    posted: list[Request] = field(default_factory=list)
    arrived: list[_Message] = field(default_factory=list)


class Messages:
    """All messages of a run."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._network = engine, engine.machine.network
        self._boxes = [_Mailbox() for _ in range(engine.ranks)]
        self._last_s: dict[tuple[int, int], float] = {}
        hosts = engine.host[-1] + 1
        self._out_s, self._in_s = [0.0] * hosts, [0.0] * hosts
        self._count = 0

    def send(self, process: Process, step: Send) -> None:
        """Send and wait until the buffer is free."""
        call = "MPI_Ssend" if step.synchronous else "MPI_Send"
        self._engine.note(process, self._engine.now, "enter", call)
        self._engine.note(process, self._engine.now, "send", step.to, step.tag, step.size_B)
        request = self._start(process, step.to, step.size_B, step.tag, synchronous=step.synchronous)
        self._when([request], lambda end: self._engine.leave(process, end, call))

    def isend(self, process: Process, step: Isend) -> None:
        """Start to send."""
        now = self._engine.now
        self._engine.note(process, now, "enter", "MPI_Isend")
        self._engine.note(process, now, "isend", step.to, step.tag, step.size_B, step.request)
        request = self._start(process, step.to, step.size_B, step.tag)
        request.number = step.request
        process.requests[step.request] = request
        self._engine.leave(process, now + self._network.overhead_s, "MPI_Isend")

    def recv(self, process: Process, step: Recv) -> None:
        """Wait for a message."""
        self._engine.note(process, self._engine.now, "enter", "MPI_Recv")
        request = self._post(process, step.source, step.tag)

        def end(time_s: float) -> None:
            time_s += self._network.overhead_s
            self._engine.note(process, time_s, "recv", request.partner, request.tag, request.size_B)
            self._engine.leave(process, time_s, "MPI_Recv", request.partner)

        self._when([request], end)

    def irecv(self, process: Process, step: Irecv) -> None:
        """Post a receive."""
        now = self._engine.now
        self._engine.note(process, now, "enter", "MPI_Irecv")
        self._engine.note(process, now, "irecv_post", step.request)
        request = self._post(process, step.source, step.tag)
        request.number = step.request
        process.requests[step.request] = request
        self._engine.leave(process, now + self._network.overhead_s, "MPI_Irecv")

    def sendrecv(self, process: Process, step: Sendrecv) -> None:
        """Send and receive at the same time."""
        self._engine.note(process, self._engine.now, "enter", "MPI_Sendrecv")
        requests = []
        if step.to >= 0:
            self._engine.note(process, self._engine.now, "send", step.to, step.tag, step.size_B)
            requests.append(self._start(process, step.to, step.size_B, step.tag))
        if step.source >= 0:
            requests.append(self._post(process, step.source, step.tag))

        def end(time_s: float) -> None:
            time_s += self._network.overhead_s
            if step.source >= 0:
                received = requests[-1]
                self._engine.note(process, time_s, "recv", received.partner, received.tag, received.size_B)
            self._engine.leave(process, time_s, "MPI_Sendrecv")

        self._when(requests, end)

    def wait(self, process: Process, step: Wait) -> None:
        """Wait for all of these requests."""
        self._engine.note(process, self._engine.now, "enter", step.call)
        requests = [process.requests.pop(number) for number in step.requests]

        def end(time_s: float) -> None:
            received = sum(each.kind == "receive" for each in requests)
            time_s += received * self._network.overhead_s
            for each in requests:
                if each.kind == "receive":
                    self._engine.note(process, time_s, "irecv", each.partner, each.tag, each.size_B, each.number)
                elif each.kind == "send":
                    self._engine.note(process, time_s, "isend_done", each.number)
                elif each.kind == "collective":
                    self._engine.note(process, time_s, "met", each.partner, each.size_B, each.number, *each.members)
            self._engine.leave(process, time_s, step.call)

        self._when(requests, end)

    def _when(self, requests: Sequence[Request], then: Callable[[float], None]) -> None:
        """Call ``then`` with the time at which the last of the requests is done, and not before now."""
        open_ones = [each for each in requests if each.done_s is None]
        left = len(open_ones)

        def finish() -> None:
            then(max([self._engine.now, *(each.done_s or 0.0 for each in requests)]))

        def told() -> None:
            nonlocal left
            left -= 1
            if not left:
                finish()

        for each in open_ones:
            each.told = told
        if not open_ones:
            finish()

    def _start(self, process: Process, to: int, size_B: int, tag: int, *, synchronous: bool = False) -> Request:
        """Put a message on its way, or announce it."""
        source, network = process.rank, self._network
        request = Request("send", to, tag, size_B)
        eager = size_B <= network.eager_B and not synchronous
        begin = self._engine.now + network.overhead_s
        latency = self._link(source, to)[0]
        self._count += 1
        late = network.outlier(self._count) if network.outlier else 0.0
        if eager:
            request.done_s = begin + size_B / network.inner_bandwidth
            there = self._moved(source, to, size_B, begin)[1] + late
        else:
            there = begin + latency + late
        there = self._last_s[source, to] = max(there, self._last_s.get((source, to), 0.0))
        self._engine.at(there, self._arrive, to, _Message(source, request, eager))
        return request

    def _link(self, source: int, to: int) -> tuple[float, float]:
        """Return latency and bandwidth between two ranks."""
        network, host = self._network, self._engine.host
        if host[source] == host[to]:
            return network.inner_latency_s, network.inner_bandwidth
        return network.latency_s, network.bandwidth

    def _moved(self, source: int, to: int, size_B: int, begin_s: float) -> tuple[float, float]:
        """Return when data have left the sender and when they are at the receiver; busy links delay them."""
        latency, bandwidth = self._link(source, to)
        seconds = size_B / bandwidth
        here, there = self._engine.host[source], self._engine.host[to]
        if here == there or not self._network.contention:
            return begin_s + seconds, begin_s + latency + seconds
        begin_s = max(begin_s, self._out_s[here])
        self._out_s[here] = begin_s + seconds
        self._in_s[there] = max(begin_s + latency, self._in_s[there]) + seconds
        return begin_s + seconds, self._in_s[there]

    def _post(self, process: Process, source: int, tag: int) -> Request:
        """Post a receive: the first message that fits is its own."""
        request = Request("receive", source, tag)
        box = self._boxes[process.rank]
        for place, message in enumerate(box.arrived):
            if source in (ANY, message.source) and tag == message.sent.tag:
                del box.arrived[place]
                self._match(message, request)
                return request
        box.posted.append(request)
        return request

    def _arrive(self, to: int, message: _Message) -> None:
        """Give a message, or its announcement, to the first receive that fits."""
        box = self._boxes[to]
        for place, request in enumerate(box.posted):
            if request.partner in (ANY, message.source) and request.tag == message.sent.tag:
                del box.posted[place]
                self._match(message, request)
                return
        box.arrived.append(message)

    def _match(self, message: _Message, receive: Request) -> None:
        sent, now = message.sent, self._engine.now
        to = sent.partner
        receive.partner, receive.size_B = message.source, sent.size_B
        if message.eager:
            receive.complete(now)
            return
        begin = now + self._link(message.source, to)[0]
        left, there = self._moved(message.source, to, sent.size_B, begin)
        sent.complete(left)
        receive.complete(there)
