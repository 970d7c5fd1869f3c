"""Addresses of a process as places in files, which are the same in every process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.trace.recordings.processes import MappedObject, Process


def sorted_objects(process: Process) -> list[MappedObject]:
    """Return the mapped objects in the order of their addresses."""
    return [process.objects[begin] for begin in sorted(process.objects)]


def locate_addresses(process: Process, address: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return (n, 2): for each address the number of its object among ``sorted_objects``, -1 outside of all, and the
    place in its file.
    """
    objects = sorted_objects(process)
    keys = np.full((len(address), 2), -1, dtype=np.int64)
    if not objects:
        return keys
    begins = np.array([one.begin for one in objects], dtype=np.uint64)
    ends = np.array([one.end for one in objects], dtype=np.uint64)
    offsets = np.array([one.offset for one in objects], dtype=np.int64)
    at = np.searchsorted(begins, address, side="right") - 1
    inside = (at >= 0) & (address < ends[np.maximum(at, 0)])
    keys[inside, 0] = at[inside]
    keys[inside, 1] = (address[inside] - begins[at[inside]]).astype(np.int64) + offsets[at[inside]]
    return keys
