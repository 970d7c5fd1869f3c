"""The seconds of pieces added up by call and, outside the phases, by location; and where the others are booked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.grouping import sum_by_group
from advisor.trace.events import Role, Trace
from advisor.trace.locations import are_first_threads
from advisor.trace.nesting import Calls, roles_of_regions

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.time_pieces import TimePieces

#: What seconds in no phase are, in the order of ``PieceTotals.outside_s``.
OUTSIDE: Final = ("start-up", "shutdown", "idle", "not running", "measurement")


@dataclass(frozen=True, slots=True)
class PieceTotals:
    """Sums of pieces.

    ``by_call_s`` (3, calls) are what lies inside the instances, of calls that claim their time, and before and after
    them. ``outside_s`` (5, locations) lie in no phase, and are what ``OUTSIDE`` says. ``place`` (pieces,) is phase *
    rows + row of each piece in a phase, and else -1.
    """

    by_call_s: FloatArray
    outside_s: FloatArray
    place: IntArray


def sum_pieces(
    trace: Trace,
    calls: Calls,
    pieces: TimePieces,
    row_of_call: IntArray,
    rows: int,
    phase_of: IntArray,
    *,
    compiled: bool,
) -> PieceTotals:
    """Return the sums; ``row_of_call`` are ``rows`` different ones, ``phase_of`` (instances,) their phases."""
    if not compiled:
        return _sum_columns(trace, calls, pieces, row_of_call, rows, phase_of)
    from advisor.trace import compiled_attribution_loops

    by_call, outside = np.zeros((3, len(calls.region))), np.zeros((len(OUTSIDE), len(trace.locations)))
    place = np.empty(len(pieces.call), dtype=np.int64)
    role = roles_of_regions(trace)[calls.region]
    columns = pieces.location, pieces.call, pieces.instance, pieces.seconds, pieces.before_s, pieces.after_s
    compiled_attribution_loops.sum_pieces(
        columns, (role, calls.anchor, row_of_call), are_first_threads(trace), phase_of, rows, by_call, outside, place
    )
    return PieceTotals(by_call, outside, place)


def _sum_columns(
    trace: Trace, calls: Calls, pieces: TimePieces, row_of_call: IntArray, rows: int, phase_of: IntArray
) -> PieceTotals:
    """Return the sums by whole columns."""
    inside, before, after = (_sum_by_call(calls, pieces, seconds) for seconds in _seconds_of(pieces))
    role = np.r_[roles_of_regions(trace)[calls.region], -1][pieces.call]
    none, first_threads = pieces.call < 0, are_first_threads(trace)[pieces.location]
    init, measuring = role == Role.INIT, role == Role.TOOL
    parts = (
        (pieces.before_s != 0) | init,
        pieces.after_s != 0,
        none & ~first_threads,
        none & first_threads,
        measuring,
    )
    seconds = pieces.before_s + np.where(init, pieces.seconds, 0.0), pieces.after_s, *(pieces.seconds,) * 3
    outside = [
        sum_by_group(pieces.location[chosen], each[chosen], len(trace.locations))
        for chosen, each in zip(parts, seconds, strict=True)
    ]
    place = phase_of[pieces.instance] * rows + np.r_[row_of_call, 0][pieces.call]
    return PieceTotals(
        by_call_s=np.stack((np.where(calls.anchor < 0, 0.0, inside), before, after)),
        outside_s=np.stack(outside),
        place=np.where(none | init | measuring, -1, place),
    )


def _seconds_of(pieces: TimePieces) -> tuple[FloatArray, FloatArray, FloatArray]:
    return pieces.seconds, pieces.before_s, pieces.after_s


def _sum_by_call(calls: Calls, pieces: TimePieces, seconds: FloatArray) -> FloatArray:
    """Return the sums of some seconds of the pieces by call."""
    some = np.flatnonzero((seconds != 0) & (pieces.call >= 0))
    return sum_by_group(pieces.call[some], seconds[some], len(calls.region))
