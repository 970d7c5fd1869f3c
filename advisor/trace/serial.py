"""The serial rule: phases in which one processor works while the others wait for it (docs/traces.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.model import policy
from advisor.trace.locations import processes_of_locations

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray, Phase
    from advisor.trace.events import Trace


def mark_serial_phases(
    trace: Trace,
    found: tuple[Phase, ...],
    threaded: npt.NDArray[np.bool_],
    closing_wait_s: FloatArray,
    phase_of: IntArray,
) -> tuple[Phase, ...]:
    """Return ``found`` with kind ``serial`` for the phases that are.

    ``threaded`` (regions,) are those inside parallel regions of threads; ``closing_wait_s`` (instances, locations) is
    what was waited in the call that closes an instance, and ``phase_of`` (instances,) its phase.
    """
    process = processes_of_locations(trace)
    if int(process.max(initial=0)) == 0:
        return found
    result = []
    for p, phase in enumerate(found):
        closing = _sum_by_process(closing_wait_s[phase_of == p].T, process)
        work = _process_work_seconds(phase, process, threaded[phase.regions])
        total = _sum_by_process(phase.arrays["wait_s"].sum(axis=0), process)
        result.append(replace(phase, kind="serial") if _is_serial(phase, work, closing, total) else phase)
    return tuple(result)


def _process_work_seconds(phase: Phase, process: IntArray, threaded: npt.NDArray[np.bool_]) -> FloatArray:
    """Return (processes, iterations): work outside parallel regions plus that of the busiest thread inside."""
    arrays = phase.arrays
    work = arrays["wall_s"] - arrays["wait_s"] - arrays["sync_s"]
    inside = work[threaded].sum(axis=0)
    busiest: FloatArray = np.full((int(process.max()) + 1, work.shape[2]), -np.inf)
    np.maximum.at(busiest, process, inside)
    return _sum_by_process(work[~threaded].sum(axis=0), process) + busiest


def _sum_by_process(values: FloatArray, process: IntArray) -> FloatArray:
    """Return (locations, iterations) added up by process."""
    total: FloatArray = np.zeros((int(process.max()) + 1, values.shape[1]))
    np.add.at(total, process, values)
    return total


def _is_serial(phase: Phase, work: FloatArray, closing: FloatArray, total: FloatArray) -> bool:
    """Return whether nearly all of the phase's time is in serial instances of one process."""
    everything = work.sum(axis=0)
    worker = np.argmax(work, axis=0)
    column = np.arange(work.shape[1])
    alone = (work[worker, column] >= policy.SERIAL_WORK * everything) & (everything > 0)
    others_wait = total.sum(axis=0) - total[worker, column]
    others_close = closing.sum(axis=0) - closing[worker, column]
    serial = alone & (others_wait > 0) & (others_close >= policy.SERIAL_CLOSING_WAIT * others_wait)
    if phase.duration_s is None or not serial.any():
        return False
    by_worker = np.bincount(worker[serial], weights=phase.duration_s[serial])
    return bool(by_worker.max() >= policy.SERIAL_TIME * phase.duration_s.sum())
