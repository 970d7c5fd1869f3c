"""Facts about caches, memory and instructions, from hardware counters and simulated counts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.source import Compute, FactSource, compute_share
from advisor.analysis.cache_counts import list_accesses, list_misses

if TYPE_CHECKING:
    from advisor.model.records import FloatArray


def sum_counts(source: FactSource, *names: str) -> float | None:
    """Return the sum of counts over the regions of the site; None unless the first of ``names`` was counted."""
    counts = source.profile.counts
    if names[0] not in counts:
        return None
    return sum(_sum_rows(source, counts[name]) or 0.0 for name in names if name in counts)


def _sum_rows(source: FactSource, table: FloatArray | None) -> float | None:
    """Return what of a count (regions, processors) is of the regions of the site."""
    if table is None:
        return None
    rows = np.unique(np.concatenate([source.profile.phases[p].regions for p in source.phases]))
    return float(table[rows].sum())


def _miss_ratio(level: str, source: FactSource) -> float | None:
    accesses = _sum_rows(source, list_accesses(source.profile.counts))
    return compute_share(_sum_rows(source, list_misses(source.profile.counts, level)), accesses) if accesses else None


def _vectorized_share(source: FactSource) -> float | None:
    units = ("compiled_ops.fp_add", "compiled_ops.fp_mul", "compiled_ops.fp_fma", "compiled_ops.fp_div")
    known = [name for name in units if name in source.profile.counts]
    return compute_share(sum_counts(source, "vectorized_ops"), sum_counts(source, *known)) if known else None


def _false_sharing(source: FactSource) -> float | None:
    """Return the share of false sharing and true: loads of lines that another core has changed over all loads."""
    return compute_share(sum_counts(source, "contended_loads"), sum_counts(source, "compiled_ops.load"))


def _slot_share(names: tuple[str, ...], source: FactSource) -> float | None:
    """Return the share of the computation that top-down counters lay to ``names``."""
    return compute_share(sum_counts(source, *names), sum_counts(source, "topdown.all_s"))


def _bandwidth_share(source: FactSource) -> float | None:
    memory = source.machine.memory if source.machine else None
    peak = memory.bandwidth or memory.sustained if memory else None
    moved = sum_counts(source, "memory_bytes")
    if peak is None or moved is None or not source.is_work_known or source.work.max() <= 0:
        return None
    hosts = len({processor.host for processor in source.profile.processors})
    return moved / (float(source.work.max()) * peak * hosts)


def _task_mean_s(source: FactSource) -> float | None:
    """Return the mean length of a task; None where none was run."""
    tasks = sum_counts(source, "tasks")
    return compute_share(sum_counts(source, "task_s"), tasks) if tasks else None


VALUES: Final[dict[str, Compute]] = {
    "cache.l1_miss_ratio": partial(_miss_ratio, "L1"),
    "cache.ll_miss_ratio": partial(_miss_ratio, "LL"),
    "memory.bandwidth_share": _bandwidth_share,
    "omp.task_mean_s": _task_mean_s,
    "processor.vectorized_share": _vectorized_share,
    "processor.dram_share": partial(_slot_share, ("topdown.dram_s",)),
    "processor.far_cache_share": partial(_slot_share, ("topdown.l2_s", "topdown.l3_s")),
    "processor.false_sharing_share": _false_sharing,
}
