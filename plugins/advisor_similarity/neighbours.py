"""The known workloads nearest to one, and in what they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.errors import UsageError
from advisor_similarity import measures
from advisor_similarity.classes import COARSE, FINE_NAMES
from advisor_similarity.features import vectors
from advisor_similarity.library import centroids, fine_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from advisor.model import FloatArray
    from advisor_similarity.library import Entry

    Measure = Callable[[FloatArray, FloatArray], FloatArray]

#: How to compare: the vectors and the measure.
MEASURES: Final = ("mix", "centroid", "tanimoto", "profile")
_DIFFERENCES: Final = 3


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A known workload, how far it is away (0 identical, 1 orthogonal), and its most different components.

    Each difference is a component with its value here and there; of a mix, its share of all operations.
    """

    entry: Entry
    distance: float
    differences: tuple[tuple[str, float, float], ...]


def nearest(this: Entry, known: Sequence[Entry], by: str, count: int | None = None) -> list[Neighbour]:
    """Return the nearest of ``known``, nearest first, without those that lack what is compared.

    ``mix`` compares the proportions of finer classes, ``centroid`` takes expression (9) of the paper's five components,
    ``tanimoto`` its Table 12's measure of them, ``profile`` the features of profiles. Raises ``UsageError`` where
    ``this`` itself lacks it.
    """
    comparable = [entry for entry in known if _has(entry, by)]
    if not _has(this, by):
        raise UsageError(f"{this.name} has no {'profile' if by == 'profile' else 'centroid'} to compare by {by}")
    if not comparable:
        return []
    names, table = _vectors(this, comparable, by)
    distances = _measure(by)(table[0], table[1:])
    order = np.argsort(distances, kind="stable")[:count]
    shown = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300) if by == "mix" else table
    return [
        Neighbour(comparable[at], float(distances[at]), _differences(names, shown[0], shown[at + 1])) for at in order
    ]


def pairwise_distances(entries: Sequence[Entry], by: str) -> FloatArray:
    """Return the distances of all pairs (n, n)."""
    names, table = _vectors(entries[0], entries[1:], by)
    del names
    return np.array([_measure(by)(row, table) for row in table])


def _has(entry: Entry, by: str) -> bool:
    return bool(entry.profile) if by == "profile" else bool(entry.centroid)


def _vectors(this: Entry, known: Sequence[Entry], by: str) -> tuple[tuple[str, ...], FloatArray]:
    if by == "profile":
        return vectors(this.profile, *(entry.profile for entry in known))
    if by == "mix":
        return FINE_NAMES[:-1], fine_vectors((this, *known))
    return COARSE, centroids((this, *known))


def _measure(by: str) -> Measure:
    return {"mix": measures.shape_distance, "tanimoto": measures.tanimoto}.get(by, measures.distance)


def _differences(names: Sequence[str], here: FloatArray, there: FloatArray) -> tuple[tuple[str, float, float], ...]:
    apart = np.abs(here - there)
    order = np.argsort(-apart, kind="stable")[:_DIFFERENCES]
    return tuple((names[at], float(here[at]), float(there[at])) for at in order if apart[at] > 0)
