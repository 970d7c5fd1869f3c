"""Call paths of a CUBE document as nodes of a call-path profile, and its locations as processors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import InputError
from advisor.model.records import IntArray, Processor
from advisor.trace.callpaths.records import CallPathNode
from advisor.trace.events import Role
from advisor.trace.regions import classify_region, parse_source_place

if TYPE_CHECKING:
    from advisor.formats.cube.anchor import CubeAnchor, CubeLocation, LocationGroup, SourceRegion

REGION_LIMIT: Final = 100_000
OTHERS: Final = "other regions"

#: CUBE's words for what a region does that differ from OTF2's by more than case and underscores.
_ROLES: Final[Mapping[str, str]] = {
    "all2all": "COLL_ALL2ALL",
    "one2all": "COLL_ONE2ALL",
    "all2one": "COLL_ALL2ONE",
    "other collective": "COLL_OTHER",
    "implicit barrier": "IMPLICIT_BARRIER",
}
_PARADIGMS: Final[Mapping[str, str]] = {"measurement": "MEASUREMENT_SYSTEM", "omp": "OPENMP"}
#: Roots that Score-P makes up for what belongs to no place in the program.
_MADE_UP: Final = frozenset({"MEASUREMENT OFF", "TRACE BUFFER FLUSH", "THREADS", "TASKS"})


def build_nodes(anchor: CubeAnchor, parent: IntArray, order: IntArray) -> tuple[CallPathNode, ...]:
    """Return the nodes in ``order``, call paths by number; ``parent`` (nodes,) are positions in it, -1 for none."""
    known: dict[int, tuple[str, Role, str | None, int | None]] = {}
    found = []
    for number, above in zip(order.tolist(), parent.tolist(), strict=True):
        callee = anchor.callee[number]
        if callee not in known:
            known[callee] = _classify_region(anchor.regions[callee])
        name, role, file, line = known[callee]
        if above < 0 and role == Role.TOOL and name not in _MADE_UP:
            role = Role.ROOT
        found.append(CallPathNode(name, role, file, line, above))
    return tuple(found)


def _classify_region(region: SourceRegion) -> tuple[str, Role, str | None, int | None]:
    role = _ROLES.get(region.role, region.role.upper().replace(" ", "_")) or "FUNCTION"
    paradigm = _PARADIGMS.get(region.paradigm, region.paradigm.upper()) or "USER"
    name, kind = classify_region(region.name, role, paradigm)
    if region.begin > 0 and region.module:
        return name, kind, region.module, region.begin
    if "/" in region.module or "." in region.module:
        return name, kind, region.module, None
    file, line = parse_source_place(region.name) or (None, None)
    return name, kind, file, line


def build_processors(anchor: CubeAnchor, path: Path, member: str) -> tuple[tuple[Processor, ...], IntArray, int]:
    """Return the threads, their columns in every metric, and how many locations are none.

    Raises ``InputError`` where two threads have the same rank and number.
    """
    threads = [
        place for place in anchor.locations if place.kind in ("thread", "") and place.group.kind in ("process", "")
    ]
    members: dict[int, list[CubeLocation]] = {}
    for one in threads:
        members.setdefault(id(one.group), []).append(one)
    chosen: dict[tuple[int, int], tuple[int, str | None]] = {}
    for number, group in enumerate(_unique_groups(anchor)):
        rank = group.rank if group.rank >= 0 else number
        mine = sorted(members.get(id(group), []), key=lambda one: (one.rank, one.number))
        for thread, one in enumerate(mine):
            if (rank, thread) in chosen or (thread and one.rank == mine[thread - 1].rank >= 0):
                raise InputError(path, f"two locations are thread {one.rank} of rank {rank}", member)
            chosen[rank, thread] = (one.number, group.host)
    if not chosen:
        raise InputError(path, "describes no threads", member)
    pairs = sorted(chosen.items())
    found = tuple(Processor(rank, thread, host) for (rank, thread), (_, host) in pairs)
    return found, np.array([column for _, (column, _) in pairs]), len(anchor.locations) - len(threads)


def _unique_groups(anchor: CubeAnchor) -> list[LocationGroup]:
    return list({id(place.group): place.group for place in anchor.locations}.values())
