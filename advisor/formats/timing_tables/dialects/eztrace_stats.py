"""EZTrace 1: what ``eztrace_stats`` prints of a trace, the calls of MPI of each process with their seconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_PROCESS: Final = re.compile(
    r"Thread P#(\d{1,7})_T#\d+ -- total duration: (\S+) ms, time spent in mpi: (\S+) ms \((\S+) %\)$"
)
_CALL: Final = re.compile(r"\tMPI_(\w+) +:(\d{1,18}) calls -- (\S+) ms \(\S+ % of the thread runtime\)$")
_END: Final = re.compile(r"\d+ events handled$")
_MS: Final = 1e-3
_ROUNDING_MS: Final = 1e-2


def parse(text: PlainText) -> TimingTable:
    """Return the calls of all processes; raises ``InputError`` where they are damaged, cut off or incomplete."""
    walls_ms: dict[int, float] = {}
    calls_ms: dict[str, dict[int, float]] = {}
    counts: dict[str, float] = {}
    found = list(text.find_matches(_PROCESS))
    if not found:
        raise InputError(text.path, "holds no process of EZTrace's statistics")
    if text.find_line(_END, found[-1][0], len(text.lines) - 1) is None:
        raise InputError(text.path, "the statistics of EZTrace do not reach their end")
    for line, cells in found:
        rank, wall_ms, mpi_ms, percent = int(cells[1]), *(text.parse_number(cells[n], line) for n in (2, 3, 4))
        if rank in walls_ms:
            raise text.make_error(line, f"process {rank} has several threads that call MPI: its times do not add up")
        if not mpi_ms <= wall_ms or abs(percent * wall_ms / 100 - mpi_ms) > 1e-4 * wall_ms:
            raise text.make_error(line, f"{mpi_ms:g} ms are not {percent:g} % of {wall_ms:g} ms")
        walls_ms[rank] = wall_ms
        left_ms = mpi_ms
        while (call := _CALL.match(text.lines[line + 1])) is not None:
            line += 1
            name, spent_ms = f"MPI_{call[1].capitalize()}", text.parse_number(call[3], line)
            calls_ms.setdefault(name, {})[rank] = spent_ms
            counts[name] = counts.get(name, 0.0) + float(call[2])
            left_ms -= spent_ms
        if abs(left_ms) > _ROUNDING_MS + 1e-6 * mpi_ms:
            raise text.make_error(line, f"the calls do not add up to the {mpi_ms:g} ms in MPI of process {rank}")
    ranks = len(walls_ms)
    if set(walls_ms) != set(range(ranks)):
        raise InputError(text.path, f"of {max(walls_ms) + 1} processes {ranks} are there")
    rows = [
        TimingRow(name, _MS * sum(spent.values()) / ranks, calls=counts[name] / ranks,
                  ranks_s=tuple(_MS * spent.get(rank, 0.0) for rank in range(ranks)))
        for name, spent in calls_ms.items()
    ]  # fmt: skip
    return TimingTable(
        tool="EZTrace", program="", wall_s=_MS * max(walls_ms.values()), shortest_s=_MS * min(walls_ms.values()),
        rows=tuple(rows), ranks=ranks,
    )  # fmt: skip
