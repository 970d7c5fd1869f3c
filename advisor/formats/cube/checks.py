"""Does a CUBE profile agree with itself? What it says twice shows damage that nothing else would."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.formats.cube.anchor import CubeAnchor
    from advisor.formats.cube.metrics import MetricTable
    from advisor.model.records import FloatArray

#: Relative rounding of sums of times, and seconds by which a sum may differ all the same.
_ROUNDING: Final = 1e-6
_TINY: Final = 1e-9
#: Metrics of single calls: whether they are least or most, and what calls beyond them took.
_LIMITS: Final = {"min_time": (1, "shorter"), "max_time": (-1, "longer")}
_RANK: Final = re.compile(r"MPI Rank (\d+)")


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
        yield "a number of visits is no whole number"
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
