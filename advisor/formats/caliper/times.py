"""Each region's own seconds, from whichever of Caliper's attributes a file has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.caliper.cells import RecordCells
    from advisor.model.records import FloatArray
    from advisor.trace.callpaths.records import CallPathNode

#: An attribute that was summed up this often was summed up over ranks, unless ranks are kept apart.
_OVER_RANKS: Final = 2


def has_summed_ranks(cells: Sequence[RecordCells], ranks: int | None) -> bool:
    """Return whether the only file of a run of several ``ranks`` holds what they took together."""
    if (ranks or 1) == 1 or len(cells) > 1 or (cells[0].table.rank >= 0).any():
        return False
    choice = cells[0].choice
    return choice.mean is not None or (choice.time_metric is not None and choice.time_metric.depth >= _OVER_RANKS)


def compute_own_seconds(cells: Sequence[RecordCells], nodes: Sequence[CallPathNode], ranks: int) -> FloatArray:
    """Return the own seconds of each node (nodes, processors); the mean over ``ranks`` where those are summed up."""
    total = np.zeros(cells[0].shape)
    for each in cells:
        averaged = each.choice.mean if ranks > 1 else None
        meaning = averaged or each.choice.time_metric
        if meaning is not None and meaning.inclusive:
            total += subtract_children(each.sum_cells(each.select_ended(each.to_seconds(meaning))), nodes)
        else:
            total += each.sum_cells(each.to_seconds(meaning))
        if averaged is None and ranks > 1:
            total /= ranks
    return total


def subtract_children(inclusive: FloatArray, nodes: Sequence[CallPathNode]) -> FloatArray:
    """Return ``inclusive`` (nodes, processors) without what children took, at least zero.

    A node without a record of its own took what its children took. Time outside of all regions is no parent's.
    """
    # What the children of each node took, those without records counted by their own children
    below = np.zeros_like(inclusive)
    for n in range(len(nodes) - 1, -1, -1):
        if nodes[n].parent >= 0:
            below[nodes[n].parent] += np.where(inclusive[n] > 0, inclusive[n], below[n])
    found = np.where(inclusive > 0, np.maximum(inclusive - below, 0.0), 0.0)
    roots = np.array([node.role == Role.ROOT for node in nodes])
    return np.where(roots[:, None], inclusive, found)


def add_children(own_s: FloatArray, nodes: Sequence[CallPathNode]) -> FloatArray:
    """Return ``own_s`` (nodes, processors) with what all nodes below took."""
    found = own_s.copy()
    for n in range(len(nodes) - 1, -1, -1):
        if nodes[n].parent >= 0:
            found[nodes[n].parent] += found[n]
    return found
