"""One table of how fast everything is: ours, a peer where one is present, the limit of this machine, and the growth.

``python benchmarks/speed_table.py`` measures, prints the table, and fails where a row takes more than 1.2 times as many
limits as ``docs/speed.md`` says of a machine such as this; ``--write`` puts the new table there. All times are CPU
seconds, the least of several rounds; the limit, copying as many bytes in memory, is measured between the rounds, so
that what slows the machine slows both.
"""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from halo_exchange import NETWORK, halo
from halo_files import write_dimemas, write_goal
from stencil_traces import stencil, write_stencil

from advisor.formats.otf2 import read_trace
from advisor.trace.profile import from_trace
from advisor_simulation.replay import contended_replay, engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAGE: Final = Path(__file__).parents[1] / "docs" / "speed.md"
BEGIN, END = "<!-- table -->", "<!-- end of the table -->"
#: By how much a row may be slower than the page says, in limits.
SLOWER: Final = 1.2
ROUNDS: Final = 3
MILLION: Final = 1_000_000
_COPIED: Final = 64 << 20
#: Latency, seconds a byte, and no rendezvous, in nanoseconds and bytes.
LOGGOPSIM: Final = ("-L", "5000", "-G", "1", "-g", "0", "-o", "0", "-S", "65535")


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU seconds of one thing, the limit of the machine for its bytes, and those of a peer (None: not present)."""

    name: str
    cpu_s: float
    limit_s: float
    count: float
    peer: tuple[str, float] | None = None
    growth: str = ""

    @property
    def limits(self) -> float:
        """How many times the limit it takes."""
        return self.cpu_s / self.limit_s


def copy_seconds_per_byte() -> float:
    """Return the CPU seconds that copying a byte in memory takes."""
    source, target = np.ones(_COPIED, dtype=np.uint8), np.ones(_COPIED, dtype=np.uint8)
    begin = time.process_time()
    for _ in range(4):
        np.copyto(target, source)
    return (time.process_time() - begin) / (4 * _COPIED)


def time_alternately(does: Callable[[], float], bytes_: float) -> tuple[float, float]:
    """Return the least CPU seconds of several rounds, and the limit for so many bytes, measured in turns."""
    does()
    own, copies = [], []
    for _ in range(ROUNDS):
        copies.append(copy_seconds_per_byte())
        own.append(does())
    return min(own), min(copies) * bytes_


def inside(call: Callable[[], object]) -> Callable[[], float]:
    """Return what calls something in this process and returns the CPU seconds that it took."""

    def measure() -> float:
        begin = time.process_time()
        call()
        return time.process_time() - begin

    return measure


def outside(*command: str | Path) -> Callable[[], float]:
    """Return what runs a command and returns its CPU seconds."""

    def measure() -> float:
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command[0]} failed")
        return used.ru_utime + used.ru_stime

    return measure


def gapwatch(*words: str | Path) -> Callable[[], float]:
    return outside(sys.executable, "-m", "gapwatch", *words)


def peer(name: str, *words: str | Path) -> tuple[str, float] | None:
    """Return a peer's name and CPU seconds, None where it is not installed."""
    return (name, min(outside(name, *words)() for _ in range(3))) if shutil.which(name) else None


def exponent(small: float, large: float, times: float) -> str:
    """Return the power of the size with which the time grows."""
    return f"{math.log(large / small) / math.log(times):.2f}"


def folder_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def measure_traces(folder: Path) -> Iterator[Measured]:
    """Yield the rows about OTF2 archives."""
    cases = {(64, 1): MILLION, (64, 4): 4 * MILLION, (1024, 1): MILLION}
    for ranks, size in cases:
        write_stencil(folder / f"{ranks}x{size}", stencil(ranks, cases[ranks, size])[0])
    small, long, wide = (folder / f"{ranks}x{size}" for ranks, size in cases)
    for name, call in (
        ("archive to events", lambda path: inside(lambda: read_trace(path))),
        ("events to profile", lambda path: _profile_again(path)),
        ("archive to advice, whole command", lambda path: gapwatch("advise", path, "--format", "json")),
    ):
        own, limit = time_alternately(call(small), folder_bytes(small))
        more, many = (time_alternately(call(path), 1.0)[0] for path in (long, wide))
        growth = f"{exponent(own, more, 4)} in events, {exponent(own, many, 16)} in ranks"
        other = peer("otf2-print", "--silent", small / "traces.otf2") if name == "archive to events" else None
        yield Measured(f"OTF2, 64 ranks, 1 M events: {name}", own, limit, MILLION, other, growth)


def _profile_again(path: Path) -> Callable[[], float]:
    trace = read_trace(path)
    return inside(lambda: from_trace(trace))


def measure_replays(folder: Path) -> Iterator[Measured]:
    """Yield the rows about replays."""
    programs = {ranks: halo(ranks, MILLION // 10 // ranks) for ranks in (64, 4096)}
    held = NETWORK.__class__(NETWORK.latency_s, NETWORK.bandwidth, links_in=1, links_out=1)
    plans = {ranks: engine.prepare_program(program, NETWORK) for ranks, program in programs.items()}
    calls: dict[str, Callable[[int], Callable[[], object]]] = {
        "one point": lambda ranks: lambda: engine.replay_steps(plans[ranks], NETWORK, keep=False),
        "order, once for all points": lambda ranks: lambda: engine.prepare_program(programs[ranks], NETWORK),
        "one link a node": lambda ranks: lambda: contended_replay.replay_contended(programs[ranks], held),
    }
    for name, call in calls.items():
        bytes_ = float(sum(column.nbytes for column in (programs[64].op, programs[64].value, programs[64].link)))
        own, limit = time_alternately(inside(call(64)), bytes_)
        wide, _ = time_alternately(inside(call(4096)), 1.0)
        growth = f"{exponent(own, wide, 64)} in ranks"
        yield Measured(f"replay, 64 ranks, 1 M operations: {name}", own, limit, MILLION, None, growth)
    program, trace, schedule = halo(256, 100), folder / "halo.dim", folder / "halo.goal"
    write_dimemas(trace, program)
    own, limit = time_alternately(
        gapwatch("replay", trace, "--latency", "5 us", "--bandwidth", "1 GB/s"), trace.stat().st_size
    )
    other = None
    if shutil.which("LogGOPSim") and shutil.which("txt2bin"):
        write_goal(schedule, program)
        subprocess.run(["txt2bin", "-i", schedule, "-o", folder / "halo.bin"], check=True, capture_output=True)
        other = peer("LogGOPSim", "-f", folder / "halo.bin", *LOGGOPSIM)
    yield Measured("replay, 256 ranks x 100 steps: whole command", own, limit, len(program.op), other)


def render(rows: Sequence[Measured]) -> str:
    """Return the table, with where and when it was measured."""
    lines = [f"Measured on {date.today().isoformat()}: {describe_machine()}.", ""]
    lines += ["| what | CPU s | M a second | limits | peer | growth |", "|---|--:|--:|--:|---|---|"]
    for row in rows:
        other = f"{row.peer[0]} {row.peer[1]:.2f} s: {row.peer[1] / row.cpu_s:.2f}x" if row.peer else ""
        rate = row.count / row.cpu_s / 1e6
        lines.append(f"| {row.name} | {row.cpu_s:.3f} | {rate:.2f} | {row.limits:.3g} | {other} | {row.growth} |")
    return "\n".join(lines)


def describe_machine() -> str:
    """Return processor, cores and versions: the limits of one machine say nothing about another."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", info.read_text() if info.exists() else "")
    processor = model[1].strip() if model else platform.machine()
    cores = len(os.sched_getaffinity(0))
    return f"{processor}, {cores} cores, Python {platform.python_version()}, numpy {np.__version__}"


def find_slower(rows: Sequence[Measured], page: str) -> list[str]:
    """Return what to say of rows that take more limits than the page says."""
    told = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| ([\d.e+]+) \|", page, re.MULTILINE)
    known = {name: float(limits) for name, limits in told}
    return [
        f"{row.name}: {row.limits:.3g} limits, and {known[row.name]:.3g} before"
        for row in rows
        if row.name in known and row.limits > SLOWER * known[row.name]
    ]


def main() -> int:
    """Measure, print the table, and compare it with the page or write it there."""
    with tempfile.TemporaryDirectory() as name:
        rows = [*measure_traces(Path(name)), *measure_replays(Path(name))]
    table = render(rows)
    print(table)
    page = PAGE.read_text()
    if "--write" in sys.argv[1:]:
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
        return 0
    if describe_machine() not in page:
        print("\nthe page was measured on another machine: nothing is compared")
        return 0
    slower = find_slower(rows, page)
    print(*(f"slower: {line}" for line in slower), sep="\n")
    return 1 if slower else 0


if __name__ == "__main__":
    raise SystemExit(main())
