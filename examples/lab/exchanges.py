"""Phases in which ranks exchange data with neighbours: stencils, irregular graphs, shifts, wavefronts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lab.operations import Enter, Irecv, Isend, Leave, Recv, Send, Sendrecv, Wait
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    from lab.operations import Program
    from lab.world import World


@lru_cache(maxsize=256)
def grid(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Return the sides of the most cubic grid of so many dimensions."""
    if dimensions == 1:
        return (ranks,)
    target = ranks ** (1 / dimensions)
    side = min((each for each in range(1, ranks + 1) if ranks % each == 0), key=lambda each: abs(each - target))
    return (*grid(ranks // side, dimensions - 1), side)


@lru_cache(maxsize=4096)
def stencil(ranks: int, dimensions: int, rank: int, periodic: bool) -> tuple[tuple[int, int, int], ...]:
    """Return for each direction whom a rank sends to, whom it receives from (-1: nobody), and its coordinate there."""
    sides, pairs, stride = grid(ranks, dimensions), [], 1
    for side in sides:
        here = rank // stride % side
        for step in (1, -1):
            ends = []
            for there in (here + step, here - step):
                inside = side > 1 and (0 <= there < side or (periodic and side > 2))
                ends.append(rank + (there % side - here) * stride if inside else -1)
            pairs.append((ends[0], ends[1], here))
        stride *= side
    return tuple(pairs)


@lru_cache(maxsize=64)
def graph(ranks: int, degree: int, seed: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the partners of each rank in an irregular graph, each with the number of the edge, in that order."""
    generator = np.random.default_rng([seed, ranks])
    edges = {(rank, rank + 1) for rank in range(ranks - 1)}
    for rank, other in generator.integers(ranks, size=(ranks * max(degree - 2, 0) // 2, 2)).tolist():
        if rank != other:
            edges.add((min(rank, other), max(rank, other)))
    partners: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    for number, (one, other) in enumerate(sorted(edges, key=lambda edge: (edge[0] % 2, edge))):
        partners[one].append((other, number))
        partners[other].append((one, number))
    return tuple(tuple(each) for each in partners)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange(Phase):
    """Work and an exchange with the neighbours of a grid of ``dimensions`` or (0) of an irregular graph.

    Messages depend on the share ``boundary`` of the work; the share ``inner`` is independent of them; the rest needs
    what was received. The first ``late`` of each hundred ranks do the inner work before they send; with ``wait_early``
    the others wait for their messages before they do it. ``style`` is "nonblocking", "sendrecv", "blocking" or
    "chain": each rank sends to the next one, does the inner work and receives then. A message to a neighbour comes in
    ``fragments``.
    """

    exchange: str = "exchange_halo"
    dimensions: int = 2
    periodic: bool = False
    degree: int = 4
    style: str = "nonblocking"
    size_B: int = 8192
    fragments: int = 1
    boundary: float = 0.0
    inner: float = 0.0
    late: int = 0
    wait_early: bool = True
    synchronous: bool = False

    def __post_init__(self) -> None:
        if self.boundary + self.inner > 1.0 + 1e-9:
            raise ValueError("the parts of the work are more than the whole")

    def regions(self) -> tuple[str, ...]:
        """Return the regions that compute and exchange."""
        return (self.name, self.exchange)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield work and exchange of a rank."""
        seconds = world.seconds(self, rank, iteration)
        inner = seconds * self.inner
        late = rank % 100 * 37 % 100 < self.late
        yield from computing(self.name, seconds * self.boundary + (inner if late else 0.0))
        if self.style == "chain":
            yield from self._chain(world, rank, 0.0 if late else inner)
        elif self.style == "nonblocking":
            yield from self._nonblocking(world, rank, 0.0 if late or self.wait_early else inner)
            yield from computing(self.name, inner if not late and self.wait_early else 0.0)
        else:
            yield Enter(self.exchange)
            yield from self._blocking(world, rank)
            yield Leave(self.exchange)
            yield from computing(self.name, 0.0 if late else inner)
        yield from computing(self.name, seconds * (1.0 - self.boundary - self.inner))

    def _partners(self, world: World, rank: int) -> list[tuple[int, int, int, int]]:
        """Return whom to send to, the tag, whom to receive from, the tag; -1 is nobody."""
        if self.dimensions:
            pairs = stencil(world.ranks, self.dimensions, rank, self.periodic)
            return [(to, way, source, way) for way, (to, source, _) in enumerate(pairs)]
        return [(other, edge, other, edge) for other, edge in graph(world.ranks, self.degree, world.code.seed)[rank]]

    def _nonblocking(self, world: World, rank: int, inner: float) -> Program:
        yield Enter(self.exchange)
        partners, requests = self._partners(world, rank), 0
        for part in range(self.fragments):
            for _, _, source, tag in partners:
                if source >= 0:
                    yield Irecv(source, requests, tag * 1000 + part)
                    requests += 1
        for part in range(self.fragments):
            for to, tag, _, _ in partners:
                if to >= 0:
                    yield Isend(to, self.size_B // self.fragments, requests, tag * 1000 + part)
                    requests += 1
        if inner > 0:
            yield Leave(self.exchange)
            yield from computing(self.name, inner)
            yield Enter(self.exchange)
        yield Wait(tuple(range(requests)))
        yield Leave(self.exchange)

    def _blocking(self, world: World, rank: int) -> Program:
        """Exchange by Sendrecv in each direction, or by sends and receives of which the even ones send first."""
        size = self.size_B // self.fragments
        ways = stencil(world.ranks, self.dimensions, rank, self.periodic) if self.dimensions else ()
        for number, (to, tag, source, _) in enumerate(self._partners(world, rank)):
            first = ways[number][2] % 2 == 0 if ways else rank < to
            for part in range(self.fragments):
                if self.style == "sendrecv":
                    yield Sendrecv(to, size, source, tag * 1000 + part)
                    continue
                for sends in (first, not first):
                    if sends and to >= 0:
                        yield Send(to, size, tag * 1000 + part, self.synchronous)
                    elif not sends and source >= 0:
                        yield Recv(source, tag * 1000 + part)

    def _chain(self, world: World, rank: int, between: float) -> Program:
        yield Enter(self.exchange)
        if rank < world.ranks - 1:
            yield Send(rank + 1, self.size_B, 0, self.synchronous)
        yield Leave(self.exchange)
        yield from computing(self.name, between)
        yield Enter(self.exchange)
        if rank:
            yield Recv(rank - 1, 0)
        yield Leave(self.exchange)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wavefront(Phase):
    """A pipeline: each of ``blocks`` needs what the ranks before computed of it, in one or two dimensions."""

    pass_on: str = "pass_on_face"
    dimensions: int = 1
    blocks: int = 8
    size_B: int = 65536

    def regions(self) -> tuple[str, ...]:
        """Return the regions that compute and communicate."""
        return (self.name, self.pass_on)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the blocks of a rank."""
        seconds = world.seconds(self, rank, iteration) / self.blocks
        forward = stencil(world.ranks, self.dimensions, rank, False)[::2]
        size = math.ceil(self.size_B / self.blocks)
        for _ in range(self.blocks):
            yield Enter(self.pass_on)
            for way, (_, source, _) in enumerate(forward):
                if source >= 0:
                    yield Recv(source, way)
            yield Leave(self.pass_on)
            yield from computing(self.name, seconds)
            yield Enter(self.pass_on)
            for way, (to, _, _) in enumerate(forward):
                if to >= 0:
                    yield Send(to, size, way)
            yield Leave(self.pass_on)
