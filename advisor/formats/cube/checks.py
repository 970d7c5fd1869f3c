"""Does a CUBE profile agree with itself? What it says twice shows damage that nothing else would."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.cube.metrics import inclusive

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from advisor.formats.cube.anchor import Anchor
    from advisor.formats.cube.metrics import Table
    from advisor.model.records import FloatArray

#: Relative rounding of sums of times, and seconds by which a sum may differ all the same.
_ROUNDING: Final = 1e-6
_TINY: Final = 1e-9
_RANK: Final = re.compile(r"MPI Rank (\d+)")


def disagreements(table: Table, anchor: Anchor, visits: FloatArray | None) -> Iterator[str]:
    """Yield what contradicts something else in the profile."""
    yield from _of_names(anchor)
    yield from _of_times(table, visits)


def _of_names(anchor: Anchor) -> Iterator[str]:
    for number in sorted(set(anchor.callee.values())):
        region = anchor.regions[number]
        if len(region.name) == len(region.mangled) and _differ(region.name, region.mangled) == 1:
            yield f"region {number} has two names, {region.name[:60]} and {region.mangled[:60]}"
    for group in {id(place.group): place.group for place in anchor.places}.values():
        told = _RANK.fullmatch(group.name)
        if told and int(told[1]) != group.rank:
            yield f"{group.name} is said to be rank {group.rank}"


def _differ(one: str, other: str) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def _of_times(table: Table, visits: FloatArray | None) -> Iterator[str]:
    """Yield where shortest and longest calls do not fit to the time of all calls, or calls to their number."""
    total = table.totals.get("time")
    if visits is None or total is None:
        return
    if (visits != np.floor(visits)).any():
        yield "a number of visits is no whole number"
    spent = (total > _TINY) & (inclusive(visits, table.parent) == 0)
    if spent.any():
        yield f"call path {_first(table, spent)} took time without being visited"
    for name, sign, word in (("min_time", 1, "shorter"), ("max_time", -1, "longer")):
        limit = table.extreme(name)
        if limit is None:
            continue
        beyond = (visits > 0) & (sign * (limit * visits - total) > _ROUNDING * total + _TINY)
        if beyond.any():
            yield f"all calls of call path {_first(table, beyond)} took {word} than its {name} allows"


def _first(table: Table, cells: npt.NDArray[np.bool_]) -> int:
    return int(table.order[np.flatnonzero(cells.any(axis=1))[0]])
