"""What the events of different processors mean, in the names of ``Profile.counts``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

#: A cache line, in bytes: what one access to memory moves.
_LINE: Final = 64.0
#: Events of Intel's, AMD's and ARM's processors by what they count; the first that was measured counts.
_ONE_OF: Final[dict[str, tuple[str, ...]]] = {
    "instructions": ("INSTR_RETIRED_ANY", "RETIRED_INSTRUCTIONS", "INST_RETIRED"),
    "cycles": ("CPU_CLK_UNHALTED_CORE", "CPU_CLOCKS_UNHALTED", "CPU_CYCLES"),
    "compiled_ops.load": (
        "MEM_INST_RETIRED_ALL_LOADS", "MEM_UOPS?_RETIRED_LOADS(_ALL)?", "LS_DISPATCH_LOADS", "LD_RETIRED",
    ),
    "compiled_ops.store": (
        "MEM_INST_RETIRED_ALL_STORES", "MEM_UOPS?_RETIRED_STORES(_ALL)?", "LS_DISPATCH_STORES", "ST_RETIRED",
    ),
    "misses.L1": ("L1D_REPLACEMENT", "MEM_LOAD_(UOPS_)?RETIRED_L1_MISS", "DATA_CACHE_REFILLS_ALL", "L1D_CACHE_REFILL"),
    "misses.L2": ("L2_LINES_IN_ALL", "L2_RQSTS_MISS", "MEM_LOAD_(UOPS_)?RETIRED_L2_MISS", "L2D_CACHE_REFILL"),
    "misses.L3": (
        "MEM_LOAD_(UOPS_)?RETIRED_L3_MISS", "MEM_LOAD_UOPS_RETIRED_LLC_MISS", "LLC_LOOKUP_MISS", "L3_CACHE_MISS",
    ),
}  # fmt: skip
#: What is read from and written to memory.
_MEMORY: Final = ("CAS_COUNT_RD", "CAS_COUNT_WR")
_FLOPS: Final = re.compile(r"FP_ARITH_INST_RETIRED_(SCALAR|(\d{2,4})B_PACKED)_(SINGLE|DOUBLE)")
_ALL_FLOPS: Final = re.compile(r"RETIRED_SSE_AVX_FLOPS_(ALL|(SINGLE|DOUBLE)_ALL)")
#: The time that stands among the events or metrics.
RUNTIME: Final = "Runtime (RDTSC) [s]"
#: A metric that tells the bytes where their events are those of one kind of processor only.
MEMORY_VOLUME: Final = "Memory data volume [GBytes]"
MEMORY_BYTES: Final = "memory_bytes"


def match_counts(events: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return each count that some of ``events`` add up to, with how much one occurrence of each of these adds."""
    measured = tuple(dict.fromkeys(events))
    found: dict[str, dict[str, float]] = {}
    for name, patterns in _ONE_OF.items():
        for pattern in patterns:
            fitting = [event for event in measured if re.fullmatch(pattern, event)]
            if fitting:
                found[name] = dict.fromkeys(fitting, 1.0)
                break
    if all(event in measured for event in _MEMORY):
        found[MEMORY_BYTES] = dict.fromkeys(_MEMORY, _LINE)
    return found | _match_flops(measured)


def _match_flops(measured: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Return floating-point operations, and those of them that vector instructions did."""
    found: dict[str, dict[str, float]] = {}
    for event in measured:
        match = _FLOPS.fullmatch(event)
        if match:
            width = int(match[2]) / (32 if match[3] == "SINGLE" else 64) if match[2] else 1.0
            found.setdefault("flops", {})[event] = width
            if match[2]:
                found.setdefault("vectorized_ops", {})[event] = width
        elif _ALL_FLOPS.fullmatch(event):
            found.setdefault("flops", {})[event] = 1.0
    return found
