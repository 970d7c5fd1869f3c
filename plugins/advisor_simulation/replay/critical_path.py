"""The critical path of a replay: from its end back to what each moment waited for.

Its pieces fill the run from beginning to end without gaps. Counted in computation, latencies and bytes they are the
coefficients of the paper's formula at this point: T = alpha + beta L + gamma / BW (seed 002, section 2.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor_simulation.replay.steps import INNER, WAITING, Step

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.engine import OrderedSteps, ReplayRun
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The pieces of the critical path from begin to end: ``op`` (operation), ``seconds``, ``latencies``, ``bytes``.

    ``rank`` is whose time a piece is; what travels counts for the operation that waits for it. ``begin_s`` is when the
    first piece begins: the rank's own start.
    """

    op: IntArray
    rank: IntArray
    seconds: FloatArray
    latencies: FloatArray
    bytes: FloatArray
    begin_s: float

    @property
    def beta(self) -> float:
        """Latencies on the path that nothing overlaps."""
        return float(self.latencies.sum())

    @property
    def gamma(self) -> float:
        """Bytes on the path that nothing overlaps."""
        return float(self.bytes.sum())

    @property
    def alpha(self) -> float:
        """Seconds on the path that do not depend on latency and bandwidth."""
        return math.fsum([self.begin_s, *self.seconds[(self.latencies == 0) & (self.bytes == 0)].tolist()])


def find_critical_path(plan: OrderedSteps, found: ReplayRun, network: Network, program: Program) -> CriticalPath:
    """Return the critical path of ``found``."""
    # For each condition the step that fulfilled it, of arrivals the latest
    steps = plan.steps
    writing = np.flatnonzero((steps.condition >= 0) & ~np.isin(steps.kind & (INNER - 1), WAITING))
    writing = writing[np.argsort(found.end_s[writing], kind="stable")]
    writers = np.full(2 * steps.messages + len(steps.arrivals), -1, dtype=np.int64)
    writers[steps.condition[writing]] = writing
    walked = _walk_back(plan, found, network, writers)
    step, seconds, latencies, sizes = (np.array(column[::-1]) for column in walked[:4])
    step = step.astype(np.int64)
    op = np.searchsorted(np.maximum.accumulate(plan.steps.last), step)
    return CriticalPath(op, program.rank[op], seconds, latencies, sizes, walked[4])


def _walk_back(
    plan: OrderedSteps, found: ReplayRun, network: Network, writers: IntArray
) -> tuple[list[int], list[float], list[float], list[float], float]:
    """Return steps, seconds, latencies and bytes of the pieces, the last one first, and when the first one begins."""
    walker = _PathWalker(plan, found, network, writers)
    rank = int(found.clock.argmax())
    at = int(plan.steps.first[rank + 1]) - 1
    begins = set(plan.steps.first[:-1].tolist())
    here = float(found.clock[rank])
    begin = float(plan.steps.start_s[rank])
    while at >= 0 and plan.steps.first[rank] <= at:
        at, here, jumped = walker.walk_step(at, here)
        if jumped:
            rank = int(np.searchsorted(plan.steps.first, at, side="right")) - 1
        elif at in begins:
            begin = float(plan.steps.start_s[rank])
            break
        else:
            at -= 1
    return walker.steps, walker.seconds, walker.latencies, walker.bytes, begin


class _PathWalker:
    """Goes back step by step, and notes the pieces."""

    def __init__(self, plan: OrderedSteps, found: ReplayRun, network: Network, writers: IntArray) -> None:
        self._kind, self._value, self._condition = plan.steps.kind, plan.steps.value, plan.steps.condition
        self._costs, self._inner_shape = plan.steps.costs, plan.steps.inner_shape
        self._first, self._start = plan.steps.first, plan.steps.start_s
        self._found, self._writers = found, writers
        self._on_processor = network.startup == "processor"
        self._latency = network.latencies if self._on_processor else (0.0, 0.0)
        self.steps: list[int] = []
        self.seconds: list[float] = []
        self.latencies: list[float] = []
        self.bytes: list[float] = []

    def walk_step(self, at: int, here: float) -> tuple[int, float, bool]:
        """Note the piece that ends at ``here`` with a step; return the step it began with, when, and if it jumped."""
        kind = int(self._kind[at]) % INNER
        if kind in WAITING and self._found.waited[at]:
            return self._follow_message(at, kind, here)
        begin = self._step_begin(at)
        moving = kind in (Step.SEND, Step.ANNOUNCE, Step.RECEIVE, Step.ACCEPT)
        if here > begin or moving:
            self._add_piece(at, here - begin, float(moving and self._on_processor), 0.0)
        return at, begin, False

    def _step_begin(self, at: int) -> float:
        """Return when a step began."""
        rank = int(np.searchsorted(self._first, at, side="right")) - 1
        return float(self._start[rank]) if at == self._first[rank] else float(self._found.end_s[at - 1])

    def _add_piece(self, at: int, seconds: float, latencies: float, size: float) -> None:
        outer = int(self._kind[at]) < INNER
        self.steps.append(at)
        self.seconds.append(seconds)
        self.latencies.append(latencies if outer else 0.0)
        self.bytes.append(size if outer else 0.0)

    def _follow_message(self, at: int, kind: int, here: float) -> tuple[int, float, bool]:
        """Note what travelled, and go on where it set out."""
        condition = int(self._condition[at])
        other, then = self._written_time(int(self._writers[condition]))
        flight = 0.0 if self._on_processor else 1.0
        if kind == Step.ACCEPT:
            ready, since = self._written_time(int(self._writers[condition + 1]))
            if since > then:
                other, then = ready, since
        if kind in (Step.RECEIVE, Step.ACCEPT):
            self._add_piece(at, here - then, flight, float(self._value[at]))
        elif kind == Step.LEAVE:
            shape = int(self._value[at])
            latencies, size = self._costs[shape] * (not self._inner_shape[shape])
            self._add_piece(at, here - then, float(latencies), float(size))
        elif here > then:
            self._add_piece(at, here - then, 0.0, 0.0)
        if int(self._kind[other]) % INNER == Step.READY:
            begin = float(self._found.end_s[other])
            self._add_piece(other, then - begin, float(self._on_processor), 0.0)
            then = begin
        return other, then, True

    def _written_time(self, writer: int) -> tuple[int, float]:
        """Return a writing step, and the time that it wrote."""
        told = float(self._found.end_s[writer])
        if int(self._kind[writer]) % INNER == Step.READY:
            told += self._latency[int(self._kind[writer]) // INNER]
        return writer, told
