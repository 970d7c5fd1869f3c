"""Does a CUBE profile agree with itself? What it says twice shows damage that nothing else would."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.cube.metrics import to_inclusive

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from advisor.formats.cube.anchor import CubeAnchor
    from advisor.formats.cube.metrics import MetricTable
    from advisor.model.records import FloatArray

#: Relative rounding of sums of times, and seconds by which a sum may differ all the same.
_ROUNDING: Final = 1e-6
_TINY: Final = 1e-9
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
    total = table.totals.get("time")
    if visits is None or total is None:
        return
    if (visits != np.floor(visits)).any():
        yield "a number of visits is no whole number"
    spent = (total > _TINY) & (to_inclusive(visits, table.parent) == 0)
    if spent.any():
        yield f"call path {_first_path(table, spent)} took time without being visited"
    for name, sign, word in (("min_time", 1, "shorter"), ("max_time", -1, "longer")):
        limit = table.read_extreme(name)
        if limit is None:
            continue
        beyond = (visits > 0) & (sign * (limit * visits - total) > _ROUNDING * total + _TINY)
        if beyond.any():
            yield f"all calls of call path {_first_path(table, beyond)} took {word} than its {name} allows"


def _first_path(table: MetricTable, cells: npt.NDArray[np.bool_]) -> int:
    return int(table.order[np.flatnonzero(cells.any(axis=1))[0]])
