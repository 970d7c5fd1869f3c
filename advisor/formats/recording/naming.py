"""Functions and call sites of all processes as the regions of one trace."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.trace.events import Role, TraceRegion
from advisor.trace.recordings.addresses import locate_addresses, sorted_objects
from advisor.trace.recordings.layout import ADDRESS_MASK, PYTHON_BIT
from advisor.trace.regions import BLOCKED_NAME, NO_CORE_NAME, classify_region

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.trace.recordings.places import CodePlace, Places
    from advisor.trace.recordings.processes import Process

#: What the recorder's own names for OpenMP are called, in any language.
_OPENMP: Final = {
    "omp_parallel": "omp parallel",
    "omp_barrier": "omp barrier",
    "omp_implicit_barrier": "omp implicit barrier",
    "omp_critical": "omp critical",
    "omp_atomic": "omp atomic",
    "omp_ordered": "omp ordered",
    "omp_taskwait": "omp taskwait",
    "omp_taskloop": "omp taskwait",
    "omp_task": "omp task",
    "omp_task_create": "omp task creation",
    "omp_lock": "omp_set_lock",
}
#: Regions that stand for no call of the program.
ROOT, THREAD, NO_CORE, BLOCKED, TEAM = range(5)
_OWN: Final = (
    TraceRegion("program", Role.ROOT),
    TraceRegion("thread", Role.USER),
    TraceRegion(NO_CORE_NAME, Role.OS),
    TraceRegion(BLOCKED_NAME, Role.OS),
    TraceRegion("with other threads", Role.OMP_PARALLEL),
)


class RegionTable:
    """The regions of a trace, each with its number; ``ROOT`` and the other own ones come first."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._numbers: dict[TraceRegion, int] = {region: number for number, region in enumerate(_OWN)}

    @property
    def regions(self) -> tuple[TraceRegion, ...]:
        """All regions so far, by number."""
        return tuple(self._numbers)

    def region_number(self, region: TraceRegion) -> int:
        """Return the number of a region, a new one if it was not there."""
        return self._numbers.setdefault(region, len(self._numbers))

    def of_calls(self, process: Process, records: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Return the region of each call: its function, at the place in the source from where it was called."""
        key = records["function"].astype(np.uint64) << np.uint64(48) | records["caller"] & ADDRESS_MASK
        distinct, inverse = np.unique(key, return_inverse=True)
        address = distinct & ADDRESS_MASK
        located = locate_addresses(process, np.maximum(address, np.uint64(1)) - np.uint64(1))  # inside of the call
        paths = [one.path for one in sorted_objects(process)]
        numbers = []
        functions = (distinct >> np.uint64(48)).tolist()
        for function, caller, (number, offset) in zip(functions, address.tolist(), located.tolist(), strict=True):
            frames = self._places.get((paths[number], offset), ()) if number >= 0 else ()
            if caller & int(PYTHON_BIT):
                frames = tuple(found for found in (process.python.get(caller & ~int(PYTHON_BIT)),) if found)
            region = _region(process.functions.get(function, f"function {function}"), frames)
            numbers.append(self.region_number(region))
        return np.array(numbers, dtype=np.int32)[inverse] if numbers else np.zeros(0, dtype=np.int32)


def idle_region(regions: RegionTable, number: int) -> int:
    """Return the number of the region for being idle in a region, between tasks that are run there."""
    region = regions.regions[number]
    if region.role == Role.OMP_LOCK:
        return number
    name = _OPENMP["omp_taskwait"]
    return regions.region_number(TraceRegion(name, Role.OMP_LOCK, region.file, region.line))


def _region(function: str, frames: tuple[CodePlace, ...]) -> TraceRegion:
    recorded = _OPENMP.get(function, function)
    if recorded.startswith("__"):
        recorded = recorded.strip("_").removesuffix("_chk")
    name, role = classify_region(recorded.removesuffix("_c") if recorded.startswith("MPI_") else recorded)
    place = next((frame for frame in frames if frame.file and frame.line), None)
    return TraceRegion(name, role, short_path(place.file), place.line) if place else TraceRegion(name, role)


def short_path(file: str | None) -> str | None:
    """Return the name of a source file as it is shown: without the directories it was compiled in."""
    return PurePath(file).name if file else None
