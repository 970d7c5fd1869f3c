"""Index of (region, processor, instance) into the arrays of the phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.grouping import number_values
from advisor.trace.locations import are_first_threads
from advisor.trace.teams import TEAM_ROLES

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor.trace.events import Trace
    from advisor.trace.nesting import Calls


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
        local = np.searchsorted(self.present, phase * len(self.rows) + row) - self.find_starts()[phase]
        place = (local * self.locations + location) * self.iterations[phase]
        return np.asarray((self.base[:-1] - self.first_of)[phase] + place + self.iteration_of[instance])

    def find_starts(self) -> IntArray:
        """Return (phases + 1,) where each phase begins among those rows that are ``present``."""
        return np.searchsorted(self.present, np.arange(len(self.phase_rows) + 1) * len(self.rows))

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.base[-1])


def number_rows(trace: Trace, calls: Calls) -> tuple[IntArray, IntArray]:
    """Return ``rows`` and ``row_of_call`` of ``CellLayout``."""
    worker = ~are_first_threads(trace)[calls.location]
    return number_values(shown_regions(trace, calls) * 2 + (worker | calls.threaded), 2 * len(trace.regions))


def build_cell_layout(
    rows: tuple[IntArray, IntArray], place: IntArray, locations: int, phase_of: IntArray, iteration_of: IntArray,
    part: slice,
) -> CellLayout:  # fmt: skip
    """Return where the seconds of ``part`` of the instances are booked: rows of regions, phases, iterations.

    ``rows`` are those of ``number_rows``, ``place`` those of the pieces of ``locations`` locations (``PieceTotals``).
    """
    count = len(rows[0])
    phase_count = int(phase_of.max(initial=-1)) + 1
    present, _ = number_values(place[place >= 0], phase_count * count)
    phase_rows = tuple(
        present[np.searchsorted(present, p * count) : np.searchsorted(present, (p + 1) * count)] - p * count
        for p in range(phase_count)
    )
    iterations = np.bincount(phase_of[part], minlength=phase_count)
    first_of = np.bincount(phase_of[: part.start], minlength=phase_count)
    sizes = np.array([len(each) for each in phase_rows], dtype=np.int64) * locations * iterations
    base = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    return CellLayout(*rows, present, phase_of, iteration_of, first_of, phase_rows, base, locations, iterations)


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
