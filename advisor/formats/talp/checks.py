"""Does what TALP wrote agree with itself? Sums over ranks, times inside a region, ranks of each region."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.talp.division import WHOLE

if TYPE_CHECKING:
    from advisor.formats.talp.recording import RegionTotals, TalpRecording
    from advisor.model.records import FloatArray

#: Sums over all ranks; the elapsed time is the largest of all ranks.
_SUMMED: Final = (
    "usefulTime", "mpiTime", "mpiWorkerIdleTime", "ompLoadImbalanceTime", "ompSchedulingTime", "ompSerializationTime",
    "numMeasurements", "numMpiCalls", "numOmpParallels", "numOmpTasks", "instructions", "cycles",
    "gpuRuntimeTime",
)  # fmt: skip
#: Times in which a rank's own thread was not useful; beside threads they do not add up to the elapsed time.
_OPENMP: Final = ("mpiWorkerIdleTime", "ompLoadImbalanceTime", "ompSchedulingTime", "ompSerializationTime")
#: Nanoseconds by which clock readings that follow one another may differ.
_CLOCK_NS: Final = 50.0
#: Of a sum that TALP keeps as floating point.
_FLOAT: Final = 1e-9


def find_contradictions(recording: TalpRecording) -> Iterator[str]:
    """Yield what contradicts something else in ``recording``."""
    rows = {name: n for n, name in enumerate(recording.regions)}
    for total in recording.totals:
        if total.region in rows:
            yield from _check_sums(recording, total, rows[total.region])
        elif any(value > 0 for value in total.values.values()):
            yield f"{total.place}: no rank tells of region {total.region}"
    if recording.totals:
        summed = {total.region for total in recording.totals}
        yield from (f"region {name} has no sums" for name in recording.regions if name not in summed)
    yield from _check_ranks(recording)
    yield from _check_times(recording)


def _check_sums(recording: TalpRecording, total: RegionTotals, row: int) -> Iterator[str]:
    expected = {name: float(recording.values_of(name)[row].sum()) for name in _SUMMED}
    expected["elapsedTime"] = float(recording.values_of("elapsedTime")[row].max())
    for name, value in total.values.items():
        if name in expected and name in recording.values and abs(value - expected[name]) > _FLOAT * value:
            yield f"{total.place}: {name} is {value:.0f}, all ranks together {expected[name]:.0f}"
    listed = float(recording.presence[row].sum())
    if total.values.get("numMpiRanks", listed) not in (listed, 0):
        yield f"{total.place}: {total.values['numMpiRanks']:.0f} ranks announced, {listed:.0f} listed"
    rounded, longest = total.values.get("roundedElapsedTime"), expected["elapsedTime"]
    if rounded is not None and not abs(rounded - longest) <= 0.011 * rounded + 1:
        yield f"{total.place}: {rounded / 1e9:.6g} s for the region, {longest / 1e9:.6g} s on its slowest rank"
    efficiency, found = total.values.get("parallelEfficiency"), compute_efficiencies(recording)[row]
    if efficiency is not None and np.isfinite(found) and abs(efficiency - found) > 0.0151:
        yield f"{total.place}: parallel efficiency {efficiency:.2f}, from the times of all ranks {found:.3f}"


def compute_efficiencies(recording: TalpRecording) -> FloatArray:
    """Return (regions,) the share of useful time in the time inside each region, as TALP defines its efficiency."""
    useful, busy = recording.values_of("usefulTime").sum(axis=1), recording.values_of("mpiTime").sum(axis=1)
    busy = busy + sum((recording.values_of(name).sum(axis=1) for name in _OPENMP), np.zeros(len(busy)))
    found: FloatArray = np.divide(useful, useful + busy, out=np.full(len(useful), np.nan), where=useful + busy > 0)
    return found


def _check_ranks(recording: TalpRecording) -> Iterator[str]:
    """Yield regions that ranks are missing from; a region may be on fewer ranks when the sums say so, the run's not."""
    most = max((total.values.get("numMpiRanks", 0.0) for total in recording.totals), default=0.0)
    if most and max(recording.ranks) >= most:
        yield f"{most:.0f} ranks announced, but there is a rank {max(recording.ranks)}"
    announced = {total.region for total in recording.totals if "numMpiRanks" in total.values}
    for row, name in enumerate(recording.regions):
        if (name in WHOLE or name not in announced) and not recording.presence[row].all():
            ranks = [recording.ranks[q] for q in np.flatnonzero(recording.presence[row] == 0)[:3].tolist()]
            yield f"region {name} is not there on rank {', '.join(map(str, ranks))}"


def _check_times(recording: TalpRecording) -> Iterator[str]:
    """Yield cells whose useful time and time in MPI are not the elapsed time; only without threads they must be."""
    if any(recording.values_of(name).any() for name in _OPENMP) or recording.values_of("numOmpParallels").any():
        return
    inside = recording.values_of("usefulTime") + recording.values_of("mpiTime") + recording.values_of("gpuRuntimeTime")
    threaded = np.maximum(recording.values_of("numOmpThreads"), recording.values_of("numCpus")) > 1
    off = np.abs(recording.values_of("elapsedTime") - inside) > _CLOCK_NS
    for row, rank in np.argwhere(off & np.logical_not(threaded)).tolist():
        yield f"region {recording.regions[row]}, rank {recording.ranks[rank]}: the times do not add up to the elapsed"
