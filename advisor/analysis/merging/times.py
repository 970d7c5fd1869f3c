"""Times from another recording of the run: I/O seconds, and CPU times, which a trace lacks.

They are totals per processor, or per region and processor, so where they fell in the run is estimated: like the time
in which the processor computed. That moves seconds between computation and I/O; the work of processors stays the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES, Causes

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray, Phase, Profile

_IO: Final = CAUSE_CATEGORIES.index("io")
#: Phases with less of the I/O than this get none of its causes.
_LEAST: Final = 0.01


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


def distribute_io_causes(leader: Profile, other: Profile, columns: IntArray, shares: FloatArray) -> Profile:
    """Return ``leader`` with the I/O causes of ``other``; the calls follow as regions in no phase.

    ``columns`` (Q,) are the leader's processors in ``other``; ``shares`` (phases, Q) says how much of a processor's I/O
    falls into each phase.
    """
    causes = other.causes
    mine = np.flatnonzero(causes.category == _IO) if causes is not None else np.zeros(0, dtype=np.int64)
    if causes is None or not len(mine):
        return leader
    used, call = np.unique(causes.call[mine], return_inverse=True)
    place = np.full(len(other.processors) + 1, -1)
    place[columns] = np.arange(len(columns))
    processor = place[causes.processor[mine]]
    weights = _phase_weights(shares)[:, processor]
    phase, row = np.nonzero(weights)
    found = _scale_rows(causes, mine[row], weights[phase, row])
    found |= {"phase": phase, "call": len(leader.regions) + call[row], "processor": processor[row]}
    return replace(
        leader,
        regions=(*leader.regions, *(other.regions[number] for number in used.tolist())),
        counts={name: np.vstack((table, np.zeros((len(used), len(columns))))) for name, table in leader.counts.items()},
        causes=_join_causes(leader.causes, causes, found),
    )


def _phase_weights(shares: FloatArray) -> FloatArray:
    """Return the shares (phases, Q + 1), small ones left out, adding up to one; the last column is of no processor."""
    every = np.column_stack((shares, shares.mean(axis=1)))
    kept = np.where(every >= np.minimum(_LEAST, every.max(axis=0)), every, 0.0)
    total = kept.sum(axis=0)
    weights: FloatArray = np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)
    return weights


def _scale_rows(causes: Causes, rows: IntArray, weight: FloatArray) -> dict[str, Any]:
    """Return the columns of ``rows`` with their amounts times ``weight``; who called them is not known."""
    nothing = np.full(len(rows), -1)
    return {
        "category": causes.category[rows],
        "kind": causes.kind[rows],
        "caller": nothing,
        "partner": nothing,
        "target": causes.target[rows],
        "size_class": causes.size_class[rows],
        "seconds": causes.seconds[rows] * weight,
        "count": np.rint(causes.count[rows] * weight).astype(np.int64),
        "bytes": np.rint(causes.bytes[rows] * weight).astype(np.int64),
    }


def _join_causes(own: Causes | None, theirs: Causes, found: dict[str, Any]) -> Causes:
    """Return the causes of both, with the kinds and targets of theirs behind those of the own."""
    kinds = own.kinds if own is not None else ()
    targets = own.targets if own is not None else ()
    found["kind"] = found["kind"] + len(kinds)
    found["target"] = np.where(found["target"] < 0, -1, found["target"] + len(targets))
    columns = {
        name: values if own is None else np.concatenate((getattr(own, name), values)) for name, values in found.items()
    }
    return Causes(kinds=(*kinds, *theirs.kinds), targets=(*targets, *theirs.targets), **columns)
