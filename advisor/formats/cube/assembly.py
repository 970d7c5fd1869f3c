"""The call-path profile of a CUBE archive."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.cube import anchor as documents
from advisor.formats.cube import metrics, regions, values
from advisor.formats.cube.archive import ANCHOR, open_archive
from advisor.formats.cube.checks import disagreements
from advisor.formats.cube.notes import notes
from advisor.trace.callpaths.records import CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.cube.anchor import Anchor
    from advisor.formats.cube.archive import Archive
    from advisor.formats.cube.metrics import Table
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.callpaths.records import Node

_TIME: Final = "time"
_VISITS: Final = "visits"
_SHORTEST: Final = "min_time"
#: Seconds that Scalasca gives to threads that have nothing to do; part of its time.
_IDLE: Final = "omp_idle_threads"


def call_paths(path: Path) -> CallPaths:
    """Return what the CUBE archive at ``path`` recorded; raises ``InputError`` with member and place of damage."""
    with open_archive(path) as archive:
        anchor = documents.read(archive.read(ANCHOR, documents.SIZE_LIMIT), path, ANCHOR)
        return _assembled(archive, anchor)


def _assembled(archive: Archive, anchor: Anchor) -> CallPaths:
    processors, columns, left_out = regions.processors(anchor, archive.path, ANCHOR)
    table = _table(archive, anchor, columns)
    wall, visits = _wall(table), table.own(_VISITS)
    found = regions.nodes(anchor, table.parent, table.order)
    shown, folded = regions.fold(found, np.zeros(len(found)) if wall is None else wall.sum(axis=1))
    moved, counts = metrics.moved(table, found), metrics.counts(table)
    waits = {} if wall is None else metrics.waits(table)
    doubts = [*table.doubts, *disagreements(table, anchor, visits)]
    ranks = {processor.rank for processor in processors}
    return CallPaths(
        program=_program(found),
        run=_identity(wall, visits),
        reader="cube",
        processors=processors,
        nodes=shown,
        wall_s=wall,
        visits=visits,
        bytes=moved,
        shortest_s=_shortest(table, visits),
        waits=waits,
        counts=counts,
        actual_s=math.nan if wall is None else None,
        ranks_expected=max(ranks) + 1 if max(ranks) + 1 > len(ranks) else None,
        notes=notes(archive, anchor, doubts, left_out, folded),
    )


def _table(archive: Archive, anchor: Anchor, columns: IntArray) -> Table:
    """Return what reads metrics, with the call paths in the order of the document, callers first."""
    orders = values.orders(anchor.parent)
    position = np.empty(len(orders.deep), dtype=np.int64)
    position[orders.deep] = np.arange(len(orders.deep))
    above = np.fromiter(anchor.parent.values(), dtype=np.int64)
    parent = np.where(above < 0, -1, position[above])
    known = {metric.name: metric for metric in anchor.metrics}
    return metrics.Table(archive, known, orders, orders.deep, parent, columns, len(anchor.places))


def _wall(table: Table) -> FloatArray | None:
    seconds, idle = table.own(_TIME), table.own(_IDLE)
    if seconds is None or idle is None:
        return seconds
    return np.maximum(seconds - idle, 0.0)


def _shortest(table: Table, visits: FloatArray | None) -> FloatArray | None:
    shortest = table.extreme(_SHORTEST)
    if shortest is None:
        return None
    called = shortest > 0 if visits is None else (visits > 0) & (shortest > 0)
    return np.where(called, shortest, np.nan)


def _program(nodes: tuple[Node, ...]) -> str:
    return next((node.name for node in nodes if node.role == Role.ROOT), "")


def _identity(wall: FloatArray | None, visits: FloatArray | None) -> str:
    """Return an identity of the run: a digest of its times and calls."""
    digest = hashlib.sha256()
    for array in (wall, visits):
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]
