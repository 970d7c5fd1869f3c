"""What the phases of a trace are called: the region that dominates them and the call that closes them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from advisor.grouping import sums
from advisor.traces.events import Role
from advisor.traces.nesting import roles
from advisor.traces.tables import shown_regions

if TYPE_CHECKING:
    from advisor.traces.categories import Split
    from advisor.traces.events import Trace
    from advisor.traces.nesting import Calls
    from advisor.traces.phases import Division
    from advisor.traces.tables import Table

#: A region gives a phase its name when it holds at least this share of the phase's own work.
NAMING_SHARE = 0.5


def phases(
    trace: Trace, calls: Calls, division: Division, table: Table, split: Split
) -> tuple[list[str], list[str | None]]:
    """Return the name of each phase and the call that closes it; names are unique and the same for equal runs."""
    closers = [_closer(trace, calls, division, table, p) for p in range(len(table.phase_rows))]
    heads, tails = _head_and_tail(table)
    thread_barriers = {region.name for region in trace.regions if region.role == Role.OMP_BARRIER}
    names: list[str] = []
    for p, closer in enumerate(closers):
        region = _dominating(trace, calls, table, split, p)
        name = " ".join(part for part in (region, f"to {closer or 'the end'}") if part)
        name = region if region and closer in thread_barriers else name
        where = "before the loop: " if p in heads else "after the loop: " if p in tails else ""
        names.append(_unused(where + name, names))
    return names, closers


def run_id(trace: Trace) -> str:
    """Return an identity of the run: a digest of its events."""
    digest = hashlib.sha256(trace.program.encode("utf-8", "surrogateescape"))
    for column in (trace.first, trace.kind, np.ascontiguousarray(trace.time_s)):
        digest.update(column.tobytes())
    return digest.hexdigest()[:12]


def _closer(trace: Trace, calls: Calls, division: Division, table: Table, phase: int) -> str | None:
    """Return the name of the MPI or OpenMP call that closes the phase, None for the end of the run."""
    instance = int(np.flatnonzero(table.phase_of == phase)[0])
    joined = division.closing[instance][division.closing[instance] >= 0]
    if not len(joined):
        return None
    region = trace.regions[calls.region[joined[0]]]
    return region.name if region.role != Role.FINALIZE or region.name.startswith("MPI_") else None


def _head_and_tail(table: Table) -> tuple[set[int], set[int]]:
    """Return the phases before and after the loop; none where there is no loop."""
    looping = np.flatnonzero(table.iterations[table.phase_of] > 1)
    if not len(looping):
        return set(), set()
    head = set(table.phase_of[: looping[0]].tolist())
    tail = set(table.phase_of[looping[-1] + 1 :].tolist())
    return head, tail


def _dominating(trace: Trace, calls: Calls, table: Table, split: Split, phase: int) -> str | None:
    """Return the user region below the program's root that does most of the phase's work, if one does."""
    shown = shown_regions(trace, calls)
    role = roles(trace)
    mine = (table.phase_of[split.instance] == phase) & (calls.anchor < 0) & (role[calls.region] != Role.LOCAL)
    work = sums(shown[mine], split.total_s[mine], len(trace.regions))
    root = (role[calls.region] == Role.ROOT) | ((calls.parent < 0) & (role[calls.region] == Role.USER))
    inner = sums(shown[mine & ~root], split.total_s[mine & ~root], len(work))
    best = int(np.argmax(inner)) if len(inner) else 0
    return trace.regions[best].name if len(inner) and inner[best] > NAMING_SHARE * work.sum() else None


def _unused(name: str, taken: list[str]) -> str:
    """Return ``name``, with a number behind it where it is taken."""
    if name not in taken:
        return name
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"
