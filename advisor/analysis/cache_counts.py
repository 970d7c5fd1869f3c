"""Loads and stores, and which of them missed a cache, by whatever name a tool counted them under."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.model.records import FloatArray

#: Counts of one thing, the surest first; what stands together is added up where it was counted.
_ACCESSES: Final = (("compiled_ops.load", "compiled_ops.store"), ("L1-dcache-loads", "L1-dcache-stores"))
_MISSES: Final = {
    "L1": (("misses.L1",), ("L1-dcache-load-misses", "L1-dcache-store-misses")),
    "LL": (
        ("misses.LL",), ("misses.L4",), ("misses.L3",), ("misses.L2",), ("LLC-load-misses", "LLC-store-misses"),
        ("cache-misses",),
    ),
}  # fmt: skip


def list_accesses(counts: Mapping[str, FloatArray]) -> FloatArray | None:
    """Return the loads and stores by region and processor; None where none were counted."""
    return _add_first(counts, _ACCESSES)


def list_misses(counts: Mapping[str, FloatArray], level: str) -> FloatArray | None:
    """Return the misses of the first (``L1``) or the last cache (``LL``); None where none were counted."""
    return _add_first(counts, _MISSES[level])


def _add_first(counts: Mapping[str, FloatArray], groups: tuple[tuple[str, ...], ...]) -> FloatArray | None:
    for first, *others in groups:
        if first in counts:
            return sum((counts[name] for name in others if name in counts), counts[first])
    return None
