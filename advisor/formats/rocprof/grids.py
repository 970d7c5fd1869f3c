"""How well a kernel's work-groups fill a device of AMD."""

from __future__ import annotations

from collections.abc import Sequence


def compute_groups_per_unit(items: Sequence[object], group: Sequence[object], units: object) -> float:
    """Return the work-groups of a kernel for each compute unit, -1 where they are not told.

    ``items`` and ``group`` are the work-items of the grid and of a work-group in three directions.
    """
    if not (isinstance(units, int) and units > 0):
        return -1.0
    groups = 1
    for whole, part in zip(items, group, strict=True):
        if not (isinstance(whole, int) and isinstance(part, int) and whole > 0 and part > 0):
            return -1.0
        groups *= -(-whole // part)
    return groups / units
