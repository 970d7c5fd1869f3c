"""Numbers of Caliper's records: those that no run can give are refused, with the record they stand in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.caliper.hardware_names import is_hardware_metric
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

_HIGHEST: Final = 1e18  # nanoseconds of thirty years
_MOST: Final = 10_000_000  # ranks


def check_finite(column: FloatArray, path: Path, name: str) -> None:
    """Raise ``InputError`` for a value below zero or beyond any run; NaN is what a record does not have.

    Shares of hardware counters may be anything: counters that take turns miss.
    """
    if is_hardware_metric(name):
        return
    bad = np.flatnonzero((column < 0) | (column > _HIGHEST))
    if len(bad):
        raise InputError(path, f"{column[bad[0]]:g} is impossible for {name}", f"record {bad[0] + 1}")


def to_whole_numbers(column: FloatArray | None, count: int, path: Path, name: str) -> IntArray:
    """Return a column of numbers of ranks or threads (count,), -1 where a record has none."""
    if column is None:
        return np.full(count, -1, dtype=np.int64)
    known = ~np.isnan(column)
    bad = np.flatnonzero(known & ((column != np.floor(column)) | (column >= _MOST)))
    if len(bad):
        raise InputError(path, f"{column[bad[0]]:g} is impossible for {name}", f"record {bad[0] + 1}")
    return np.where(known, column, -1.0).astype(np.int64)
