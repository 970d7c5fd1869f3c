"""What Caliper calls top-down shares, and programs the work of their kernels."""

from __future__ import annotations

import re
from typing import Final

_STEPS: Final = r"(?:(?:any|avg|max|first)#)*"
_TOPDOWN: Final = re.compile(rf"{_STEPS}topdown\.([a-z0-9_]+)")
WORK: Final = re.compile(rf"{_STEPS}(Flops/Rep|Bytes/Rep|Reps)")
#: Shares by the names that Caliper's recipes for PAPI and perf give them, and the titles of their reports.
SHARES: Final = {
    "retiring": ("retiring", "Retiring"),
    "speculation": ("bad_speculation", "bad_spec", "Bad speculation", "Bad spec"),
    "frontend": ("frontend_bound", "fe_bound", "Frontend bound", "FE bound"),
    "backend": ("backend_bound", "be_bound", "Backend bound", "BE bound"),
    "memory": ("memory_bound", "mem_bound", "Memory bound", "Mem bound"),
    "core": ("core_bound", "Core bound"),
    "l1": ("l1_bound", "L1 bound"),
    "l2": ("l2_bound", "L2 bound"),
    "l3": ("l3_bound", "L3 bound"),
    "dram": ("ext_mem_bound", "Ext mem bound"),
}
_KNOWN: Final = {name: share for share, names in SHARES.items() for name in names}


def find_share(name: str) -> str | None:
    """Return which top-down share an attribute holds, by its name or the title of a column; None for others."""
    found = _TOPDOWN.fullmatch(name)
    if found is None:
        return _KNOWN.get(name) if name[:1].isupper() else None
    return _KNOWN.get(found[1]) if found[1].islower() else None


def is_hardware_metric(name: str) -> bool:
    """Return whether an attribute holds a top-down share, or the work of a kernel."""
    return find_share(name) is not None or WORK.fullmatch(name) is not None
