"""The part of a run between start-up and shutdown: behind the call that sets MPI up, before the one that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Role
from advisor.trace.regions import classify_region
from advisor_simulation.replay.program import Op, Program
from advisor_simulation.replay.waits import operation_starts

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ComputingSpan:
    """The first and the last operation of each rank between start-up and shutdown (ranks,), both included."""

    first: IntArray
    last: IntArray


def find_computing_span(program: Program) -> ComputingSpan:
    """Return the span of each rank: all of it where no start-up or shutdown is recorded."""
    role = np.array([*(classify_region(name)[1] for name in program.names), Role.USER], dtype=np.int64)[program.call]
    first, last = program.first[:-1].copy(), program.first[1:] - 1
    for rank, (low, high) in enumerate(zip(program.first[:-1].tolist(), program.first[1:].tolist(), strict=True)):
        setting = low + np.flatnonzero(role[low:high] == Role.INIT)
        ending = low + np.flatnonzero(role[low:high] == Role.FINALIZE)
        if len(setting) and setting[-1] + 1 < high:
            first[rank] = setting[-1] + 1
        if len(ending) and ending[0] - 1 >= first[rank]:
            last[rank] = ending[0] - 1
    return ComputingSpan(first, np.maximum(last, first))


def longest_span_s(program: Program, end_s: FloatArray, span: ComputingSpan) -> float:
    """Return how long the rank with the longest span takes for it, seconds: never less than it computes."""
    return float((end_s[span.last] - operation_starts(program, end_s)[span.first]).max())


def span_computing_s(program: Program, end_s: FloatArray, span: ComputingSpan) -> FloatArray:
    """Return the seconds each rank computes within its span (ranks,)."""
    spent = (end_s - operation_starts(program, end_s)) * (program.op == Op.BURST)
    total = np.r_[0.0, np.cumsum(spent)]
    result: FloatArray = total[span.last + 1] - total[span.first]
    return result
