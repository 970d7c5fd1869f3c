"""Logs of Darshan made by hand, as the reader has them in memory, and recorded ones with a part of them changed."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np
from command_line import ROOT

from advisor.advice import facts
from advisor.analysis import bounds, gaps, soundness
from advisor.formats import darshan
from advisor.formats.darshan.logs import DarshanLog, ModuleTable, TracedFile
from advisor.model.records import Profile
from advisor.support import contract

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LOGS = ROOT / "tests" / "profiles" / "darshan"
IO, CLEAN, BTIO = "faultlab-io256", "faultlab-clean", "npb-btio-full.S.4"
TIMES = {
    "READ": "READ_TIME",
    "WRITE": "WRITE_TIME",
    "META": "META_TIME",
    "FASTEST": "FASTEST_RANK_TIME",
    "SLOWEST": "SLOWEST_RANK_TIME",
}
COUNTERS = {
    "POSIX": "READS WRITES OPENS SEEKS STATS MMAPS FSYNCS FDSYNCS BYTES_READ BYTES_WRITTEN FILE_NOT_ALIGNED",
    "MPI-IO": "INDEP_READS COLL_READS SPLIT_READS NB_READS INDEP_WRITES COLL_WRITES SPLIT_WRITES NB_WRITES INDEP_OPENS "
    "COLL_OPENS VIEWS SYNCS BYTES_READ BYTES_WRITTEN",
    "STDIO": "READS WRITES OPENS FDOPENS SEEKS FLUSHES BYTES_READ BYTES_WRITTEN",
}
EXTREMES = ("FASTEST_RANK", "SLOWEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK_BYTES")


def table(
    module: str, ranks: list[int] | None = None, ids: list[int] | None = None, **columns: list[float]
) -> ModuleTable:
    """The records of a module; columns that are not named are zero, ids count from 1."""
    n = len(next(iter(columns.values())))
    names = [*COUNTERS[module].split(), *EXTREMES]
    names += [name for name in columns if name not in names and name not in TIMES]
    nothing = [0] * n
    return ModuleTable(
        np.array(ids or range(1, n + 1), dtype=np.int64),
        np.array(ranks or nothing, dtype=np.int64),
        {name: np.array(columns.get(name, nothing), dtype=np.int64) for name in names},
        {long: np.array(columns.get(short, nothing), dtype=np.float64) for short, long in TIMES.items()},
    )


def log(
    tables: dict[str, ModuleTable],
    processes: int = 1,
    *,
    seconds: float = 10.0,
    version: str = "3.41",
    names: Mapping[int, str] | None = None,
    heat: dict[tuple[str, int], tuple[int, int]] | None = None,
    traced: dict[tuple[int, int], TracedFile] | None = None,
    modules: tuple[str, ...] | None = None,
    partial: tuple[str, ...] = (),
) -> DarshanLog:
    """A log with these records; files are called by their ids."""
    ids = {number for each in tables.values() for number in each.ids.tolist()}
    negative = -sum(float(np.minimum(column, 0).sum()) for each in tables.values() for column in each.times.values())
    return DarshanLog(
        version=version,
        command="./program --arguments",
        job=1,
        processes=processes,
        start=0,
        seconds=seconds,
        names={number: f"file {number}" for number in ids} | dict(names or {}),
        tables=tables,
        heat=heat or {},
        traced_files=traced or {},
        hosts={},
        modules=modules or tuple(tables),
        partial_modules=partial,
        negative_s=negative,
    )


#: The header of format 3.41, and where it says where the names of files and the parts of the modules are.
HEADER, PLACES, JOB = 1328, 32, -1


def unpacked(content: bytes) -> bytes:
    """What a part of a log holds: the streams of all ranks."""
    found = b""
    while content:
        stream = zlib.decompressobj()
        found += stream.decompress(content)
        content = stream.unused_data
    return found


def rewritten(content: bytes, number: int, change: Callable[[bytes], bytes]) -> bytes:
    """A whole log in which one part is changed: that of the job (-1), the names (0) or module ``number - 1``."""
    places = [list(struct.unpack_from("<QQ", content, PLACES + 16 * n)) for n in range(65)]
    parts = {n: unpacked(content[start : start + size]) for n, (start, size) in enumerate(places) if size}
    parts[JOB] = unpacked(content[HEADER : places[0][0]])
    parts[number] = change(parts[number])
    made = bytearray(content[:HEADER])
    for n, part in sorted(parts.items()):
        packed = zlib.compress(part)
        if n >= 0:
            struct.pack_into("<QQ", made, PLACES + 16 * n, len(made), len(packed))
        made += packed
    for n in set(range(65)) - set(parts):
        struct.pack_into("<QQ", made, PLACES + 16 * n, 0, 0)
    return bytes(made)


def read(case: str) -> Profile:
    """The profile of a recorded log, whole and sound."""
    found = darshan.advisor_read(LOGS / case / "log.darshan")
    contract.check_value(found, Profile)
    soundness.check_profile(found)
    return found


def values(profile: Profile) -> dict[str, object]:
    """The facts about the run."""
    levels = bounds.compute_bounds(profile)
    sheet = facts.collect_facts(profile, levels, gaps.attribute_gaps(profile, levels))
    return dict(sheet.sites[0].values)


def shared(
    ranks: int, heat: dict[tuple[str, int], tuple[int, int]] | None = None, **changed: list[float]
) -> DarshanLog:
    """A log of one file that all ranks share."""
    columns: dict[str, list[float]] = {
        "READS": [0], "WRITES": [8 * ranks], "BYTES_WRITTEN": [800 * ranks], "SIZE_WRITE_0_100": [8 * ranks],
        "WRITE": [1.0 * ranks], "META": [0.5], "FASTEST_RANK": [1], "SLOWEST_RANK": [2],
        "FASTEST": [0.25], "SLOWEST": [3.0], "FASTEST_RANK_BYTES": [400], "SLOWEST_RANK_BYTES": [1600],
    }  # fmt: skip
    return log({"POSIX": table("POSIX", [-1], None, **(columns | changed))}, ranks, heat=heat or {})
