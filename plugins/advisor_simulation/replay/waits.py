"""The components of the time in communication calls: waiting by cause, startup, and transfer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role
from advisor.trace.regions import classify_region
from advisor_simulation.replay.program import POSTING, RECEIVED, SENDING, Op, Program, find_last_ops

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

CAUSES: Final = ("late sender", "late receiver", "collective", "resource")
LATE_SENDER, LATE_RECEIVER, COLLECTIVE, RESOURCE = range(len(CAUSES))


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """Per operation: ``cause`` (index into ``CAUSES``, -1 none), ``seconds`` waited, ``transfer_s`` of the network."""

    cause: IntArray
    seconds: FloatArray
    transfer_s: FloatArray

    def sum_by_cause(self) -> FloatArray:
        """Return seconds per cause, over all ranks."""
        kept = self.cause >= 0
        found: FloatArray = np.bincount(self.cause[kept], self.seconds[kept], minlength=len(CAUSES)).astype(np.float64)
        return found


def operation_starts(program: Program, end_s: FloatArray) -> FloatArray:
    """Return when each operation began: when the one before it on its rank ended."""
    begin = np.zeros(program.ranks) if program.start_s is None else program.start_s
    result: FloatArray = np.r_[0.0, end_s[:-1]]
    filled = np.diff(program.first) > 0
    result[program.first[:-1][filled]] = begin[filled]
    return result


def compute_waits(program: Program, end_s: FloatArray, resource_s: FloatArray | None = None) -> WaitTimes:
    """Return waiting and transfer of every operation that ended at ``end_s``.

    A receive waits for a late sender until the send begins, a send for a late receiver until the receive is posted,
    a member of a collective operation until the last one is there; ``resource_s`` (messages,) is how long
    each message waited for links and buses.
    """
    begin = operation_starts(program, end_s)
    spent = end_s - begin
    cause = np.full(len(spent), -1, dtype=np.int64)
    waited = np.zeros(len(spent))
    op, link = program.op, program.link
    send, post = find_last_ops(program, SENDING), find_last_ops(program, POSTING)
    for kinds, other, why in ((RECEIVED, send, LATE_SENDER), ((Op.SEND, Op.SENT), post, LATE_RECEIVER)):
        at = np.flatnonzero(np.isin(op, kinds))
        cause[at] = why
        waited[at] = np.clip(begin[other[link[at]]] - begin[at], 0.0, spent[at])
    joins = np.flatnonzero(op == Op.JOIN)
    latest = np.zeros(len(program.collectives))
    np.maximum.at(latest, link[joins], begin[joins])
    cause[joins], waited[joins] = COLLECTIVE, np.clip(latest[link[joins]] - begin[joins], 0.0, spent[joins])
    calling = ~np.isin(op, (Op.BURST, Op.FIXED))
    transfer = np.where(calling, spent - waited, 0.0)
    if resource_s is not None:
        cause, waited, transfer = _add_resource_waits(program, (cause, waited, transfer), resource_s)
    return WaitTimes(np.where(waited > 0, cause, -1), waited, transfer)


def _add_resource_waits(
    program: Program, found: tuple[IntArray, FloatArray, FloatArray], resource_s: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Call waiting for links and buses so, where that is longer than waiting for the other rank."""
    cause, waited, transfer = found
    at = np.flatnonzero(np.isin(program.op, RECEIVED))
    held = np.minimum(resource_s[program.link[at]], transfer[at])
    more = held > waited[at]
    cause[at[more]], waited[at[more]] = RESOURCE, held[more]
    transfer[at[more]] -= held[more]
    return cause, waited, transfer


def rank_computing_s(program: Program, end_s: FloatArray) -> FloatArray:
    """Return the seconds that each rank computes (ranks,)."""
    spent = (end_s - operation_starts(program, end_s)) * (program.op == Op.BURST)
    found: FloatArray = np.bincount(program.rank, spent, minlength=program.ranks).astype(np.float64)
    return found


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
