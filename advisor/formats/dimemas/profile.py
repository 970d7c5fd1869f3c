"""What a Dimemas trace tells without a network to run it on: the computation of every phase, iteration and task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import FloatArray, IntArray, Note, Phase, Processor, Profile, Status
from advisor.trace.events import Role
from advisor.trace.profile import from_trace
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.dimemas.computation_trace import ComputationTrace
    from advisor.formats.dimemas.records import DimemasRecords

_NANO: Final = 1e-9
#: Calls in which a process can wait for some of the others.
_WAITING: Final = (Role.RECV, Role.SENDRECV, Role.WAIT, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN, Role.RMA)
#: Notes about the clock that the virtual trace has made up, and about what it leaves out on purpose.
_NOT_MEANT: Final = ("unmatched collectives", "unmatched messages", "clocks", "shutdown")
_TEXT: Final = (
    "a Dimemas trace holds computation and what was communicated, but not how long that took: "
    "communication, waiting and synchronizing are in no bound"
)
_COLLECT: Final = "gapwatch advise on the Paraver trace (.prv) that this one was made from"


def build_profile(virtual: ComputationTrace, records: DimemasRecords, path: Path) -> Profile:
    """Return the profile of a trace; raises ``InputError`` for ``path`` where it holds no run."""
    found = from_trace(virtual.trace, path, "dimemas")
    with_io = any(region.role == Role.IO for region in virtual.trace.regions)
    actual_s = float((virtual.absent_ns + virtual.clock_ns).max()) * _NANO if _has_clock(virtual) else np.nan
    talking = np.flatnonzero([classify_region(region.name)[1] in _WAITING for region in found.regions])
    status: dict[str, Status] = {"cpu_s": "estimated", "work_s": "estimated"}
    if with_io:
        status["io_s"] = "measured"
    return replace(
        found,
        actual_s=actual_s,
        phases=tuple(_keep_computation(phase, with_io, talking) for phase in found.phases),
        status=status,
        outside=_compute_outside(virtual, actual_s, found.processors) if _has_clock(virtual) else {},
        causes=None,
        processors=tuple(replace(processor, from_s=None, to_s=None) for processor in found.processors),
        paradigms=tuple(dict.fromkeys((*found.paradigms, *(("mpi",) if len(records.communicators) else ())))),
        notes=_build_notes(found, virtual, records),
        clock_uncertainty_s=None,
    )


def _has_clock(virtual: ComputationTrace) -> bool:
    """Return whether the tracer's own clock tells how long each process ran."""
    first = np.array([location.thread == 0 for location in virtual.trace.locations])
    return bool((virtual.clock_ns[first] >= 0).all())


def _keep_computation(phase: Phase, with_io: bool, talking: IntArray) -> Phase:
    """Return the phase with its computation only: what it waits for is not known.

    Where processors depend on each other before its end, none can be said to wait there: it is no serial one.
    """
    arrays = phase.arrays
    parts = [arrays[name] for name in ("wait_s", "sync_s", "transfer_s") if name in arrays]
    work: FloatArray = np.maximum(arrays["wall_s"] - sum(parts), 0.0)
    computed = {"work_s": work, "cpu_s": np.maximum(work - arrays["io_s"], 0.0) if with_io else work}
    if with_io:
        computed["io_s"] = arrays["io_s"]
    kind = "parallel" if np.isin(talking, phase.regions).any() else phase.kind
    return replace(phase, kind=kind, arrays=computed, start_s=None, duration_s=None)


def _compute_outside(virtual: ComputationTrace, actual_s: float, shown: tuple[Processor, ...]) -> dict[str, FloatArray]:
    """Return what no phase holds, of the processors of the profile: threads without records are none."""
    names = {(processor.rank, processor.thread) for processor in shown}
    kept = np.array([(location.rank, location.thread) in names for location in virtual.trace.locations])
    ran = np.where(virtual.clock_ns >= 0, virtual.clock_ns, virtual.total_ns) * _NANO
    parts = {
        "start-up": virtual.before_ns * _NANO,
        "shutdown": virtual.after_ns * _NANO,
        "communication and waiting": ran - virtual.total_ns * _NANO,
        "not running": actual_s - ran,
    }
    return {name: seconds[kept] for name, seconds in parts.items() if seconds[kept].any()}


def _build_notes(found: Profile, virtual: ComputationTrace, records: DimemasRecords) -> tuple[Note, ...]:
    kept = [note for note in found.notes if note.name not in _NOT_MEANT]
    kept.append(Note("communication not timed", _TEXT, 0.2, _COLLECT))
    if virtual.uneven_syncs:
        kept.append(Note("phases unknown", "the tasks take part in different numbers of synchronizations", 0.2))
    if virtual.broken_calls:
        kept.append(Note("calls not whole", f"{virtual.broken_calls} calls only begin, or only end", 0.1))
    if virtual.contradicting_threads:
        text = f"{virtual.contradicting_threads} threads compute longer than they run by the tracer's clock"
        kept.append(Note("clock contradicts", text, 0.1))
    if virtual.undefined_calls:
        kept.append(Note("names missing", f"{virtual.undefined_calls} calls have no name: there is no .pcf file", 0.0))
    if records.other_records:
        kept.append(Note("records not used", f"{records.other_records} records of other kinds are left out", 0.05))
    return tuple(kept)
