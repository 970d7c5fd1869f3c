"""Times from another recording of the run: I/O seconds, and CPU times, which a trace lacks.

They are totals per processor, or per region and processor, so where they fell in the run is estimated: like the time
in which the processor computed. That moves seconds between computation and I/O; the work of processors stays the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.merging.io_causes import distribute_io_causes

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray, Phase, Profile


def has_new_times(leader: Profile, other: Profile) -> bool:
    """Return whether ``other`` saw input and output of which the leader saw nothing."""
    return (
        leader.has_measure("wall_s")
        and other.has_measure("io_s")
        and not _sum_measure(leader, "io_s")
        and bool(_sum_measure(other, "io_s"))
    )


def add_times(leader: Profile, other: Profile, columns: IntArray) -> Profile:
    """Return ``leader`` with the I/O that only ``other`` saw; ``columns`` (Q,) are its processors there.

    Each processor's I/O seconds are laid over its computing time in proportion, at most all of it, and its causes
    over the phases likewise.
    """
    if not has_new_times(leader, other):
        return leader
    seconds = sum((phase.arrays["io_s"].sum(axis=(0, 2)) for phase in other.phases), np.zeros(1))[columns]
    computing = [_computing_seconds(phase) for phase in leader.phases]
    room = sum((cells.sum(axis=(0, 2)) for cells in computing), np.zeros(1))
    share = np.divide(np.minimum(seconds, room), room, out=np.zeros_like(room), where=room > 0)
    phases = tuple(
        replace(phase, arrays=_with_io(phase, cells * share[None, :, None]))
        for phase, cells in zip(leader.phases, computing, strict=True)
    )
    of_phase = np.array([cells.sum(axis=(0, 2)) for cells in computing])
    shares = np.divide(of_phase, room, out=np.zeros_like(of_phase), where=room > 0)
    found = replace(leader, phases=phases, status={**leader.status, "io_s": "estimated"})
    return distribute_io_causes(found, other, columns, shares)


def _with_io(phase: Phase, seconds: FloatArray) -> dict[str, FloatArray]:
    """Return the arrays of a phase with ``seconds`` of I/O, which were taken for computation before."""
    arrays = {**phase.arrays, "io_s": seconds}
    if "cpu_s" in arrays and "os_s" in arrays:
        arrays["os_s"] = arrays["os_s"] - seconds
    return arrays


def _computing_seconds(phase: Phase) -> FloatArray:
    """Return the seconds of a phase in which nothing else is known to have happened, shaped as its arrays."""
    cells = phase.arrays["wall_s"].copy()
    for name in ("wait_s", "sync_s", "transfer_s"):
        if name in phase.arrays:
            cells -= phase.arrays[name]
    return np.maximum(cells, 0.0)


def _sum_measure(profile: Profile, name: str) -> float:
    return sum(float(phase.arrays[name].sum()) for phase in profile.phases if name in phase.arrays)
