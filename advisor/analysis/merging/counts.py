"""Merge counts from another recording of the run into the leader's regions by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray, Profile, Region

#: A region with this share of all work is all that the leader can tell apart.
_ALL: Final = 0.95


def find_new_counts(leader: Profile, other: Profile) -> tuple[str, ...]:
    """Return the counts that only ``other`` has."""
    return tuple(name for name in other.counts if name not in leader.counts)


def add_counts(leader: Profile, other: Profile, columns: IntArray) -> Profile:
    """Return ``leader`` with the counts that only ``other`` has; ``columns`` (Q,) are its processors there.

    Regions are the same by name, and by file where both know one. Functions that the leader does not know go to the
    region that holds all of its work, if one does, else they follow as regions in no phase.
    """
    names = find_new_counts(leader, other)
    if not names:
        return leader
    rows, extra = _match_regions(leader, other)
    regions = (*leader.regions, *extra)
    grown = {name: np.vstack((table, np.zeros((len(extra), len(columns))))) for name, table in leader.counts.items()}
    for name in names:
        grown[name] = np.zeros((len(regions), len(columns)))
        np.add.at(grown[name], rows, other.counts[name][:, columns])
    return replace(leader, regions=regions, counts=grown)


def _match_regions(leader: Profile, other: Profile) -> tuple[IntArray, tuple[Region, ...]]:
    """Return the leader's region of each of the other's, and the regions to add for those without one."""
    everything = _find_dominant_region(leader)
    places: dict[str, list[int]] = {}
    for number, region in enumerate(leader.regions):
        places.setdefault(region.name, []).append(number)
    rows: list[int] = []
    extra: list[Region] = []
    for region in other.regions:
        found = [n for n in places.get(region.name, ()) if _is_same_file(leader.regions[n], region)]
        if found:
            rows.append(next((n for n in found if leader.regions[n].threaded == region.threaded), found[0]))
        elif everything is not None:
            rows.append(everything)
        else:
            rows.append(len(leader.regions) + len(extra))
            extra.append(region)
    return np.array(rows, dtype=np.int64), tuple(extra)


def _is_same_file(one: Region, other: Region) -> bool:
    if one.file is None or other.file is None:
        return True
    return one.file.rsplit("/", 1)[-1] == other.file.rsplit("/", 1)[-1]


def _find_dominant_region(leader: Profile) -> int | None:
    """Return the region that holds nearly all of the leader's working time, None where several share it."""
    work: FloatArray = leader.sum_by_region("wall_s").sum(axis=1)
    for name in ("wait_s", "sync_s", "transfer_s", "io_s"):
        work -= leader.sum_by_region(name).sum(axis=1)
    largest = int(work.argmax())
    return largest if work[largest] >= _ALL * work.sum() > 0 else None
