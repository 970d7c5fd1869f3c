"""The records of a log as cells: one for each file and rank, with seconds and operations of reading and writing."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor.formats.darshan import rank_shares
from advisor.formats.darshan.rank_shares import RankExtreme

if TYPE_CHECKING:
    from advisor.formats.darshan.logs import DarshanLog, ModuleTable
    from advisor.model.records import FloatArray, IntArray

_SEQUENTIAL: Final = ("SEQ_READS", "SEQ_WRITES")

SHARED: Final = -1
#: Stands for the file of several shared records that are taken together.
OTHERS: Final = -2
#: How many cells shared files may have.
CELL_LIMIT: Final = 200_000
#: What calls do: read, write (fsync and fflush are in here) and the rest: open, close, seek, stat.
KINDS: Final = ("read", "write", "metadata")
#: The upper ends of Darshan's classes of sizes, bytes; the last one is open.
SIZES: Final = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
_EDGES: Final = ("0", "100", "1K", "10K", "100K", "1M", "4M", "10M", "100M", "1G", "PLUS")
_SIZE_NAMES: Final = tuple(f"{low}_{high}" for low, high in pairwise(_EDGES))
#: Counters that add up to the operations of a kind, by module.
_OPERATIONS: Final = {
    "POSIX": (("READS",), ("WRITES",), ("OPENS", "SEEKS", "STATS", "MMAPS")),
    "STDIO": (("READS",), ("WRITES",), ("OPENS", "FDOPENS", "SEEKS")),
    "MPI-IO": (
        ("INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"),
        ("INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"),
        ("INDEP_OPENS", "COLL_OPENS", "VIEWS"),
    ),
}
#: Counters of operations that all ranks do together.
COLLECTIVE: Final = (("COLL_READS", "SPLIT_READS"), ("COLL_WRITES", "SPLIT_WRITES"))
_FORCING: Final = {"POSIX": ("FSYNCS", "FDSYNCS"), "STDIO": ("FLUSHES",), "MPI-IO": ("SYNCS",)}
#: In the place of a rank where the log names none.
_NOBODY: Final = RankExtreme(-1, 0.0)


@dataclass(frozen=True, slots=True)
class IoCells:
    """What ranks did with files through one interface.

    ``record`` (n,) is the place in the module's table, ``file`` (n,) the record id, ``rank`` (n,). ``seconds`` and
    ``operations`` (n, 3) are by ``KINDS``; ``sized`` (n, 2, 10) are reads and writes by class of size, ``bytes`` (n, 2)
    what they moved. ``forced`` (n,) are calls of fsync and the like, ``unaligned`` (n,) operations at an offset that is
    no multiple of the file system's block, ``unaligned_memory`` (n,) those from or to such an address. ``random``
    (n, 2) are operations that do not begin behind the one before, ``switches`` (n,) changes between reading and
    writing, ``reread`` (n,) bytes that were read before.
    """

    module: str
    record: IntArray
    file: IntArray
    rank: IntArray
    seconds: FloatArray
    operations: IntArray
    sized: IntArray
    bytes: IntArray
    forced: IntArray
    unaligned: IntArray
    unaligned_memory: IntArray
    random: IntArray
    switches: IntArray
    reread: IntArray

    def __len__(self) -> int:
        return len(self.record)


_COLUMNS: Final = tuple(field.name for field in fields(IoCells) if field.name != "module")


def build_cells(log: DarshanLog, module: str) -> IoCells:
    """Return the cells of a module; a file that all ranks share has one for each of them, estimated.

    Where files times ranks are more than ``CELL_LIMIT``, the shared files with the fewest seconds are one, ``OTHERS``.
    """
    table = log.tables[module]
    found = build_record_cells(module, table, log.processes)
    shared = np.flatnonzero(table.ranks == SHARED)
    if not len(shared):
        return found
    own = select_cells(found, np.flatnonzero(table.ranks != SHARED))
    heat = _compute_heat(log, module, own, found.bytes[shared].sum(axis=0))
    order = shared[np.argsort(-found.seconds[shared].sum(axis=1), kind="stable")]
    most = max(CELL_LIMIT // log.processes, 1)
    parts = [
        _divide_record(found, n, _find_extremes(table, int(n)), log.processes, heat) for n in order[:most].tolist()
    ]
    if len(order) > most:
        rest = _sum_records(found, order[most:])
        parts.append(_divide_record(rest, 0, _RankExtremes(_NOBODY, _NOBODY, _NOBODY, _NOBODY), log.processes, heat))
    return _join_cells(module, [own, *parts])


def build_record_cells(module: str, table: ModuleTable, ranks: int) -> IoCells:
    """Return one cell for each record of a run of so many ``ranks``, with rank -1 for the shared ones."""
    operations = np.column_stack([_sum_counters(table, names) for names in _OPERATIONS[module]])
    moved = np.column_stack([_sum_counters(table, (name,)) for name in ("BYTES_READ", "BYTES_WRITTEN")])
    return IoCells(
        module,
        np.arange(len(table)),
        table.ids,
        table.ranks,
        np.column_stack([np.maximum(table.times[f"{kind}_TIME"], 0.0) for kind in ("READ", "WRITE", "META")]),
        operations,
        _count_by_size(module, table, operations, moved),
        moved,
        _sum_counters(table, _FORCING[module]),
        _sum_counters(table, ("FILE_NOT_ALIGNED",)),
        _sum_counters(table, ("MEM_NOT_ALIGNED",)),
        count_random_operations(table, operations[:, :2], ranks),
        count_switches(table, ranks),
        estimate_reread_bytes(table),
    )


def _sum_counters(table: ModuleTable, names: tuple[str, ...]) -> IntArray:
    """Return the sum of counters; those that Darshan could not observe (-1), or does not have, count nothing."""
    found: IntArray = np.zeros(len(table), dtype=np.int64)
    for name in names:
        if name in table.counters:
            found += np.maximum(table.counters[name], 0)
    return found


def _count_by_size(module: str, table: ModuleTable, operations: IntArray, moved: IntArray) -> IntArray:
    """Return the operations by class of size; where the module has no classes, all are in that of the mean."""
    sized = np.zeros((len(table), 2, len(_SIZE_NAMES)), dtype=np.int64)
    if module == "POSIX":
        for kind, word in enumerate(("READ", "WRITE")):
            for number, name in enumerate(_SIZE_NAMES):
                sized[:, kind, number] = _sum_counters(table, (f"SIZE_{word}_{name}",))
        return sized
    mean = moved / np.maximum(operations[:, :2], 1)
    place = np.searchsorted(SIZES, mean)
    for kind in range(2):
        sized[np.arange(len(table)), kind, place[:, kind]] = operations[:, kind]
    return sized


def _compute_heat(log: DarshanLog, module: str, own: IoCells, shared: IntArray) -> list[FloatArray | None]:
    """Return what each rank read and wrote in shared files, bytes (ranks,), where the heat map tells."""
    found: list[FloatArray | None] = []
    for kind in range(2):
        heat, known = np.zeros(log.processes), np.zeros(log.processes)
        for (name, rank), moved in log.heat.items():
            if name == module and 0 <= rank < log.processes:
                heat[rank] += moved[kind]
        np.add.at(known, own.rank, own.bytes[:, kind].astype(np.float64))
        found.append(rank_shares.compute_remaining_heat(heat, known, float(shared[kind])) if heat.any() else None)
    return found


class _RankExtremes(NamedTuple):
    """The fastest and the slowest rank of a shared file: the bytes and the seconds of each."""

    fewest: RankExtreme
    most: RankExtreme
    fastest: RankExtreme
    slowest: RankExtreme


def _find_extremes(table: ModuleTable, n: int) -> _RankExtremes:
    fast, slow = (int(table.counters[name][n]) for name in ("FASTEST_RANK", "SLOWEST_RANK"))
    return _RankExtremes(
        RankExtreme(fast, float(table.counters["FASTEST_RANK_BYTES"][n])),
        RankExtreme(slow, float(table.counters["SLOWEST_RANK_BYTES"][n])),
        RankExtreme(fast, float(table.times["FASTEST_RANK_TIME"][n])),
        RankExtreme(slow, float(table.times["SLOWEST_RANK_TIME"][n])),
    )


def _divide_record(every: IoCells, n: int, known: _RankExtremes, ranks: int, heat: list[FloatArray | None]) -> IoCells:
    """Return the cells of all ranks for record ``n``, which they share."""
    moved = rank_shares.share_among_ranks(float(every.bytes[n].sum()), ranks, known.fewest, known.most)
    took = rank_shares.share_among_ranks(float(every.seconds[n].sum()), ranks, known.fastest, known.slowest)
    busy = [moved if part is None else part for part in heat]
    weights = np.stack([*busy, np.ones(ranks)])
    sized = [
        np.stack([rank_shares.round_shares(int(count), busy[kind]) for count in every.sized[n, kind]], axis=1)
        for kind in range(2)
    ]
    return IoCells(
        every.module,
        np.full(ranks, every.record[n]),
        np.full(ranks, every.file[n]),
        np.arange(ranks),
        rank_shares.balance_shares(every.seconds[n], took, weights).T,
        np.column_stack(
            [rank_shares.round_shares(int(count), weights[kind]) for kind, count in enumerate(every.operations[n])]
        ),
        np.stack(sized, axis=1),
        np.column_stack([rank_shares.round_shares(int(every.bytes[n, kind]), busy[kind]) for kind in range(2)]),
        rank_shares.round_shares(int(every.forced[n]), busy[1]),
        rank_shares.round_shares(int(every.unaligned[n]), busy[0] + busy[1]),
        rank_shares.round_shares(int(every.unaligned_memory[n]), busy[0] + busy[1]),
        np.column_stack([rank_shares.round_shares(int(every.random[n, kind]), busy[kind]) for kind in range(2)]),
        rank_shares.round_shares(int(every.switches[n]), busy[0] + busy[1]),
        rank_shares.round_shares(int(every.reread[n]), busy[0]),
    )


def _sum_records(cells: IoCells, rows: IntArray) -> IoCells:
    """Return one record with the sums of several."""
    first = {"record": rows[:1], "file": np.array([OTHERS]), "rank": np.array([SHARED])}
    sums = {name: getattr(cells, name)[rows].sum(axis=0, keepdims=True) for name in _COLUMNS if name not in first}
    return IoCells(cells.module, **first, **sums)


def select_cells(cells: IoCells, rows: IntArray) -> IoCells:
    """Return some of the cells."""
    return IoCells(cells.module, **{name: getattr(cells, name)[rows] for name in _COLUMNS})


def _join_cells(module: str, parts: list[IoCells]) -> IoCells:
    return IoCells(module, **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS})


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
