"""What is measured: a list of kernels with their arguments, and the samples of each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.support.child_process import run_child
from advisor_processor.probe.samples import Samples, parse_samples

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine

_LIMIT_S: Final = 30.0
_UNITS: Final = ("fp_add", "fp_mul", "fp_fma", "fp_div")
_LARGEST: Final = 1 << 29


@dataclass(frozen=True, slots=True)
class Kernel:
    """One measurement: its name, the kernel, how many samples, and the kernel's argument (bytes or threads)."""

    name: str
    kernel: str
    samples: int
    argument: int = 0


def list_kernels(host: Machine, threads: int) -> tuple[Kernel, ...]:
    """Return everything to measure on a machine with these caches and this many cores."""
    units = [Kernel(f"{u}.{kind}", f"{u}.{kind}", 15) for u in _UNITS for kind in ("wide", "narrow", "latency")]
    names = ("load.wide", "load.narrow", "store.wide", "store.narrow", "int.narrow", "issue")
    others = [
        Kernel(name, name, 15)
        for name in (*names, "mixed.wide", "mixed.narrow", "mixed.latency", "forward", "forward.moving")
    ]
    clocks = [Kernel("clock", "clock", 60)]
    sizes = choose_working_sets(host)
    memory = [Kernel(f"{level}.latency", "chase", 9, size) for level, size in sizes.items()]
    memory += [Kernel(f"{level}.read", "read", 9, size) for level, size in sizes.items()]
    teams = sorted({1, *(2**n for n in range(1, 12) if 2**n < threads), threads})
    parallel = [Kernel("triad", "triad", 5, sizes["memory"])]
    parallel += [Kernel(f"barrier.{team}", "barrier", 15, team) for team in teams]
    parallel += [Kernel("fork_join", "fork_join", 15, threads), Kernel("page_fault", "page_fault", 3)]
    return (*clocks, *units, *others, *memory, *parallel)


def choose_working_sets(host: Machine) -> dict[str, int]:
    """Return how many bytes to walk through for each cache and for the memory.

    Half of a cache, but of a shared one not more than eight times the one before it: others use the rest.
    """
    found: dict[str, int] = {}
    before = 1 << 12
    for level, cache in host.caches.items():
        if cache.size:
            shared = (cache.shared_by or 1) > 1
            found[level] = int(min(cache.size / 2, before * 8) if shared and found else cache.size / 2)
            before = int(cache.size)
    free = int((host.memory.size if host.memory and host.memory.size else _LARGEST * 8) // 8)
    found["memory"] = max(min(max(4 * before, 1 << 28), _LARGEST, free), 1 << 24)
    return found


def measure_kernel(program: Path, kernel: Kernel) -> Samples | None:
    """Return the samples of a kernel, None where the program does not know it or fails."""
    words = [str(program), kernel.kernel, str(kernel.samples), str(kernel.argument)]
    done = run_child(words, _LIMIT_S, extra={"OMP_DYNAMIC": "false"})
    try:
        return parse_samples(done.text) if done.status == 0 else None
    except ValueError:
        return None


def vector_width_bits(program: Path) -> int:
    """Return the bits of the widest vectors that the kernels were built for."""
    return int(run_child([str(program), "wide"], _LIMIT_S).text)


def measure_messages(program: Path) -> Mapping[str, Samples]:
    """Return samples of short (``latency``) and long (``transfer``) messages and barriers; none where MPI fails."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    done = run_child(["mpirun", "-n", "2", str(program)], _LIMIT_S, extra=allowed)
    if done.status != 0:
        return {}
    rows = [line.split() for line in done.text.splitlines()]
    sizes = sorted({int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()})
    if len(sizes) != 3:
        return {}
    barrier, short, long = (
        tuple(float(row[0]) * 1e-9 for row in rows if row[1] == str(size)) for size in sizes
    )  # fmt: skip
    return {
        "barrier": Samples(barrier, (1.0,) * len(barrier)),
        "latency": Samples(short, (1.0,) * len(short)),
        "transfer": Samples(tuple(time / sizes[2] for time in long), (1.0,) * len(long)),
    }
