"""MPI-IO calls POSIX: what of its time is not that of the calls below, so that no second counts twice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.grouping import sum_by_group

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.darshan.cells import IoCells
    from advisor.model.records import FloatArray, IntArray

#: Files beside a file that Open MPI makes while it opens it.
_HELPER: Final = re.compile(r"(.+)(\.locktest\.\d+|_cid-[-\d]+\.sm)", re.DOTALL)


def subtract_posix(mpi: IoCells, posix: IoCells, names: Mapping[int, str]) -> tuple[IoCells, npt.NDArray[np.bool_]]:
    """Return MPI-IO's cells with their own seconds only, and which of them read or write through POSIX.

    The own seconds of a file are those of MPI-IO less those of POSIX in the same file and in the helper files of
    the MPI library: exchanging data and waiting for each other in collective calls. Ranks share them in proportion to
    what each has more than POSIX. Operations that POSIX shows are counted there.
    """
    files, place = np.unique(mpi.file, return_inverse=True)
    below = _find_places(files, _served_files(posix, files, names))
    nested = _nested_seconds(mpi, posix, files, place, below)
    excess = _own_seconds(mpi.seconds, nested)
    count = len(files)
    of_file = sum_by_group(place, mpi.seconds.sum(axis=1), count)
    of_posix = sum_by_group(below[below >= 0], posix.seconds[below >= 0].sum(axis=1), count)
    own = np.maximum(of_file - of_posix, 0.0)
    total = sum_by_group(place, excess.sum(axis=1), count)
    scale = np.divide(own, total, out=np.zeros(count), where=total > 0)
    direct = _find_places(files, posix.file)
    counted = sum_by_group(direct[direct >= 0], posix.operations[direct >= 0, :2].sum(axis=1).astype(np.float64), count)
    return replace(mpi, seconds=excess * scale[place][:, None]), counted[place] > 0


def _own_seconds(mpi: FloatArray, nested: FloatArray) -> FloatArray:
    """Return what each cell of MPI-IO has more than the calls below it (cells, kinds).

    A write may read below (data sieving): the kinds of a cell are compared together, and share what is left in
    proportion to what each has more, or to all that they have.
    """
    more = np.maximum(mpi - nested, 0.0)
    weights = np.where(more.sum(axis=1, keepdims=True) > 0, more, mpi)
    total = weights.sum(axis=1)
    left = np.maximum(mpi.sum(axis=1) - nested.sum(axis=1), 0.0)
    own: FloatArray = weights * np.divide(left, total, out=np.zeros_like(total), where=total > 0)[:, None]
    return own


def _served_files(posix: IoCells, files: IntArray, names: Mapping[int, str]) -> IntArray:
    """Return for each of POSIX' cells the file that it belongs to: its own, or the one whose helper file it is."""
    ids = {name: number for number, name in names.items() if number in set(files.tolist())}
    tails = {name.rsplit("/", 1)[-1]: number for name, number in ids.items()}
    served = {}
    for number in set(posix.file.tolist()):
        found = _HELPER.fullmatch(names.get(number, ""))
        base = ids.get(found[1], tails.get(found[1].rsplit("/", 1)[-1])) if found else None
        served[number] = number if base is None else base
    return np.array([served[number] for number in posix.file.tolist()], dtype=np.int64)


def _find_places(files: IntArray, wanted: IntArray) -> IntArray:
    """Return the places of ``wanted`` in the sorted ``files``; -1 for what is not there."""
    place = np.minimum(np.searchsorted(files, wanted), len(files) - 1)
    return np.where(files[place] == wanted, place, -1)


def _nested_seconds(mpi: IoCells, posix: IoCells, files: IntArray, place: IntArray, below: IntArray) -> FloatArray:
    """Return POSIX' seconds (cells, kinds) below each of MPI-IO's cells: of the same file, rank and kind."""
    ranks = 1 + max(int(mpi.rank.max()), int(posix.rank.max(initial=0)))
    table = np.zeros((len(files) * ranks, posix.seconds.shape[1]))
    inside = below >= 0
    np.add.at(table, below[inside] * ranks + posix.rank[inside], posix.seconds[inside])
    nested: FloatArray = table[place * ranks + mpi.rank]
    return nested
