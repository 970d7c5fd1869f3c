"""A log -> a Profile: the seconds of input and output by call, file and rank; the rest of the run is one whole.

A log knows nothing of computing, communicating and waiting. Each rank's wall time is that of the run; what is not I/O
stands in the region of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.darshan import cells, layers, rank_shares, rows
from advisor.model.records import (
    ALIGNED_FILE,
    CAUSE_CATEGORIES,
    SMALL_IO_B,
    UNALIGNED_FILE,
    Causes,
    FloatArray,
    IntArray,
    Note,
    Phase,
    Processor,
    Profile,
    Region,
    Status,
)
from advisor.model.units import format_seconds, format_share

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.darshan.logs import DarshanLog, ModuleTable
    from advisor.formats.darshan.rows import IoRows

#: Kinds of causes, by ``Rows.alignment``.
KINDS: Final = ("file", ALIGNED_FILE, UNALIGNED_FILE)
#: Interfaces that reach storage by themselves, of which nothing is read here.
_UNREAD: Final = ("DFS", "DAOS")
_PENALTIES: Final = {"files left out": 0.15, "whole seconds": 0.1, "negative counters": 0.1, "interfaces left out": 0.1}
#: Before this version of the format runs are timed in whole seconds, which matters in runs shorter than this.
_FINE: Final = "3.41"
_COARSE_S: Final = 20.0
#: Negative seconds up to this much are rounding.
_ROUNDING_S: Final = 1e-3
#: Counters of MPI-IO: opens with hints, and all of them.
_OPENING: Final = (("HINTS",), ("INDEP_OPENS", "COLL_OPENS"))
#: One server delivers smaller files soon enough.
_SPREAD_B: Final = 100 << 20
#: Of when so much of the bytes move, a note tells.
_MOST: Final = 0.9


def from_log(log: DarshanLog, path: Path) -> Profile:
    """Return the profile of the run that ``log`` describes."""
    found = _limit_estimates(log, _collect_rows(log))
    program = PurePosixPath(log.command.split(" ", 1)[0]).name or path.stem
    names, call = np.unique(found.call, return_inverse=True)
    regions = (Region(program), *(Region(rows.CALLS[name]) for name in names.tolist()))
    io_s = _sum_by_region(len(regions), log.processes, call + 1, found.rank, found.seconds)
    wall_s = io_s.copy()
    wall_s[0] = np.maximum(log.seconds - io_s.sum(axis=0), 0.0)
    arrays = {"wall_s": wall_s[:, :, None], "io_s": io_s[:, :, None]}
    return Profile(
        program=program,
        run=f"{log.job}.{log.start}",
        reader="darshan",
        actual_s=log.seconds,
        processors=tuple(Processor(rank, 0, log.hosts.get(rank)) for rank in range(log.processes)),
        regions=regions,
        phases=(Phase("the whole run", "whole", np.arange(len(regions)), arrays),),
        status={"wall_s": "measured", "io_s": _find_status(log)},
        started=_format_start_time(log),
        paradigms=("mpi",) if log.processes > 1 or "MPI-IO" in log.tables else (),
        counts={
            **_count_operations(found, call + 1, len(regions), log.processes),
            **_count_bursts(log, len(regions)),
            **_sum_one_server(log, found, call + 1, len(regions)),
        },
        causes=_build_causes(log, found, call + 1),
        notes=tuple(_build_notes(log)),
    )


def _collect_rows(log: DarshanLog) -> IoRows:
    """Return what all interfaces did; seconds of MPI-IO without those of POSIX below it."""
    found = {name: cells.build_cells(log, name) for name, table in log.tables.items() if len(table)}
    parts = [rows.build_metadata_rows(each) for name, each in found.items() if name != "MPI-IO"]
    parts += [
        rows.build_data_rows(each, log.tables[name], log.traced_files)
        for name, each in found.items()
        if name != "MPI-IO"
    ]
    if "MPI-IO" in found:
        mpi, table = found["MPI-IO"], log.tables["MPI-IO"]
        posix = found.get("POSIX")
        through = np.zeros(len(mpi), dtype=bool)
        if posix is not None:
            mpi, through = layers.subtract_posix(mpi, posix, log.names)
        direct = cells.select_cells(mpi, np.flatnonzero(~through))
        parts += [
            rows.build_metadata_rows(mpi),
            rows.build_uncounted_rows(mpi, table, through),
            rows.build_data_rows(direct, table, {}),
        ]
    return rows.join_rows(parts) if parts else rows.make_empty_rows()


def _limit_estimates(log: DarshanLog, found: IoRows) -> IoRows:
    """Return the rows with no rank busier than the run is long, as far as its part in shared files is an estimate."""
    shared = np.concatenate([table.ids[table.ranks == cells.SHARED] for table in log.tables.values()] or [[]])
    guessed = np.isin(found.file, [*shared.tolist(), cells.OTHERS])
    ranks = log.processes
    if not (np.bincount(found.rank, found.seconds, ranks) > log.seconds).any() or not guessed.any():
        return found
    known = np.bincount(found.rank[~guessed], found.seconds[~guessed], ranks)
    _, group = np.unique(np.stack((found.call[guessed], found.file[guessed])), axis=1, return_inverse=True)
    seconds = found.seconds.copy()
    room_s = np.maximum(log.seconds - known, 0.0)
    seconds[guessed] = rank_shares.limit_to_run(seconds[guessed], group, found.rank[guessed], room_s)
    return replace(found, seconds=seconds)


def _sum_by_region(
    regions: int, processors: int, row: IntArray, column: IntArray, values: FloatArray | IntArray
) -> FloatArray:
    """Return values added up by region and processor (R, Q)."""
    found = np.zeros((regions, processors))
    np.add.at(found, (row, column), values)
    return found


def _count_operations(found: IoRows, call: IntArray, regions: int, processors: int) -> dict[str, FloatArray]:
    """Return what was counted (R, Q): calls, and of reads and writes how many, small, unaligned, in shared files."""
    sized = found.bytes_each >= 0
    shared = _shared_files(found.file, found.rank, found.count * sized)
    columns = {
        "calls": found.calls,
        "io_bytes": found.bytes,
        "io_operations": found.count * sized,
        "io_small_operations": found.count * (sized & (found.bytes_each <= SMALL_IO_B)),
        "io_unaligned_operations": found.count * (found.alignment == KINDS.index(UNALIGNED_FILE)),
        "io_shared_file_operations": found.count * (sized & shared),
    }
    columns |= {name: amount * found.patterns[:, column] for name, amount, column in _pattern_amounts(found)}
    return {name: _sum_by_region(regions, processors, call, found.rank, column) for name, column in columns.items()}


def _sum_one_server(log: DarshanLog, found: IoRows, call: IntArray, regions: int) -> dict[str, FloatArray]:
    """Return the seconds (R, Q) in large files that several ranks share and that lie on one server of Lustre.

    Nothing where the log does not tell how files are spread.
    """
    if not log.stripes:
        return {}
    shared = _shared_files(found.file, found.rank, found.count * (found.bytes_each >= 0))
    files, group = np.unique(found.file, return_inverse=True)
    large = np.bincount(group, found.bytes, len(files)) >= _SPREAD_B
    single = np.array([log.stripes.get(int(file)) == 1 for file in files.tolist()], dtype=bool)
    chosen = shared & (large & single)[group]
    return {"io_one_server_s": _sum_by_region(regions, log.processes, call, found.rank, found.seconds * chosen)}


def _count_bursts(log: DarshanLog, regions: int) -> dict[str, FloatArray]:
    """Return how often each rank reads or writes with a pause before, in the program's region; nothing without heat."""
    if not log.bursts:
        return {}
    table = np.zeros((regions, log.processes))
    for (_, rank), bursts in log.bursts.items():
        if 0 <= rank < log.processes:
            table[0, rank] = max(table[0, rank], bursts)
    return {"io_bursts": table}


def _describe_timeline(log: DarshanLog) -> str | None:
    """Return when most of the bytes move; None without a heat map, or where they move all the time."""
    line = np.sum([log.timelines[name] for name in ("POSIX", "STDIO") if name in log.timelines] or [(0.0,)], axis=0)
    if not line.sum() > 0:
        return None
    busiest = np.argsort(-line, kind="stable")
    needed = busiest[: 1 + int(np.searchsorted(np.cumsum(line[busiest]), _MOST * line.sum()))]
    first, last = (log.seconds * edge / len(line) for edge in (int(needed.min()), int(needed.max()) + 1))
    part = format_share(len(needed) / len(line))
    return (
        f"{format_share(_MOST)} of the bytes move in {part} of the time, between {format_seconds(first)} and "
        f"{format_seconds(last)}"
    )


def _pattern_amounts(found: IoRows) -> Iterator[tuple[str, FloatArray | IntArray, int]]:
    """Yield counts, what of each row they are a part of, and the pattern that tells the part; none without POSIX."""
    if not found.alignment.any():
        return
    random, reread, switch, memory = range(len(rows.PATTERNS))
    yield "io_random_operations", found.count, random
    yield "io_random_s", found.seconds, random
    yield "io_reread_bytes", found.bytes, reread
    yield "io_reread_s", found.seconds, reread
    yield "io_switches", found.count, switch
    yield "io_switch_s", found.seconds, switch
    yield "io_unaligned_memory_operations", found.count, memory


def _shared_files(file: IntArray, rank: IntArray, count: IntArray) -> npt.NDArray[np.bool_]:
    """Return which rows are on files that more than one rank reads or writes."""
    used = np.unique(np.stack([file[count > 0], rank[count > 0]]), axis=1)
    files, ranks = np.unique(used[0], return_counts=True)
    return np.isin(file, files[ranks > 1])


def _build_causes(log: DarshanLog, found: IoRows, call: IntArray) -> Causes:
    files, target = np.unique(found.file, return_inverse=True)
    none = np.full(len(found.call), -1)
    return Causes(
        kinds=KINDS,
        targets=tuple(_file_name(log, number) for number in files.tolist()),
        category=np.full(len(none), CAUSE_CATEGORIES.index("io")),
        kind=found.alignment,
        phase=np.zeros(len(none), dtype=np.int64),
        call=call,
        caller=none,
        processor=found.rank,
        partner=none,
        target=target,
        size_class=np.where(found.bytes_each < 0, -1, np.ceil(np.log2(np.maximum(found.bytes_each, 0) + 1.0))).astype(
            np.int64
        ),
        seconds=found.seconds,
        count=found.count,
        bytes=found.bytes,
    )


def _file_name(log: DarshanLog, number: int) -> str:
    if number == cells.OTHERS:
        return "other shared files"
    return log.names.get(number, "a file without a name")


def _find_status(log: DarshanLog) -> Status:
    """Return whether the I/O of each rank was measured, or shared out over the ranks from sums."""
    if log.processes == 1:
        return "measured"
    shared = any(_sum_shared_seconds(table) > 0 for table in log.tables.values())
    return "estimated" if shared else "measured"


def _sum_shared_seconds(table: ModuleTable) -> float:
    columns = [np.maximum(table.times[f"{kind}_TIME"], 0.0) for kind in ("READ", "WRITE", "META")]
    return float(sum(column[table.ranks == cells.SHARED].sum() for column in columns))


def _format_start_time(log: DarshanLog) -> str | None:
    try:
        return datetime.fromtimestamp(log.start, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _build_notes(log: DarshanLog) -> Iterator[Note]:
    lacking = [name for name in log.partial_modules if not name.startswith("DXT")]
    if lacking:
        how = f"Darshan ran out of memory for {', '.join(lacking)}, so files are missing and I/O took longer than shown"
        yield _make_note("files left out", how, "DARSHAN_MODMEM=64")
    if traces := [name for name in log.partial_modules if name.startswith("DXT")]:
        yield Note("traces cut short", f"Darshan ran out of memory for {', '.join(traces)}; seconds are complete")
    if log.version < _FINE and log.seconds < _COARSE_S:
        yield _make_note("whole seconds", f"Darshan's format {log.version} times a run in whole seconds, one too many")
    if log.negative_s > _ROUNDING_S:
        yield _make_note("negative counters", f"{log.negative_s:.3g} negative seconds of some files are left out")
    if unread := [name for name in _UNREAD if name in log.modules]:
        yield _make_note("interfaces left out", f"what went through {', '.join(unread)} is not in here")
    if (when := _describe_timeline(log)) is not None:
        yield Note("I/O over time", when)
    if (mpi := log.tables.get("MPI-IO")) is not None and "HINTS" in mpi.counters:
        given, opened = (int(np.maximum(sum(mpi.counters[name] for name in names), 0).sum()) for names in _OPENING)
        yield Note("MPI-IO hints", f"of {opened:,} times that files were opened through MPI, {given:,} had hints")
    if _find_status(log) == "estimated":
        yield Note("shared files", "of files that all ranks share Darshan keeps sums: the parts of ranks are estimated")


def _make_note(name: str, text: str, collect: str | None = None) -> Note:
    return Note(name, text, _PENALTIES[name], collect)
