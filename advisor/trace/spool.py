"""Columns of long traces on disk: numpy arrays whose pages the system may reclaim at any time.

The files have no names any more, so that nothing is left behind whatever happens. They lie where temporary files do
(``TMPDIR``), and their room is claimed at once: a full disk is an error here and not a crash later.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

#: From this many events on, columns lie on disk.
SPOOLED_EVENTS = 1 << 20


def make_column(length: int, kind: npt.DTypeLike, fill: int, *, spooled: bool) -> npt.NDArray[Any]:
    """Return a new column of ``length`` values ``fill``; on disk where asked for and where there is room."""
    size = length * np.dtype(kind).itemsize
    if not spooled or not size:
        return np.full(length, fill, dtype=kind)
    try:
        with tempfile.TemporaryFile(prefix="gapwatch-") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            # as a plain array: slices of a memmap take ten times as long to make
            made = np.memmap(file, dtype=kind, shape=(length,)).view(np.ndarray)
    except OSError:
        return np.full(length, fill, dtype=kind)
    if fill:
        for begin in range(0, length, SPOOLED_EVENTS):
            made[begin : begin + SPOOLED_EVENTS] = fill
            release_memory([made])
    return made


def release_memory(columns: Iterable[npt.NDArray[Any]]) -> None:
    """Let go of the memory behind columns on disk; what they hold is read again when it is asked for."""
    for array in columns:
        mapped = _find_mapping(array)
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)


def _find_mapping(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the mapping behind a column, None where it lies in memory."""
    behind: object = array
    while isinstance(behind, np.ndarray):
        behind = behind.base
    return behind if isinstance(behind, mmap.mmap) else None
