"""The call-path profile of a CUBE archive."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.cube import anchor as documents
from advisor.formats.cube import metrics, regions, values
from advisor.formats.cube.archive import ANCHOR, CubeArchive, open_archive
from advisor.formats.cube.regions import OTHERS
from advisor.model.lists import join_clauses
from advisor.model.records import FloatArray, IntArray, Note
from advisor.trace.callpaths.records import CallPathNode, CallPaths, fold_regions
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.cube.anchor import CubeAnchor
    from advisor.formats.cube.metrics import MetricTable

#: Relative rounding of sums of times, and seconds by which a sum may differ all the same.
_ROUNDING: Final = 1e-6
_TINY: Final = 1e-9
#: Metrics of single calls: whether they are least or most, and what calls beyond them took.
_LIMITS: Final = {"min_time": (1, "shorter"), "max_time": (-1, "longer")}
_RANK: Final = re.compile(r"MPI Rank (\d+)")

_SHOWN: Final = 3  # contradictions that are repeated
_TIME: Final = "time"
_VISITS: Final = "visits"
_SHORTEST: Final = "min_time"
#: Names that otf2_cli_profile gives to the same.
_ALIASES: Final = {"met_time": _TIME, "met_visits": _VISITS}
#: Seconds that Scalasca gives to threads that have nothing to do; part of its time.
_IDLE: Final = "omp_idle_threads"


def build_call_paths(path: Path) -> CallPaths:
    """Return what the CUBE archive at ``path`` recorded; raises ``InputError`` with member and place of damage."""
    with open_archive(path) as archive:
        anchor = documents.read_anchor(archive.read_member(ANCHOR, documents.SIZE_LIMIT), path, ANCHOR)
        return _build_from_archive(archive, anchor)


def _build_from_archive(archive: CubeArchive, anchor: CubeAnchor) -> CallPaths:
    processors, columns, left_out = regions.build_processors(anchor, archive.path, ANCHOR)
    table = _build_table(archive, anchor, columns)
    wall, visits = _compute_wall_seconds(table), table.read_own(_VISITS)
    found = regions.build_nodes(anchor, table.parent, table.order)
    shown, folded = fold_regions(
        found, np.zeros(len(found)) if wall is None else wall.sum(axis=1), regions.REGION_LIMIT, regions.OTHERS
    )
    moved, counts = metrics.sum_moved_bytes(table, found), metrics.read_counts(table)
    waits = {} if wall is None else metrics.read_waits(table)
    doubts = [*table.doubts, *find_contradictions(table, anchor, visits)]
    ranks = {processor.rank for processor in processors}
    return CallPaths(
        program=_find_program(found),
        run=_compute_identity(wall, visits),
        reader="cube",
        processors=processors,
        nodes=shown,
        wall_s=wall,
        visits=visits,
        bytes=moved,
        shortest_s=_find_shortest_calls(table, visits),
        waits=waits,
        counts=counts,
        actual_s=math.nan if wall is None else None,
        ranks_expected=max(ranks) + 1 if max(ranks) + 1 > len(ranks) else None,
        notes=build_notes(archive, anchor, doubts, left_out, folded),
    )


def _build_table(archive: CubeArchive, anchor: CubeAnchor, columns: IntArray) -> MetricTable:
    """Return what reads metrics, with the call paths in the order of the document, callers first."""
    orders = values.build_orders(anchor.parent)
    position = np.empty(len(orders.deep), dtype=np.int64)
    position[orders.deep] = np.arange(len(orders.deep))
    above = np.fromiter(anchor.parent.values(), dtype=np.int64)
    parent = np.where(above < 0, -1, position[above])
    known = {_ALIASES.get(metric.name, metric.name): metric for metric in anchor.metrics}
    return metrics.MetricTable(archive, known, orders, orders.deep, parent, columns, len(anchor.locations))


def _compute_wall_seconds(table: MetricTable) -> FloatArray | None:
    seconds, idle = table.read_own(_TIME), table.read_own(_IDLE)
    if seconds is None or idle is None:
        return seconds
    return np.maximum(seconds - idle, 0.0)


def _find_shortest_calls(table: MetricTable, visits: FloatArray | None) -> FloatArray | None:
    shortest = table.read_extreme(_SHORTEST)
    if shortest is None:
        return None
    called = shortest > 0 if visits is None else (visits > 0) & (shortest > 0)
    return np.where(called, shortest, np.nan)


def _find_program(nodes: tuple[CallPathNode, ...]) -> str:
    return next((node.name for node in nodes if node.role == Role.ROOT), "")


def _compute_identity(wall: FloatArray | None, visits: FloatArray | None) -> str:
    """Return an identity of the run: a digest of its times and calls."""
    digest = hashlib.sha256()
    for array in (wall, visits):
        digest.update(b"" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()[:12]


def build_notes(
    archive: CubeArchive, anchor: CubeAnchor, doubts: Sequence[str], left_out: int, folded: int
) -> tuple[Note, ...]:
    """Return a note for each doubt about the profile, and for what of it is not used."""
    return (*_note_damage(archive, doubts), *_note_content(anchor, left_out, folded))


def _note_damage(archive: CubeArchive, doubts: Sequence[str]) -> Iterator[Note]:
    if doubts:
        yield Note("contradictions in the profile", f"{len(doubts)}: {join_clauses(doubts, _SHOWN)}", 0.3)
    if archive.damaged_members:
        text = (
            f"{len(archive.damaged_members)} members of the archive have headers with wrong checksums; "
            "CUBE 4.8 is known to write such, other files are damaged"
        )
        yield Note("wrong checksums in the archive", text, 0.05)
    if not archive.has_end_mark:
        yield Note("the archive has no end mark", "something after the last member may be missing", 0.05)


def _note_content(anchor: CubeAnchor, left_out: int, folded: int) -> Iterator[Note]:
    if left_out:
        text = f"{left_out} locations are not threads (accelerators, metrics of a node); they are not read"
        yield Note("locations left out", text)
    if folded:
        yield Note("many regions", f"the {folded:,} regions with the least time are shown as one, {OTHERS}")
    if any(metric.name == "num_threads" for metric in anchor.metrics):
        text = "the times of a process are sums over its threads, so that they may exceed the run time"
        yield Note("threads summed up", text, 0.3, "SCOREP_PROFILING_FORMAT=CUBE4 mpirun …")


def find_contradictions(table: MetricTable, anchor: CubeAnchor, visits: FloatArray | None) -> Iterator[str]:
    """Yield what contradicts something else in the profile."""
    yield from _check_names(anchor)
    yield from _check_times(table, visits)


def _check_names(anchor: CubeAnchor) -> Iterator[str]:
    for number in sorted(set(anchor.callee.values())):
        region = anchor.regions[number]
        if len(region.name) == len(region.mangled) and _count_differences(region.name, region.mangled) == 1:
            yield f"region {number} has two names, {region.name[:60]} and {region.mangled[:60]}"
    for group in {id(place.group): place.group for place in anchor.locations}.values():
        told = _RANK.fullmatch(group.name)
        if told and int(told[1]) != group.rank:
            yield f"{group.name} is said to be rank {group.rank}"


def _count_differences(one: str, other: str) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def _check_times(table: MetricTable, visits: FloatArray | None) -> Iterator[str]:
    """Yield where shortest and longest calls do not fit to the time of all calls, or calls to their number."""
    if visits is None or not table.has_totals("time"):
        return
    if any((row != np.floor(row)).any() for row in visits):
        yield "a number of visits is not a whole number"
    visited = visits > 0
    for node in range(len(table.parent) - 1, 0, -1):  # nodes stand behind their parents
        if table.parent[node] >= 0:
            visited[table.parent[node]] |= visited[node]
    limits = {name: table.read_extreme(name) for name in _LIMITS}
    spent, beyond = np.zeros(len(visits), dtype=bool), {name: np.zeros(len(visits), dtype=bool) for name in _LIMITS}
    for rows, total in table.iterate_stored("time"):
        spent[rows] = ((total > _TINY) & ~visited[rows]).any(axis=1)
        for name, (sign, _) in _LIMITS.items():
            if (limit := limits[name]) is not None:
                much = sign * (limit[rows] * visits[rows] - total) > _ROUNDING * total + _TINY
                beyond[name][rows] = (much & (visits[rows] > 0)).any(axis=1)
    if spent.any():
        yield f"call path {table.order[spent.argmax()]} took time without being visited"
    for name, (_, word) in _LIMITS.items():
        if beyond[name].any():
            path = table.order[beyond[name].argmax()]
            yield f"all calls of call path {path} took {word} than its {name} allows"
