"""The seconds of every measure by phase, region, location and iteration: pieces and calls added up in cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.grouping import sum_by_group

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.categories import CategorySeconds
    from advisor.trace.events import Trace
    from advisor.trace.nesting import Calls
    from advisor.trace.tables import CellLayout
    from advisor.trace.time_pieces import TimePieces


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
