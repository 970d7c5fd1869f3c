"""Names of phases: the dominant region and the closing call."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.grouping import sum_by_group
from advisor.trace.events import Role, Trace
from advisor.trace.nesting import WORKING_ROLES, roles_of_regions
from advisor.trace.spool import release_memory

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray
    from advisor.trace.phases import RunDivision
    from advisor.trace.time_attribution import TimeAttribution

#: A region gives a phase its name when it holds at least this share of the phase's own work.
NAMING_SHARE = 0.5
#: Events digested together.
_BLOCK = 1 << 17


def name_phases(
    trace: Trace, division: RunDivision, phase_of: IntArray, booked: TimeAttribution, outermost: IntArray
) -> tuple[list[str], list[str | None]]:
    """Return the name of each phase and the call that closes it; names are unique and the same for equal runs.

    ``outermost`` are the regions that nobody called.
    """
    closers = [_closing_call_name(trace, division, phase_of, p) for p in range(len(booked.blocks))]
    main = roles_of_regions(trace) == Role.ROOT
    main[outermost] |= roles_of_regions(trace)[outermost] == Role.USER
    heads, tails = _head_and_tail_phases(phase_of)
    thread_barriers = {region.name for region in trace.regions if region.role == Role.OMP_BARRIER}
    names: list[str] = []
    for p, closer in enumerate(closers):
        mine = np.flatnonzero(phase_of == p)
        entered = np.unique(np.concatenate([division.inside[k] for k in mine]))
        region = _dominating_region(trace, booked, p, main, entered, first=bool(mine[0] == 0))
        name = " ".join(part for part in (region, f"to {closer or 'the end'}") if part)
        name = region if region and closer in thread_barriers else name
        where = "before the loop: " if p in heads else "after the loop: " if p in tails else ""
        names.append(_make_unique(where + name, names))
    return names, closers


def compute_run_id(trace: Trace) -> str:
    """Return an identity of the run: a digest of its events as they were recorded, whatever their clocks need."""
    digest = hashlib.sha256(trace.program.encode("utf-8", "surrogateescape"))
    for column in (trace.first, trace.kind, trace.time_s):
        for begin in range(0, len(column), _BLOCK):
            digest.update(np.ascontiguousarray(column[begin : begin + _BLOCK]).data)
            release_memory([column])
    return digest.hexdigest()[:12]


def _closing_call_name(trace: Trace, division: RunDivision, phase_of: IntArray, phase: int) -> str | None:
    """Return the name of the MPI or OpenMP call that closes the phase, None for the end of the run."""
    instance = int(np.flatnonzero(phase_of == phase)[0])
    joined = division.closing_region[instance][division.closing_region[instance] >= 0]
    if not len(joined):
        return None
    region = trace.regions[joined[0]]
    return region.name if region.role != Role.FINALIZE or region.name.startswith("MPI_") else None


def _head_and_tail_phases(phase_of: IntArray) -> tuple[set[int], set[int]]:
    """Return the phases before and after the loop; none where there is no loop."""
    looping = np.flatnonzero(np.bincount(phase_of)[phase_of] > 1)
    if not len(looping):
        return set(), set()
    return set(phase_of[: looping[0]].tolist()), set(phase_of[looping[-1] + 1 :].tolist())


def _dominating_region(
    trace: Trace, booked: TimeAttribution, phase: int, main: npt.NDArray[np.bool_], entered: IntArray, *, first: bool
) -> str | None:
    """Return the region below the program's root that does most of the phase's work, if one does.

    Only regions ``entered`` in the phase count, and the root itself in the first phase, where it is entered.
    """
    region = booked.rows[booked.phase_rows[phase]] // 2
    working = np.isin(roles_of_regions(trace)[region], [role for role in WORKING_ROLES if role != Role.LOCAL])
    seconds = booked.blocks[phase]["wall_s"].sum(axis=(1, 2))
    work = sum_by_group(region[working], seconds[working], len(trace.regions))
    own = (roles_of_regions(trace) == Role.USER) & ~main
    own[entered] = False
    inner = np.where(main | own, 0.0, work)
    everything = inner.sum() + (work[main].sum() if first else 0.0)
    best = int(np.argmax(inner)) if len(inner) else 0
    return trace.regions[best].name if len(inner) and inner[best] > NAMING_SHARE * everything else None


def _make_unique(name: str, taken: list[str]) -> str:
    """Return ``name``, with a number behind it where it is taken."""
    if name not in taken:
        return name
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"
