"""The seconds of every measure by phase, region, location and iteration: pieces, added up by call, and calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.grouping import sum_by_group
from advisor.trace.events import Role, Trace
from advisor.trace.locations import are_first_threads
from advisor.trace.nesting import Calls, roles_of_regions

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.categories import CategorySeconds
    from advisor.trace.tables import CellLayout
    from advisor.trace.time_pieces import TimePieces

#: What seconds in no phase are, in the order of ``PieceTotals.outside_s``.
OUTSIDE: Final = ("start-up", "shutdown", "idle", "not running", "measurement")


def sum_measures(
    trace: Trace,
    calls: Calls,
    pieces: TimePieces,
    place: IntArray,
    split: CategorySeconds,
    table: CellLayout,
    *,
    compiled: bool,
) -> dict[str, FloatArray]:
    """Return the flat arrays of all measures; ``place`` are the places of the pieces (``PieceTotals``)."""
    names = ("wait_s", "sync_s", "transfer_s", "io_s", *(("os_s",) if trace.cpu_timed else ()))
    book = _book_by_loop if compiled else _book_columns
    wall, booked = book(calls, pieces, place, split, table, names)
    flat = {"wall_s": wall, **dict(zip(names, booked, strict=True))}
    if trace.cpu_timed:
        flat["cpu_s"] = wall - reduce(add, booked)
    return flat


def _book_columns(
    calls: Calls, pieces: TimePieces, place: IntArray, split: CategorySeconds, table: CellLayout, names: Sequence[str]
) -> tuple[FloatArray, Sequence[FloatArray]]:
    """Return the cells of the wall time, and those of the measures of these names."""
    inside = np.flatnonzero(place >= 0)
    row = table.row_of_call[pieces.call[inside]]
    cell = table.find_cells(row, pieces.instance[inside], pieces.location[inside])
    wall = sum_by_group(cell, pieces.seconds[inside], table.size)
    some = np.flatnonzero(split.wait_s + split.sync_s + split.transfer_s + split.io_s + split.os_s != 0)
    call = split.call[some]
    cell = table.find_cells(table.row_of_call[call], split.instance[some], calls.location[call])
    return wall, [sum_by_group(cell, getattr(split, name)[some], table.size) for name in names]


def _book_by_loop(
    calls: Calls, pieces: TimePieces, place: IntArray, split: CategorySeconds, table: CellLayout, names: Sequence[str]
) -> tuple[FloatArray, Sequence[FloatArray]]:
    """Return what ``_book_columns`` does, by compiled loops."""
    from advisor.trace import compiled_attribution_loops

    base = table.base[:-1] - table.first_of
    layout = table.present, table.find_starts(), base, table.phase_of, table.iteration_of, table.iterations
    size = len(table.rows), table.locations
    wall, booked = np.zeros(table.size), np.zeros((len(names), table.size))
    compiled_attribution_loops.add_piece_seconds(
        place, pieces.location, pieces.instance, pieces.seconds, layout, size, wall
    )
    seconds = split.wait_s, split.sync_s, split.transfer_s, split.io_s, split.os_s
    compiled_attribution_loops.add_call_seconds(
        (split.call, split.instance), (table.row_of_call, calls.location), seconds, layout, size, booked
    )
    return wall, list(booked)


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
    parts = ((pieces.before_s != 0) | init, pieces.after_s != 0, none & ~first_threads, none & first_threads, measuring)
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
    some = np.flatnonzero((seconds != 0) & (pieces.call >= 0))
    return sum_by_group(pieces.call[some], seconds[some], len(calls.region))
