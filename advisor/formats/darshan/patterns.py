"""How files are gone through, from Darshan's counters: out of order, and bytes that are read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.formats.darshan.logs import ModuleTable
    from advisor.model.records import IntArray

_SEQUENTIAL: Final = ("SEQ_READS", "SEQ_WRITES")


def count_random_operations(table: ModuleTable, operations: IntArray, ranks: int) -> IntArray:
    """Return the reads and writes (records, 2) that begin before the end of the one before; 0 where nobody counts.

    Darshan calls an operation sequential that begins behind the last byte of the one before, for which it takes byte 0
    at first: the first operation of each rank on a file is never one, and is left out here.
    """
    found = np.zeros_like(operations)
    first = np.where(table.ranks < 0, ranks, 1)
    for kind, name in enumerate(_SEQUENTIAL):
        if name in table.counters:
            found[:, kind] = np.maximum(operations[:, kind] - np.maximum(table.counters[name], 0) - first, 0)
    return found


def count_switches(table: ModuleTable, ranks: int) -> IntArray:
    """Return how often ranks turn from reading a file to writing it or back (records,); a first time is none."""
    if "RW_SWITCHES" not in table.counters:
        return np.zeros(len(table), dtype=np.int64)
    found: IntArray = np.maximum(table.counters["RW_SWITCHES"] - np.where(table.ranks < 0, ranks, 1), 0)
    return found


def estimate_reread_bytes(table: ModuleTable) -> IntArray:
    """Return how many bytes of each record (records,) were read before, by the same rank or another one: at least.

    A file of which more is read than lies before the last byte read was read twice in part. Files that the run also
    writes count nothing: what is read again may be new. Records of a file share what is read again by their bytes.
    """
    if "MAX_BYTE_READ" not in table.counters:
        return np.zeros(len(table), dtype=np.int64)
    files, place = np.unique(table.ids, return_inverse=True)
    read, written = (np.maximum(table.counters[name], 0) for name in ("BYTES_READ", "BYTES_WRITTEN"))
    extent = np.zeros(len(files), dtype=np.int64)
    np.maximum.at(extent, place, np.where(read > 0, table.counters["MAX_BYTE_READ"] + 1, 0))
    total = np.bincount(place, read.astype(np.float64), len(files))
    is_written = np.bincount(place, written.astype(np.float64), len(files)) > 0
    again = np.where(is_written, 0.0, np.maximum(total - extent, 0.0))
    share = np.divide(again, total, out=np.zeros(len(files)), where=total > 0)
    found: IntArray = np.rint(share[place] * read).astype(np.int64)
    return found
