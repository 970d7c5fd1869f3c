"""timemory's regions as call paths: a node for each region below those that called it, a column for each thread."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from advisor.formats.timemory.document import CPU, WALL, CallPath, Metric, Place
from advisor.model.errors import InputError
from advisor.model.records import FloatArray, Note, Processor
from advisor.model.units import format_seconds
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.regions import classify_region

_MOST_CELLS: Final = 20_000_000
#: ``name@file:line`` and what else a marker adds.
_SOURCE: Final = re.compile(r"(\S+?)@(\S+?):(\d{1,9})(?:/(.*))?$")
_SHARE: Final = 0.02
_SLACK_S: Final = 1e-3


def build_call_paths(metrics: dict[str, Metric], path: Path) -> CallPaths:
    """Return the call paths of wall and CPU time; raises ``InputError`` where nothing passed."""
    # All call paths and those above them, callers first
    paths = {each for metric in metrics.values() for each in metric.seconds}
    every = {each[:length] for each in paths for length in range(1, len(each) + 1)}
    order = sorted(every, key=lambda each: (len(each), each))
    places = sorted({place for metric in metrics.values() for at in metric.seconds.values() for place in at})
    if len(order) * len(places) > _MOST_CELLS:
        raise InputError(path, f"{len(order):,} regions on {len(places):,} threads are more than is read")
    rows = {each: number for number, each in enumerate(order)}
    nodes = tuple(_make_node(each, rows.get(each[:-1], -1)) for each in order)
    own = {name: _compute_own(metric.seconds, rows, places, nodes) for name, metric in metrics.items()}
    main = metrics[WALL] if WALL in metrics else metrics[CPU]
    if not any(values.any() for values, _ in own.values()):
        raise InputError(path, "no time passed in any region")
    wall = own[WALL][0] if WALL in own else None
    return CallPaths(
        program="",
        run=path.name,
        reader="timemory",
        processors=tuple(Processor(place.rank, place.thread) for place in places),
        nodes=nodes,
        wall_s=wall,
        cpu_s=own[CPU][0] if CPU in own else None,
        visits=_fill(main.calls, rows, places),
        actual_s=None if wall is not None else math.nan,
        ranks_expected=main.ranks,
        notes=(*_describe_threads(main), *_describe_excess(own[WALL][1] if WALL in own else 0.0)),
    )


def _make_node(path: CallPath, parent: int) -> CallPathNode:
    found = _SOURCE.match(path[-1])
    if found is None:
        name, role = classify_region(path[-1])
        return CallPathNode(name, role, parent=parent)
    name = f"{found[1]}/{found[4]}" if found[4] else found[1]
    return CallPathNode(name, classify_region(found[1])[1], found[2], int(found[3]), parent)


def _fill(values: dict[CallPath, dict[Place, float]], rows: dict[CallPath, int], places: list[Place]) -> FloatArray:
    columns = {place: number for number, place in enumerate(places)}
    table = np.zeros((len(rows), len(places)))
    for each, at in values.items():
        for place, value in at.items():
            table[rows[each], columns[place]] = value
    return table


def _compute_own(
    seconds: dict[CallPath, dict[Place, float]],
    rows: dict[CallPath, int],
    places: list[Place],
    nodes: tuple[CallPathNode, ...],
) -> tuple[FloatArray, float]:
    """Return own seconds (nodes, places), and by how much calls exceed the regions that they are in."""
    inclusive = _fill(seconds, rows, places)
    below = np.zeros_like(inclusive)
    for number, node in enumerate(nodes):
        if node.parent >= 0:
            below[node.parent] += inclusive[number]
    excess = float(np.maximum(below - inclusive * (1 + _SHARE) - _SLACK_S, 0.0)[inclusive > 0].sum())
    return np.maximum(inclusive - below, 0.0), excess


def _describe_threads(metric: Metric) -> Iterator[Note]:
    if metric.threads > 1:
        text = f"up to {metric.threads} threads are added up in one number; their mean is shown, a rank is one column"
        yield Note("threads not told apart", text, 0.1, "TIMEMORY_COLLAPSE_THREADS=OFF")


def _describe_excess(excess_s: float) -> Iterator[Note]:
    if excess_s > 0:
        text = f"regions take {format_seconds(excess_s)} longer than those that they are in"
        yield Note("contradictory times", text, 0.3)
