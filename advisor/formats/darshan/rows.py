"""Cells -> rows: seconds, operations and bytes of one sort of call on one file by one rank, by size and alignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.darshan.cells import COLLECTIVE, KINDS, SIZES, IoCells, select_cells

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.darshan.logs import ModuleTable, TracedFile
    from advisor.model.records import FloatArray, IntArray

_READ, _WRITE, _METADATA = range(3)
#: What may be said of reads and writes: they begin before the end of the one before; what they read was read before;
#: they read after writing, or the reverse; their buffer in memory is unaligned.
PATTERNS: Final = ("random", "reread", "switch", "unaligned memory")
#: How operations on a file are done: in MPI-IO alone or together, elsewhere (and where a file has both) not said.
_HOW: Final = ("", "independent ", "collective ")
#: All that calls may be called: the interface and what is done.
CALLS: Final = tuple(
    f"{module} {how}{what}"
    for module in ("POSIX", "STDIO", "MPI-IO")
    for what in (*KINDS, "write and sync", "sync", "sync, timed as writing")
    for how in (_HOW if module == "MPI-IO" else ("",))
)
_NUMBER: Final = {name: number for number, name in enumerate(CALLS)}
#: Cells that are divided into classes of size at a time, so that little memory is needed beside the rows.
_BLOCK: Final = 1 << 14
_LOWEST: Final = np.array([0, *(size + 1 for size in SIZES)], dtype=np.float64)
_HIGHEST: Final = np.array([*SIZES, 2.0**40])


@dataclass(frozen=True, slots=True)
class IoRows:
    """Columns of the same length: the call (an index into ``CALLS``), file, rank, seconds, operations, their bytes.

    ``bytes_each`` is the mean of the bytes, -1 where no operation with bytes is counted. ``alignment`` tells (1)
    operations that begin at a block of the file system from (2) those that begin inside one, where that is known (else
    0). ``calls`` is what the interface was asked for; of MPI-IO through POSIX that is more than ``count``, which leaves
    to POSIX what POSIX does. ``patterns`` (n, 4) are the shares of the operations by ``PATTERNS``.
    """

    call: IntArray
    file: IntArray
    rank: IntArray
    seconds: FloatArray
    count: IntArray
    calls: IntArray
    bytes: IntArray
    bytes_each: IntArray
    alignment: IntArray
    patterns: FloatArray


def join_rows(parts: Sequence[IoRows]) -> IoRows:
    """Return the rows of all parts."""
    return IoRows(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(IoRows)))


def make_empty_rows() -> IoRows:
    """Return no rows."""
    none = np.zeros(0, dtype=np.int64)
    return IoRows(none, none, none, np.zeros(0), none, none, none, none, none, np.zeros((0, len(PATTERNS))))


def build_metadata_rows(cells: IoCells) -> IoRows:
    """Return the rows of opening, closing, seeking and looking up."""
    some = np.flatnonzero((cells.operations[:, _METADATA] > 0) | (cells.seconds[:, _METADATA] > 0))
    count = cells.operations[some, _METADATA]
    call = np.full(len(cells), _NUMBER[f"{cells.module} {KINDS[_METADATA]}"])
    return _build_plain_rows(cells, some, call, cells.seconds[some, _METADATA], count, count)


def build_uncounted_rows(cells: IoCells, table: ModuleTable, which: npt.NDArray[np.bool_]) -> IoRows:
    """Return the rows of reads and writes of which the operations are counted elsewhere."""
    parts = []
    for kind in (_READ, _WRITE):
        some = np.flatnonzero(which & ((cells.operations[:, kind] > 0) | (cells.seconds[:, kind] > 0)))
        call = _select_calls(cells, table, kind, np.zeros(len(cells), dtype=bool))
        none = np.zeros(len(some), dtype=np.int64)
        parts.append(
            _build_plain_rows(cells, some, call, cells.seconds[some, kind], none, cells.operations[some, kind])
        )
    return join_rows(parts)


def build_data_rows(cells: IoCells, table: ModuleTable, traced: Mapping[tuple[int, int], TracedFile]) -> IoRows:
    """Return the rows of reads and writes, and those of forcing data to storage where its time is known."""
    forcing = _estimate_sync_seconds(cells, traced)
    told = ~np.isnan(forcing)
    parts = [_build_sync_rows(cells, forcing)]
    for kind in (_READ, _WRITE):
        call = _select_calls(cells, table, kind, told)
        seconds = cells.seconds[:, kind] - (np.nan_to_num(forcing) if kind == _WRITE else 0.0)
        for start in range(0, len(cells), _BLOCK):
            block = np.arange(start, min(start + _BLOCK, len(cells)))
            parts.append(_build_operation_rows(select_cells(cells, block), kind, call[block], seconds[block]))
        left = np.flatnonzero((cells.sized[:, kind].sum(axis=1) == 0) & (seconds > 0))
        none = np.zeros(len(left), dtype=np.int64)
        parts.append(_build_plain_rows(cells, left, call, seconds[left], none, none))
    return join_rows(parts)


def _build_operation_rows(cells: IoCells, kind: int, call: IntArray, seconds: FloatArray) -> IoRows:
    """Return the rows of all reads or writes: their seconds are shared out by number."""
    counts, moved = _split_by_alignment(cells)
    cell, size, unaligned = np.nonzero(counts[:, kind])
    count, size_bytes = counts[cell, kind, size, unaligned], moved[cell, kind, size, unaligned]
    total = cells.sized[cell, kind].sum(axis=1)
    return IoRows(
        call[cell], cells.file[cell], cells.rank[cell], seconds[cell] * count / total, count, count,
        size_bytes, size_bytes // count, (1 + unaligned) * (cells.module == "POSIX"),
        _compute_pattern_shares(cells, kind)[cell],
    )  # fmt: skip


def _compute_pattern_shares(cells: IoCells, kind: int) -> FloatArray:
    """Return which share of the reads or writes of each cell is of each of ``PATTERNS`` (cells, 4)."""
    operations = cells.operations[:, :2].sum(axis=1)
    parts = (cells.random[:, kind], cells.reread * (kind == _READ), cells.switches, cells.unaligned_memory)
    wholes = (cells.operations[:, kind], cells.bytes[:, _READ], operations, operations)
    pairs = zip(parts, wholes, strict=True)
    shares = [np.divide(part, whole, out=np.zeros(len(cells)), where=whole > 0) for part, whole in pairs]
    found: FloatArray = np.minimum(np.column_stack(shares), 1.0)
    return found


def _build_sync_rows(cells: IoCells, forcing: FloatArray) -> IoRows:
    """Return the rows of forcing data to storage; where its time is in that of writing they have none."""
    some = np.flatnonzero((cells.forced > 0) & (cells.module != "STDIO"))
    in_writing, alone = (_NUMBER.get(f"{cells.module} {name}", -1) for name in ("sync, timed as writing", "sync"))
    call = np.where(np.isnan(forcing), in_writing, alone)
    return _build_plain_rows(cells, some, call, np.nan_to_num(forcing)[some], cells.forced[some], cells.forced[some])


def _build_plain_rows(
    cells: IoCells, some: IntArray, call: IntArray, seconds: FloatArray, count: IntArray, calls: IntArray
) -> IoRows:
    """Return one row for each of ``some`` cells, of operations without bytes."""
    nothing = np.zeros(len(some), dtype=np.int64)
    return IoRows(
        call[some], cells.file[some], cells.rank[some], seconds, count, calls,
        nothing, nothing - 1, nothing, np.zeros((len(some), len(PATTERNS))),
    )  # fmt: skip


def _select_calls(cells: IoCells, table: ModuleTable, kind: int, told: npt.NDArray[np.bool_]) -> IntArray:
    """Return what reads or writes are called in each cell: the interface, how they are done, what is in their time."""
    forced = np.zeros(len(table), dtype=np.int64)
    np.add.at(forced, cells.record, cells.forced)
    blended = (forced[cells.record] > 0) & ~told & (kind == _WRITE) & (cells.module != "STDIO")
    words = (KINDS[kind], f"{KINDS[kind]} and sync")
    names = np.array([[_NUMBER.get(f"{cells.module} {how}{word}", -1) for word in words] for how in _HOW])
    found: IntArray = names[_find_access_modes(cells, table, kind), blended.astype(np.int64)]
    return found


def _find_access_modes(cells: IoCells, table: ModuleTable, kind: int) -> IntArray:
    """Return how the operations of each cell's file are done, an index into ``_HOW``."""
    if cells.module != "MPI-IO":
        return np.zeros(len(cells), dtype=np.int64)
    together = sum((np.maximum(table.counters[name], 0) for name in COLLECTIVE[kind]), np.zeros(len(table), np.int64))
    total = np.zeros(len(table), dtype=np.int64)
    np.add.at(total, cells.record, cells.operations[:, kind])
    alone, all_together, mixed = _HOW.index("independent "), _HOW.index("collective "), 0
    return np.where(together == 0, alone, np.where(together >= total, all_together, mixed))[cells.record]


def _estimate_sync_seconds(cells: IoCells, traced: Mapping[tuple[int, int], TracedFile]) -> FloatArray:
    """Return the seconds of forcing data to storage: writing less the single writes that DXT traced, NaN without."""
    found = np.full(len(cells), np.nan)
    if cells.module != "POSIX" or not traced:
        return found
    pairs = zip(cells.file.tolist(), cells.rank.tolist(), strict=True)
    for n, key in enumerate(pairs):
        seen = traced.get(key)
        if seen is not None and seen.writes == cells.operations[n, _WRITE]:
            found[n] = max(cells.seconds[n, _WRITE] - seen.writing_s, 0.0)
    return found


def _split_by_alignment(cells: IoCells) -> tuple[IntArray, IntArray]:
    """Return operations and their bytes (cells, kinds, sizes, 2), the aligned ones first.

    Darshan counts unaligned operations of a file over all sizes: here each size has as large a part of them.
    """
    shape = cells.sized.shape
    flat = cells.sized.reshape(len(cells), shape[1] * shape[2])
    before = np.cumsum(flat, axis=1)
    ratio = np.divide(cells.unaligned, before[:, -1], out=np.zeros(len(cells)), where=before[:, -1] > 0)
    unaligned = _round_differences(np.minimum(ratio, 1.0)[:, None] * before).reshape(shape)
    counts = np.stack([cells.sized - unaligned, unaligned], axis=3)
    exact = (_estimate_mean_bytes(cells)[:, :, :, None] * counts).reshape(*shape[:2], 2 * shape[2])
    moved = _round_differences(np.cumsum(exact, axis=2)).reshape(counts.shape)
    return counts, np.maximum(moved, 0)


def _round_differences(sums: FloatArray) -> IntArray:
    """Return whole numbers whose sums along the last axis are the rounded ``sums``."""
    whole: IntArray = np.rint(sums).astype(np.int64)
    whole[..., 1:] -= whole[..., :-1].copy()
    return whole


def _estimate_mean_bytes(cells: IoCells) -> FloatArray:
    """Return the mean bytes of an operation by class of size (cells, kinds, sizes): within it, and right in sum."""
    count, total = cells.sized.astype(np.float64), cells.bytes.astype(np.float64)
    least, most = (count * _LOWEST).sum(axis=2), (count * _HIGHEST).sum(axis=2)
    part = np.divide(total - least, most - least, out=np.zeros_like(total), where=most > least)
    mean = _LOWEST + (_HIGHEST - _LOWEST) * np.clip(part, 0.0, 1.0)[:, :, None]
    sums = (mean * count).sum(axis=2)
    found: FloatArray = mean * np.divide(total, sums, out=np.ones_like(total), where=sums > 0)[:, :, None]
    return found
