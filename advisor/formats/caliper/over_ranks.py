"""Least, mean and most over the ranks in Caliper's records, as ``formats.rank_extremes`` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.rank_extremes import Extremes
from advisor.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.formats.caliper.cells import RecordCells
    from advisor.trace.callpaths.records import CallPathNode

#: Of that share of the mean times the ranks the sum of a region falls short where some ranks never were in it.
_ALL: Final = 1 - 0.5 / 10_000


def extremes_of(cells: RecordCells, nodes: Sequence[CallPathNode], ranks: int) -> Extremes | None:
    """Return least, mean and most over all ``ranks`` for each node; None where the file does not hold all three.

    A rank that never was in a region has no part in the file's means: then the least is zero.
    """
    choice = cells.choice
    if choice.mean is None or choice.least is None or choice.most is None:
        return None
    least, mean, most = (
        cells.sum_cells(cells.to_seconds(each))[:, 0] for each in (choice.least, choice.mean, choice.most)
    )  # fmt: skip
    if choice.inclusive is not None and choice.inclusive.depth == choice.mean.depth:
        together = cells.sum_cells(cells.to_seconds(choice.inclusive))[:, 0]
        least = np.where(together < _ALL * ranks * mean, 0.0, least)
        mean = together / ranks
    return _with_unrecorded(Extremes(least, mean, np.maximum(most, mean)), nodes)


def _with_unrecorded(found: Extremes, nodes: Sequence[CallPathNode]) -> Extremes:
    """Return ``found`` with what is below the nodes whose records hold only their own time, or that have none."""
    least, mean, most = found.least.copy(), found.mean.copy(), found.most.copy()
    below: dict[int, list[int]] = {}
    for n in range(len(nodes) - 1, -1, -1):
        here = below.get(n, [])
        if here and (nodes[n].role == Role.ROOT or mean[n] <= 0):
            certain = least[n] + float(least[here].sum())
            mean[n] += float(mean[here].sum())
            most[n] = max(float(mean[n]), certain + float((most - least)[here].max()))
            least[n] = certain
        if nodes[n].parent >= 0:
            below.setdefault(nodes[n].parent, []).append(n)
    return Extremes(least, mean, most)
