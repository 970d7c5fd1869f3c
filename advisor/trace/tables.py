"""Index of (region, processor, instance) into the arrays of the phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.grouping import number_values
from advisor.trace import time_pieces
from advisor.trace.locations import are_first_threads
from advisor.trace.teams import TEAM_ROLES

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor.trace.events import Trace
    from advisor.trace.nesting import Calls
    from advisor.trace.time_pieces import TimePieces


@dataclass(frozen=True, slots=True)
class CellLayout:
    """Index of (row, instance, location) into one flat array of all phases.

    ``rows`` holds region * 2 + threaded of each row in order, ``row_of_call`` the row of every call, ``phase_rows[p]``
    the rows of phase p, and ``base[p]`` its first cell; a phase is (rows, locations, iterations). ``present`` holds
    phase * rows + row for every row of a phase. ``phase_of`` and ``iteration_of`` tell them for each instance, counted
    from ``first_of[p]``.
    """

    rows: IntArray
    row_of_call: IntArray
    present: IntArray
    phase_of: IntArray
    iteration_of: IntArray
    first_of: IntArray
    phase_rows: tuple[IntArray, ...]
    base: IntArray
    locations: int
    iterations: IntArray

    def find_cells(self, row: IntArray, instance: IntArray, location: IntArray) -> IntArray:
        """Return the flat cell of each (row, instance, location)."""
        phase = self.phase_of[instance]
        starts = np.searchsorted(self.present, np.arange(len(self.phase_rows)) * len(self.rows))
        local = np.searchsorted(self.present, phase * len(self.rows) + row) - starts[phase]
        place = (local * self.locations + location) * self.iterations[phase]
        return np.asarray((self.base[:-1] - self.first_of)[phase] + place + self.iteration_of[instance])

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.base[-1])


def build_cell_layout(
    trace: Trace, calls: Calls, pieces: TimePieces, phase_of: IntArray, iteration_of: IntArray, part: slice
) -> CellLayout:
    """Return where the seconds of ``part`` of the instances are booked: rows of regions, phases, iterations."""
    worker = ~are_first_threads(trace)[calls.location]
    shown = shown_regions(trace, calls)
    rows, row_of_call = number_values(shown * 2 + (worker | calls.threaded), 2 * len(trace.regions))
    booked = time_pieces.are_inside_phases(trace, calls, pieces)
    instance, row = pieces.instance[booked], row_of_call[pieces.call[booked]]
    phase_count = int(phase_of.max(initial=-1)) + 1
    present = np.unique(phase_of[instance] * len(rows) + row)
    phase_rows = tuple(
        present[np.searchsorted(present, p * len(rows)) : np.searchsorted(present, (p + 1) * len(rows))] - p * len(rows)
        for p in range(phase_count)
    )
    iterations = np.bincount(phase_of[part], minlength=phase_count)
    first_of = np.bincount(phase_of[: part.start], minlength=phase_count)
    locations = len(trace.locations)
    sizes = np.array([len(each) for each in phase_rows], dtype=np.int64) * locations * iterations
    base = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    return CellLayout(
        rows, row_of_call, present, phase_of, iteration_of, first_of, phase_rows, base, locations, iterations
    )


def shown_regions(trace: Trace, calls: Calls) -> IntArray:
    """Return the region under which each call is shown: its own, or its caller's for nameless parallel regions.

    Tools that do not know where in the source a parallel region stands call all of them the same.
    """
    nameless = np.array([r.role in TEAM_ROLES and r.line is None for r in trace.regions], dtype=bool)
    if not nameless.any():
        return calls.region
    shown, call = calls.region.copy(), np.arange(len(calls.region))
    while (unknown := nameless[shown] & (calls.parent[call] >= 0)).any():
        call = np.where(unknown, calls.parent[call], call)
        shown = np.where(unknown, calls.region[call], shown)
    return shown
