"""What Caliper and programs count beside times: top-down shares of the processor's slots, operations and bytes.

Caliper's top-down recipes hold, for each region, which share of the processor's issue slots retired operations, and
which was lost to what (Yasin, ISPASS 2014). Shares times own seconds add up over regions; so they are kept. RAJAPerf
and others attach what a kernel does by its formula: ``Flops/Rep`` and ``Bytes/Rep``, and how often, ``Reps``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.machine_bounds import UNSTALLED
from advisor.formats.caliper.hardware_names import SHARES, WORK, find_share
from advisor.trace.callpaths.tree import WORKING

if TYPE_CHECKING:
    from advisor.formats.caliper.cells import RecordCells
    from advisor.model.records import FloatArray
    from advisor.trace.callpaths.records import CallPathNode

_TOP: Final = ("retiring", "speculation", "frontend", "backend")
#: Multiplexed counters miss: the four shares at the top add up to the whole within so much, or are not believed.
_SLACK: Final = 0.15
_MOST: Final = 1e18


def read_hardware_counts(
    cells: Sequence[RecordCells], nodes: Sequence[CallPathNode], wall_s: FloatArray
) -> dict[str, FloatArray]:
    """Return counts (nodes, processors) as ``Profile.counts`` names them; none where a file holds none.

    ``topdown.all_s`` are the own seconds of regions whose shares are known, ``topdown.memory_s`` and so on those spent
    for each cause; ``unstalled_s`` is what of the computation did not wait for memory.
    ``source_ops.flops`` and ``kernel_bytes`` are operations and bytes by the formulas of kernels.
    """
    return {**_weigh_shares(cells, nodes, wall_s), **_multiply_work(cells, nodes, wall_s)}


def _average(cells: Sequence[RecordCells], columns: Sequence[FloatArray | None]) -> FloatArray:
    """Return the mean of an attribute for each node (nodes,), NaN where no record has it."""
    nodes = cells[0].shape[0]
    total, count = np.zeros(nodes), np.zeros(nodes)
    for each, column in zip(cells, columns, strict=True):
        if column is not None:
            column = np.where(np.isfinite(column), column, np.nan)
            total += each.sum_cells(column).sum(axis=1)
            count += each.sum_cells((~np.isnan(column)).astype(np.float64)).sum(axis=1)
    mean: FloatArray = np.divide(total, count, out=np.full(nodes, np.nan), where=count > 0)
    return mean


def _weigh_shares(
    cells: Sequence[RecordCells], nodes: Sequence[CallPathNode], wall_s: FloatArray
) -> dict[str, FloatArray]:
    shares: dict[str, FloatArray] = {}
    for share in SHARES:
        columns = [_find_column(each, share) for each in cells]
        if any(column is not None for column in columns):
            shares[share] = _average(cells, columns)
    if not set(_TOP) <= shares.keys():
        return {}
    whole = sum((shares[name] for name in _TOP), np.zeros(len(wall_s)))
    if np.isnan(whole).all():
        return {}
    unit = 100.0 if np.nanmedian(whole) > 2 else 1.0
    believed = np.abs(whole / unit - 1) <= _SLACK
    for name in _TOP:
        believed &= (shares[name] / unit > -_SLACK) & (shares[name] / unit < 1 + _SLACK)
    if not believed.any():
        return {}
    works = np.array([node.role in WORKING for node in nodes])
    computed_s = np.where(works[:, None], wall_s, 0.0)
    weights = {name: np.clip(np.nan_to_num(share / unit), 0.0, 1.0) for name, share in shares.items()}
    found = {
        f"topdown.{name}_s": np.where(believed, share, 0.0)[:, None] * computed_s for name, share in weights.items()
    }
    found["topdown.all_s"] = np.where(believed[:, None], computed_s, 0.0)
    return found | ({UNSTALLED: computed_s - found["topdown.memory_s"]} if "topdown.memory_s" in found else {})


def _find_column(cells: RecordCells, share: str) -> FloatArray | None:
    for name, column in cells.table.values.items():
        if find_share(name) == share:
            return column
    return None


def _multiply_work(
    cells: Sequence[RecordCells], nodes: Sequence[CallPathNode], wall_s: FloatArray
) -> dict[str, FloatArray]:
    """Return operations and bytes of all repetitions of kernels, the same on each processor that was in them.

    Caliper hands the largest value on to the regions that a kernel is in: only the innermost counts.
    """
    columns: dict[str, list[FloatArray | None]] = {name: [] for name in ("Flops/Rep", "Bytes/Rep", "Reps")}
    for each in cells:
        own = {found[1]: column for name, column in each.table.values.items() if (found := WORK.fullmatch(name))}
        for name, parts in columns.items():
            parts.append(own.get(name))
    means = {name: _average(cells, parts) for name, parts in columns.items()}
    result: dict[str, FloatArray] = {}
    for name, count in (("Flops/Rep", "source_ops.flops"), ("Bytes/Rep", "kernel_bytes")):
        total = np.nan_to_num(means[name] * means["Reps"])
        for number in range(len(nodes) - 1, -1, -1):
            parent = nodes[number].parent
            while total[number] > 0 and parent >= 0:
                total[parent], parent = 0.0, nodes[parent].parent
        if (total > 0).any() and (total >= 0).all() and total.max() < _MOST:
            result[count] = np.where(wall_s > 0, total[:, None], 0.0)
    return result
