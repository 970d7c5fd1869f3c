"""Columns of long traces on disk: numpy arrays whose pages the system may reclaim at any time, and what is put away.

The files have no names any more, so that nothing is left behind whatever happens; those that workers of a cluster read
lie by name in its directory. Others lie where temporary files do (``TMPDIR``). Their room is claimed at once: a full
disk is an error here and not a crash later.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from advisor.support.cluster import find_cluster

if TYPE_CHECKING:
    import numpy.typing as npt

#: From this many events on, columns lie on disk.
SPOOLED_EVENTS = 1 << 20
#: The names of files behind mappings, where they keep one.
_NAMES: Final[weakref.WeakKeyDictionary[mmap.mmap, str]] = weakref.WeakKeyDictionary()


def make_column(length: int, kind: npt.DTypeLike, fill: int, *, spooled: bool) -> npt.NDArray[Any]:
    """Return a new column of ``length`` values ``fill``; on disk where asked for and where there is room."""
    size = length * np.dtype(kind).itemsize
    if not spooled or not size:
        return np.full(length, fill, dtype=kind)
    try:
        with _open_file() as file:
            os.posix_fallocate(file.fileno(), 0, size)
            # as a plain array: slices of a memmap take ten times as long to make
            made = np.memmap(file, dtype=kind, shape=(length,)).view(np.ndarray)
            _name_mapping(made, file.name)
    except OSError:
        return np.full(length, fill, dtype=kind)
    if fill:
        for begin in range(0, length, SPOOLED_EVENTS):
            made[begin : begin + SPOOLED_EVENTS] = fill
            release_memory([made])
    return made


def _open_file() -> IO[bytes]:
    """Return a new file for a column, which keeps its name where workers of a cluster are to read it."""
    cluster = find_cluster()
    if cluster is None:
        return tempfile.TemporaryFile(prefix="gapwatch-")
    return tempfile.NamedTemporaryFile(prefix="column-", dir=cluster.folder, delete=False)


def _name_mapping(column: npt.NDArray[Any], name: object) -> None:
    mapped = _find_mapping(column)
    if mapped is not None and isinstance(name, str):
        _NAMES[mapped] = name


def open_column(path: str, length: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a column that others wrote to a file, which keeps its name."""
    if not length:
        return np.zeros(0, dtype=kind)
    column: npt.NDArray[Any] = np.memmap(path, dtype=kind, mode="r+", shape=(length,)).view(np.ndarray)
    _name_mapping(column, path)
    return column


def find_file(column: npt.NDArray[Any]) -> tuple[str, int] | None:
    """Return the file that workers of a cluster may read a column from, and the byte at which it begins there."""
    mapped = _find_mapping(column)
    if mapped is None or mapped not in _NAMES:
        return None
    mapped.flush()
    begin: int = np.frombuffer(mapped, dtype=np.uint8).ctypes.data
    return _NAMES[mapped], column.ctypes.data - begin


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


Number = TypeVar("Number", np.int64, np.float64)


class ArrayStore:
    """Arrays put away in a file until they are asked for; in memory where there is no room on disk.

    Whole numbers take four bytes each where they are small enough.
    """

    def __init__(self) -> None:
        self._size, self._number = 0, -1
        with suppress(OSError):
            file = tempfile.TemporaryFile(prefix="gapwatch-", buffering=0)  # noqa: SIM115 (lasts as long as the store)
            self._number = file.fileno()
            weakref.finalize(self, file.close)

    def spill_array(self, array: npt.NDArray[Number]) -> Callable[[], npt.NDArray[Number]]:
        """Return what gives ``array`` back."""
        kind, shape = array.dtype, array.shape
        narrow = array.astype(np.int32) if kind == np.int64 else array
        kept = np.ascontiguousarray(narrow if np.array_equal(narrow, array) else array)
        at, size = self._size, kept.nbytes
        try:
            os.posix_fallocate(self._number, at, max(size, 1))
            written = os.pwrite(self._number, kept.data, at) if size else 0
        except OSError:
            written = -1
        if written < size:  # no room, or more than the system writes at once
            return lambda: kept.astype(kind)
        self._size += size
        stored = kept.dtype

        def take_back() -> npt.NDArray[Number]:
            return np.frombuffer(os.pread(self._number, size, at), dtype=stored).astype(kind).reshape(shape)

        return take_back
