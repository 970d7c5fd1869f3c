"""A program that feeds devices, run in virtual time; times are whole nanoseconds."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

US, MS = 1_000, 1_000_000
LATENCY = 4 * US  # from the end of a launch to the begin of what it launches
RETURN = 5 * US  # from the end of the device's work to the return of a call that waits for it
PREPARED = 0.6  # of a launch's cost the host spends before the call


@dataclass(frozen=True)
class Program:
    """What every rank does in each step; ``kernels`` are lengths, ``speed`` multiplies them by rank.

    ``bursts`` are lengths of communications, spread over the last half of the kernels where they are ``overlapped``,
    behind all of them otherwise. ``wait_every`` so many kernels the host reads a result. ``in_turns`` the kernels of a
    step go to two devices, and the host waits for each of them.
    """

    ranks: int
    steps: int
    kernels: tuple[int, ...]
    speed: tuple[float, ...]
    launch: int = 6 * US
    bursts: tuple[int, ...] = ()
    overlapped: bool = True
    load: int = 0
    host: int = 0
    host_ahead: bool = False
    copy: int = 0
    pageable: bool = False
    wait_every: int = 0
    allocations: int = 0
    allocation: int = 0
    in_turns: bool = False
    at_once: bool = False
    seed: int = 0
    noise: float = 0.0

    def vary(self, length: int, *place: int) -> int:
        """Return a length with noise that depends on the place in the program alone, not on what else happens."""
        if not self.noise:
            return length
        return int(length * random.Random(f"{self.seed} {place}").uniform(1 - self.noise, 1 + self.noise))


@dataclass
class Event:
    """One event of a trace."""

    name: str
    category: str
    start: int
    end: int
    track: int
    link: int = -1
    device: int = 0
    group: str = ""


@dataclass
class Rank:
    """A host thread and its devices: the host's clock, when each stream is free, and what was recorded."""

    number: int
    now: int = 0
    free: dict[tuple[int, int], int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    links: int = 0
    pending: list[Event] = field(default_factory=list)

    def call(self, name: str, length: int, category: str = "cuda_runtime", link: int = -1) -> None:
        """Spend time in a call."""
        self.events.append(Event(name, category, self.now, self.now + length, 1, link))
        self.now += length

    def launch(
        self, name: str, length: int, cost: int, stream: int, device: int = 0, behind: tuple[int, ...] = ()
    ) -> Event:
        """Launch an activity of a stream, behind what that stream and others (``behind``) have in hand."""
        self.now += int(cost * PREPARED)
        self.links += 1
        self.call("cudaLaunchKernel", cost - int(cost * PREPARED), link=self.links)
        ready = max([self.now + LATENCY, *(self.free.get((device, each), 0) for each in (stream, *behind))])
        category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        made = Event(name, category, ready, ready + length, stream, self.links, device)
        self.free[device, stream] = made.end
        self.events.append(made)
        return made

    def wait(self, device: int | None = None, name: str = "cudaStreamSynchronize") -> None:
        """Wait for a device, or for all."""
        done = max((end for (each, _), end in self.free.items() if device in (None, each)), default=0)
        self.call(name, max(done - self.now, 0) + RETURN)


COMPUTE, COMMUNICATE = 7, 20


def run_program(program: Program) -> tuple[list[Rank], int]:
    """Return what each rank recorded, and how long the run takes."""
    ranks = [Rank(number) for number in range(program.ranks)]
    for rank in ranks:
        for device in (0, 1) if program.in_turns else (0,):
            rank.launch("warm_up", 100 * US, program.launch, COMPUTE, device)
    for step in range(program.steps):
        begun = [rank.now for rank in ranks]
        for rank in ranks:
            _prepare_step(program, rank)
        _compute_step(program, ranks, step)
        for rank, start in zip(ranks, begun, strict=True):
            rank.launch("multi_tensor_apply_kernel", 80 * US, program.launch, COMPUTE, behind=(COMMUNICATE,))
            if program.host_ahead:
                rank.now += program.host
            rank.events.append(Event(f"ProfilerStep#{step}", "user_annotation", start, rank.now, 1))
    for rank in ranks:
        rank.wait(name="cudaDeviceSynchronize")
    return ranks, max(event.end for rank in ranks for event in rank.events)


def _prepare_step(program: Program, rank: Rank) -> None:
    """Load data, work on the host, allocate, copy."""
    if program.load:
        rank.call("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", program.load, "user_annotation")
    if not program.host_ahead:
        rank.now += program.host
    for _ in range(program.allocations):
        rank.call("cudaMalloc", program.allocation)
    if program.copy and program.pageable:
        rank.links += 1
        start = max(rank.now + LATENCY, rank.free.get((0, COMPUTE), 0))
        copied = Event(
            "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", start, start + program.copy, COMPUTE, rank.links
        )
        rank.free[0, COMPUTE] = copied.end
        rank.events.append(copied)
        rank.call("cudaMemcpyAsync", copied.end + RETURN - rank.now, link=rank.links)
    elif program.copy:
        rank.launch("Memcpy HtoD (Pinned -> Device)", program.copy, program.launch, COMPUTE)


def _compute_step(program: Program, ranks: list[Rank], step: int) -> None:
    """Launch the kernels, and the communications where their data are ready."""
    count = len(program.kernels)
    places = _place_bursts(program, count)
    for n, length in enumerate(program.kernels):
        for rank in ranks:
            device = n % 2 if program.in_turns else 0
            kernel = program.vary(int(length * program.speed[rank.number]), rank.number, step, n)
            cost = program.vary(program.launch, rank.number, step, n, 1)
            rank.launch(f"gemm_{n % 5}", kernel, cost, COMPUTE, device)
            if program.in_turns and not program.at_once:
                rank.wait(device, "cudaDeviceSynchronize")
            if program.wait_every and n % program.wait_every == program.wait_every - 1:
                rank.wait()
        for burst in (length for place, length in zip(places, program.bursts, strict=True) if place == n):
            members = [
                rank.launch("ncclDevKernel_AllReduce_Sum_f32", burst, program.launch, COMMUNICATE, behind=(COMPUTE,))
                for rank in ranks
            ]
            done = max(member.start for member in members) + burst
            for rank, member in zip(ranks, members, strict=True):
                member.end, member.group = done, "0"
                rank.free[0, COMMUNICATE] = done


def _place_bursts(program: Program, kernels: int) -> list[int]:
    """Return behind which kernel each communication comes."""
    count = len(program.bursts)
    if not program.overlapped:
        return [kernels - 1] * count
    return [kernels // 2 + (number + 1) * (kernels - kernels // 2) // (count + 1) - 1 for number in range(count)]
