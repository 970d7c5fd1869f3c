"""Which send belongs to which receive: the k-th of a channel with the k-th, as MPI keeps their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray


def match_ends(sends: IntArray, receives: IntArray) -> tuple[IntArray, IntArray]:
    """Return indices of sends and receives that belong together, given the channel of each in the order of the ranks.

    What has no partner is left out: ``len(sends)`` less the length of the result are lost.
    """
    left = np.argsort(sends, kind="stable")
    right = np.argsort(receives, kind="stable")
    ordered, wanted = sends[left], receives[right]
    if len(ordered) == len(wanted) and np.array_equal(ordered, wanted):
        return left, right
    first = _number_sorted_turns(ordered)
    second = _number_sorted_turns(wanted)
    channels = np.unique(np.r_[ordered, wanted])
    turns = int(max(first.max(initial=0), second.max(initial=0))) + 1
    keys = np.searchsorted(channels, ordered) * turns + first
    others = np.searchsorted(channels, wanted) * turns + second
    _, at, to = np.intersect1d(keys, others, assume_unique=True, return_indices=True)
    return left[at], right[to]


def number_channels(
    source: npt.NDArray[np.signedinteger], target: npt.NDArray[np.signedinteger], label: npt.NDArray[np.signedinteger]
) -> IntArray:
    """Return one number per end of a message, equal where source, target and label (communicator and tag) are."""
    ranks = int(max(source.max(initial=0), target.max(initial=0))) + 1
    low = int(label.min(initial=0))
    labels = int(label.max(initial=0)) - low + 1
    if labels > 2**62 // (ranks * ranks):
        label = np.unique(label, return_inverse=True)[1]
        low, labels = 0, int(label.max(initial=0)) + 1
    ends = source.astype(np.int64) * ranks + target
    result: IntArray = ends * labels + (label - low)
    return result


def find_latest(group: IntArray, sources: IntArray, queries: IntArray) -> IntArray:
    """Return for each row of ``queries`` the latest earlier row of ``sources`` of the same group, -1 where none is."""
    rows = np.r_[sources, queries]
    if not len(sources) or not len(queries):
        return np.full(len(queries), -1, dtype=np.int64)
    order = np.lexsort((rows, group[rows]))
    ordered, grouped = rows[order], group[rows][order]
    place = np.arange(len(order))
    begin = np.maximum.accumulate(np.where(np.r_[True, grouped[1:] != grouped[:-1]], place, 0))
    last = np.maximum.accumulate(np.where(order < len(sources), place, -1))
    found = np.empty(len(rows), dtype=np.int64)
    found[order] = np.where(last >= begin, ordered[np.maximum(last, 0)], -1)
    result: IntArray = found[len(sources) :]
    return result


def number_turns(key: IntArray) -> IntArray:
    """Return for each element how many equal ones came before it."""
    order = np.argsort(key, kind="stable")
    result = np.empty(len(key), dtype=np.int64)
    result[order] = _number_sorted_turns(key[order])
    return result


def _number_sorted_turns(ordered: IntArray) -> IntArray:
    """Return for each element of a sorted array how many equal ones came before it."""
    place = np.arange(len(ordered))
    fresh = np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)]
    result: IntArray = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return result


def number_labels(comm: IntArray, tag: IntArray) -> IntArray:
    """Return one number per message end, equal where communicator and tag are."""
    lowest = int(tag.min(initial=0))
    span = int(tag.max(initial=0)) - lowest + 1
    result: IntArray = (comm + 1) * span + (tag - lowest)
    return result
