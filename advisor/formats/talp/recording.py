"""What TALP measured, whichever way it was written: nanoseconds and counts by region and rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: What is kept of a region on one rank, by TALP's names: times in nanoseconds, and counts.
TIMES: Final[tuple[str, ...]] = (
    "elapsedTime",
    "usefulTime",
    "mpiTime",
    "mpiWorkerIdleTime",
    "ompLoadImbalanceTime",
    "ompSchedulingTime",
    "ompSerializationTime",
    "gpuRuntimeTime",
)
COUNTS: Final[tuple[str, ...]] = (
    "numMeasurements",
    "numMpiCalls",
    "numOmpParallels",
    "numOmpTasks",
    "numOmpThreads",
    "numCpus",
    "instructions",
    "cycles",
)
VALUES: Final[tuple[str, ...]] = (*TIMES, *COUNTS)
#: Without these nothing can be said.
REQUIRED: Final = ("elapsedTime", "usefulTime", "mpiTime")
#: What every version writes of a process, in JSON and tables.
ALWAYS: Final = frozenset({"rank", "hostname", "numMeasurements", "numMpiCalls", "instructions", "cycles", *REQUIRED})
#: Regions and ranks, in all; far beyond what TALP writes.
_CELLS: Final = 20_000_000
REGIONS: Final = 100_000


@dataclass(frozen=True, slots=True)
class ProcessRegion:
    """One region on one rank: host, place in the file, and the values that stand there."""

    region: str
    rank: int
    host: str | None
    place: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RegionTotals:
    """One region over all ranks, as TALP adds it up; for the text report only some of it."""

    region: str
    place: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RankSums:
    """How many ranks sums are over; work and MPI time of the busiest, as means over its CPUs; seconds of devices."""

    ranks: int
    most_work_ns: float
    mpi_of_busiest_ns: float
    devices_s: float


@dataclass(frozen=True, slots=True)
class TalpRecording:
    """A run as TALP measured it.

    ``values`` maps names of ``VALUES`` to arrays (regions, ranks); what is not there was not written. ``presence``
    (regions, ranks) tells which cells were; the others are zero. ``totals`` are TALP's own sums. Where TALP wrote sums
    alone, the only column holds means over the ranks, and ``sums`` tells of these.
    """

    file: Path
    regions: tuple[str, ...]
    ranks: tuple[int, ...]
    hosts: tuple[str | None, ...]
    values: Mapping[str, FloatArray]
    presence: FloatArray
    totals: tuple[RegionTotals, ...] = ()
    timestamp: str | None = None
    ranks_expected: int | None = None
    earlier_runs: int = 0
    doubts: tuple[str, ...] = field(default=())
    sums: RankSums | None = None
    contradictions: tuple[str, ...] = ()

    def values_of(self, name: str) -> FloatArray:
        """Return the values of ``name``, zeros where TALP did not write it."""
        found = self.values.get(name)
        return np.zeros((len(self.regions), len(self.ranks))) if found is None else found


def tabulate_processes(file: Path, processes: Iterable[ProcessRegion]) -> TalpRecording:
    """Return what single processes measured as arrays; raises ``InputError`` for a rank that is there twice."""
    cells: dict[tuple[str, int], ProcessRegion] = {}
    for process in processes:
        here = (process.region, process.rank)
        if here not in cells:
            cells[here] = process
        elif process.values.get("elapsedTime"):
            raise InputError(file, f"rank {process.rank} stands twice in region {here[0][:80]}", process.place)
    regions = tuple(dict.fromkeys(region for region, _ in cells))
    ranks = tuple(sorted({rank for _, rank in cells}))
    if not cells:
        raise InputError(file, "no times of processes; record with DLB_ARGS='--talp --talp-summary=all'")
    if len(regions) > REGIONS or len(regions) * len(ranks) > _CELLS:
        raise InputError(file, f"{len(regions):,} regions on {len(ranks):,} ranks are more than can be read")
    row, column = ({name: n for n, name in enumerate(names)} for names in (regions, ranks))
    known = {name for process in cells.values() for name in process.values}
    for name in REQUIRED:
        if name not in known:
            raise InputError(file, f"{name} stands nowhere")
    values = {name: np.zeros((len(regions), len(ranks))) for name in VALUES if name in known}
    listed = np.zeros((len(regions), len(ranks)))
    for (region, rank), process in cells.items():
        at = row[region], column[rank]
        listed[at] = 1
        for name, value in process.values.items():
            values[name][at] = value
    hosts: dict[int, str | None] = {}
    for process in cells.values():
        if hosts.setdefault(process.rank, process.host) != process.host:
            raise InputError(file, f"rank {process.rank} is on two hosts", process.place)
    return TalpRecording(file, regions, ranks, tuple(hosts[rank] for rank in ranks), values, listed)
