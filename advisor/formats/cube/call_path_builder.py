"""The call-path profile of a CUBE archive."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.cube import anchor as documents
from advisor.formats.cube import metrics, regions, values
from advisor.formats.cube.archive import ANCHOR, open_archive
from advisor.formats.cube.checks import find_contradictions
from advisor.formats.cube.notes import build_notes
from advisor.trace.callpaths.records import CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.cube.anchor import CubeAnchor
    from advisor.formats.cube.archive import CubeArchive
    from advisor.formats.cube.metrics import MetricTable
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.callpaths.records import CallPathNode

_TIME: Final = "time"
_VISITS: Final = "visits"
_SHORTEST: Final = "min_time"
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
    shown, folded = regions.fold_regions(found, np.zeros(len(found)) if wall is None else wall.sum(axis=1))
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
    known = {metric.name: metric for metric in anchor.metrics}
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
