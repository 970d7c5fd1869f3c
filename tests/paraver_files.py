"""Small Paraver traces written by hand, and what the reports beside recorded ones say."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent / "profiles" / "paraver"
_TASKS = re.compile(r"^(\d+) +(\d+) (.*?)\s*\t([\d\t]+)\t\|\t([\d\t]+)$", re.MULTILINE)
_TABLE = re.compile(r"^=== (\w+)\n\t(.*?)\t?\n((?:THREAD .*\n)+)", re.MULTILINE)


def trace_of(case: str) -> Path:
    """The recorded trace of a directory below ``profiles/paraver``."""
    packed = HERE / case / "trace.prv.gz"
    return packed if packed.is_file() else HERE / case / "trace.prv"


class Called(NamedTuple):
    """How often a task made a call, and for how long, in nanoseconds."""

    count: int
    nanoseconds: int


def summed(case: str) -> dict[tuple[str, int], Called]:
    """Calls and functions by name and task, of ``expected.txt``, the sums of a script over the records."""
    found = {}
    for _, _, name, counts, times in _TASKS.findall((HERE / case / "expected.txt").read_text()):
        pairs = zip(counts.split("\t"), times.split("\t"), strict=True)
        for task, (count, time) in enumerate(pairs):
            found[name.removesuffix("()"), task] = Called(int(count), int(time))
    return found


def paramedir(case: str) -> dict[str, dict[tuple[str, int], float]]:
    """Microseconds or counts by name and task in every table that Paraver's own program printed."""
    tables: dict[str, dict[tuple[str, int], float]] = {}
    for title, names, rows in _TABLE.findall((HERE / case / "expected-paramedir.txt").read_text()):
        table = tables.setdefault(title, {})
        for task, row in enumerate(rows.splitlines()):
            for name, value in zip(names.split("\t"), row.split("\t")[1:], strict=False):
                table[name, task] = float(value)
    return tables


def factors(case: str) -> dict[str, float]:
    """Model factors in per cent and times in microseconds, by BSC's script, of the trace between start and end."""
    text = (HERE / case / "expected-modelfactors-cut.txt").read_text()
    return {name.strip(): float(value) for name, value in re.findall(r"^(.*?)\| +([\d.]+)%?$", text, re.MULTILINE)}


HEADER = "#Paraver (01/01/2026 at 00:00):{ticks}_ns:1(4):1:{tasks}({threads}),{comms}\n"
NAMES = """\
EVENT_TYPE
9   50000001    MPI Point-to-point
VALUES
1   MPI_Send
2   MPI_Recv
3   MPI_Isend
4   MPI_Irecv
5   MPI_Wait
0   Outside MPI

EVENT_TYPE
9   50000002    MPI Collective Comm
VALUES
7   MPI_Bcast
8   MPI_Barrier
0   Outside MPI

EVENT_TYPE
9   50000003    MPI Other
VALUES
31   MPI_Init
32   MPI_Finalize
0   Outside MPI

EVENT_TYPE
0    60000019    User function
VALUES
0 End
1 solve
2 std::map<int, T>::operator[](int&&) [with T = int] [clone .cold]
3 größe_\udcff

EVENT_TYPE
0    60000119    User function line
VALUES
0 End
1 solve.c:12 [/src/solve.c:12, /bin/heat]
2 ??:0 [??:0, ??]

EVENT_TYPE
0    60000018    Parallel function
VALUES
0 End
1 loop._omp_fn.0

EVENT_TYPE
0    60000118    Parallel function line and file
VALUES
0 End
1 solve.c:20 [/src/solve.c:20, /bin/heat]

EVENT_TYPE
0    60000001    Parallel (OMP)
VALUES
0 close
1 DO (open)

EVENT_TYPE
0    60000005    OpenMP barrier
VALUES
0 End
1 Begin

EVENT_TYPE
0    1000    step

EVENT_TYPE
0    2000    temperature

EVENT_TYPE
7    42000050    PAPI_TOT_INS [Instr completed]

"""


def write(
    folder: Path,
    *lines: str,
    ticks: int = 1000,
    tasks: tuple[int, ...] = (1, 1),
    names: str | None = NAMES,
    comms: tuple[str, ...] = ("c:1:1:2:1:2",),
    packed: bool = False,
) -> Path:
    """Write a trace of nanoseconds with ``tasks`` of so many threads each."""
    threads = ",".join(f"{count}:1" for count in tasks)
    header = HEADER.format(ticks=ticks, tasks=len(tasks), threads=threads, comms=len(comms))
    text = (header + "".join(f"{line}\n" for line in (*comms, *lines))).encode()
    path = folder / ("run.prv.gz" if packed else "run.prv")
    path.write_bytes(gzip.compress(text) if packed else text)
    if names is not None:
        (folder / "run.pcf").write_bytes(names.encode("utf-8", "surrogateescape"))
    return path


def event(task: int, time: int, *pairs: tuple[int, int], thread: int = 1) -> str:
    """A line of events."""
    return f"2:1:1:{task}:{thread}:{time}:" + ":".join(f"{kind}:{value}" for kind, value in pairs)


def message(sender: int, send: int, receiver: int, post: int, receive: int, size: int = 8, tag: int = 0) -> str:
    """A line of a message."""
    return f"3:1:1:{sender}:1:{send}:{send}:1:1:{receiver}:1:{post}:{receive}:{size}:{tag}"
