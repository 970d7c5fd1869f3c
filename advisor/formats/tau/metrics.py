"""What TAU's metrics measure: wall time, CPU time, or events of the processor."""

from __future__ import annotations

from typing import Final

#: All times are in microseconds.
MICROSECOND: Final = 1e-6
_WALL: Final = frozenset({
    "TIME", "GET_TIME_OF_DAY", "WALL_CLOCK_TIME", "P_WALL_CLOCK_TIME", "LINUX_TIMERS", "LINUXTIMERS", "CRAY_TIMERS",
    "CRAYTIMERS", "BGL_TIMERS", "BGLTIMERS", "BGP_TIMERS", "BGPTIMERS", "SGI_TIMERS", "SGITIMERS", "TAU_MPI_WTIME",
    "CLOCK_GETTIME",
})  # fmt: skip
_CPU: Final = frozenset({"CPU_TIME", "CPUTIME", "P_VIRTUAL_TIME", "USER_TIME"})
#: PAPI's presets by the names of ``Profile.counts``.
_COUNTS: Final = {
    "PAPI_TOT_INS": "instructions",
    "PAPI_TOT_CYC": "cycles",
    "PAPI_LD_INS": "compiled_ops.load",
    "PAPI_SR_INS": "compiled_ops.store",
    "PAPI_FAD_INS": "compiled_ops.fp_add",
    "PAPI_FML_INS": "compiled_ops.fp_mul",
    "PAPI_FMA_INS": "compiled_ops.fp_fma",
    "PAPI_FDV_INS": "compiled_ops.fp_div",
    "PAPI_L1_DCM": "misses.L1",
    "PAPI_L2_DCM": "misses.L2",
    "PAPI_L2_TCM": "misses.L2",
    "PAPI_L3_DCM": "misses.L3",
    "PAPI_L3_TCM": "misses.L3",
}


def is_wall(metric: str) -> bool:
    """Return whether a metric is wall time."""
    return metric.upper() in _WALL


def is_cpu(metric: str) -> bool:
    """Return whether a metric is CPU time."""
    return metric.upper() in _CPU


def count_name(metric: str) -> str:
    """Return the name among ``Profile.counts`` of a metric that is no time; its own where there is none."""
    return _COUNTS.get(metric.upper(), metric)
