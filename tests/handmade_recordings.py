"""Recordings of two ranks, written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Kind
from advisor.trace.recordings.layout import CALL, MESSAGE, RECORD, STATE

if TYPE_CHECKING:
    from pathlib import Path

PROCESS = """gapwatch/trace/1 process
pid 10 1
host node\\x5c1
program /home/me/app
argument ./app
clock 1234
time 1700000000.5 1000.5
rank {rank} 2
cores 2
affinity 0 1
communicator 1 0-1
function 3 MPI_Send
function 4 MPI_Recv
function 5 MPI_Init
function 6 MPI_Finalize
function 7 MPI_Barrier
object 1000 2000 400 /home/me/app
thread 0 10 1000 100
thread-end 0 9000 5100
end
"""


def write_rank(folder: Path, rank: int) -> Path:
    """A rank that starts, sends to or receives from the other, meets it at a barrier and ends."""
    stem = folder / f"node.{10 + rank}"
    stem.with_name(f"{stem.name}.process").write_text(PROCESS.format(rank=rank), encoding="ascii")
    rows = np.zeros(7, dtype=RECORD)
    rows["kind"][:6] = (CALL, STATE, CALL, MESSAGE, CALL, CALL)
    rows["function"][:6] = (5, 0, 3 + rank, 0, 7, 6)
    rows["start_ns"][:6] = (1000, 1100, 2000, 2500, 5000, 8000)
    rows["end_ns"][:6] = (1500, 1100, 3000, 2500, 6000, 9000)
    rows["event"][:6] = (0, 0, Kind.SEND if rank == 0 else Kind.RECV, 0, Kind.COLLECTIVE, 0)
    rows["partner"][:6] = (-1, 0, 1 - rank, -1, -1, -1)
    rows["comm"][:6] = (0, 0, 1, 0, 1, 0)
    rows["size"][:6] = 8
    # the kind and the event are the upper bytes of the caller: they are written behind it
    path = stem.with_name(f"{stem.name}.0.records")
    rows.tofile(path)
    return path
