"""Threads that start late because they share a core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import FloatArray, IntArray, Note
from advisor.trace.events import Kind, Trace
from advisor.trace.locations import are_first_threads, ranks_of_locations
from advisor.trace.nesting import roles_of_regions
from advisor.trace.teams import TEAM_ROLES

if TYPE_CHECKING:
    import numpy.typing as npt

#: Late starts of the first thread are worth a word from this share of the trace on.
LEAST: Final = 0.03
PENALTY: Final = 0.3


def note_late_starts(trace: Trace) -> Note | None:
    """Return a note on ranks whose first thread begins parallel regions long after others of its team; else None.

    A team is started by its first thread. If that one then waits while another works, they share a core: launchers
    that bind each process to one core do that. Where CPU clocks were read, they tell who had no core, and why.
    """
    if trace.cpu_timed:
        return None
    process = ranks_of_locations(trace)
    parallel = np.isin(roles_of_regions(trace), TEAM_ROLES)
    if not parallel.any() or len(np.unique(process)) == len(process):
        return None
    length = float(np.ptp(trace.time_s))
    late = {int(rank): _late_seconds(trace, np.flatnonzero(process == rank), parallel) for rank in np.unique(process)}
    worst = max(late, key=lambda rank: late[rank])
    if late[worst] < LEAST * length:
        return None
    threads = int(np.bincount(process).max())
    still = f"{late[worst] / length:.0%} of the run"
    text = f"threads share a core: on rank {worst} the first one stood still for {still} while others had begun"
    better = f"mpirun -n {trace.ranks} --map-by slot:PE={threads} ./PROGRAM, which gives each thread a core of its own"
    return Note("threads share cores", text, PENALTY, better)


def _late_seconds(trace: Trace, members: IntArray, parallel: npt.NDArray[np.bool_]) -> float:
    """Return for how long the first thread of a process was late in the regions that it started, all together."""
    own = are_first_threads(trace)[members]
    if len(members) < 2 or not own.any():
        return 0.0
    first = int(members[own][0])
    begin, end = trace.first[first], trace.first[first + 1]
    forks = trace.time_s[begin:end][trace.kind[begin:end] == Kind.FORK]
    until = np.r_[forks[1:], np.inf]
    others = [
        _first_begins(forks, until, _region_enter_times(trace, int(member), parallel)) for member in members[~own]
    ]
    mine = _first_begins(forks, until, _region_enter_times(trace, first, parallel))
    late = mine - np.min(others, axis=0)
    return float(late[np.isfinite(mine) & (late > 0)].sum())


def _region_enter_times(trace: Trace, location: int, parallel: npt.NDArray[np.bool_]) -> FloatArray:
    """Return when a thread enters regions of teams."""
    begin, end = trace.first[location], trace.first[location + 1]
    region = trace.region[begin:end]
    enters = (trace.kind[begin:end] == Kind.ENTER) & (region >= 0)
    times: FloatArray = trace.time_s[begin:end][enters][parallel[region[enters]]]
    return times


def _first_begins(forks: FloatArray, until: FloatArray, begins: FloatArray) -> FloatArray:
    """Return the first of ``begins`` after each fork and before the one behind it; infinite where there is none."""
    found = np.r_[begins, np.inf][np.searchsorted(begins, forks)]
    return np.where(found < until, found, np.inf)
