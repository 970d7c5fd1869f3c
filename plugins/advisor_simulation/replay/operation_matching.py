"""Which send belongs to which receive, and which calls to one collective operation: the k-th to the k-th, as in MPI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Role, Trace
from advisor_simulation.replay.collectives import short_name
from advisor_simulation.replay.program import Collectives

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class MatchedCollectives:
    """Collective operations, the one of each call (-1 where members are missing), and how many calls have none."""

    collectives: Collectives
    link: IntArray
    lost: int


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


def match_collectives(
    trace: Trace, rank: IntArray, comm: IntArray, region: IntArray, root: IntArray, size: IntArray
) -> MatchedCollectives:
    """Return the operations of calls, given in the order of the ranks: the k-th of each member on a communicator."""
    turn = number_turns(comm * (int(rank.max(initial=0)) + 1) + rank)
    key = (comm + 1) * (int(turn.max(initial=0)) + 1) + turn
    _, number = np.unique(key, return_inverse=True)
    members = np.array([*(len(group) for group in trace.communicators), 0])
    complete = np.bincount(number) == members[_first_values(number, comm)]
    kept = complete[number] & (comm >= 0)
    link = np.where(kept, (np.cumsum(complete) - 1)[number], -1)
    roles = np.array([each.role for each in trace.regions] or [Role.USER], dtype=np.int64)
    names = [short_name(each.name) for each in trace.regions]
    chosen = np.flatnonzero(complete)
    call = _first_values(number, region)[chosen]
    roots = np.full(len(complete), -1, dtype=np.int64)
    np.maximum.at(roots, number, root)
    group = _first_values(number, comm)[chosen]
    role = roles[call]
    found = Collectives(
        comm=group,
        role=role,
        root=roots[chosen],
        size=_contributed_bytes(
            link, rank, size, role, [names[at] for at in call.tolist()], roots[chosen], members[group]
        ),
        name=tuple(names[at] for at in call.tolist()),
    )
    return MatchedCollectives(found, link, int((~kept).sum()))


def _first_values(number: IntArray, column: IntArray) -> IntArray:
    """Return the value of the first element of each number."""
    _, at = np.unique(number, return_index=True)
    result: IntArray = column[at]
    return result


def _contributed_bytes(
    link: IntArray, rank: IntArray, size: IntArray, role: IntArray, names: list[str], root: IntArray, members: IntArray
) -> FloatArray:
    """Return the bytes that one member contributes, from what calls sent and received together.

    At the root of a rooted operation that is the sum over the others, so what the others tell is taken.
    """
    inside = link >= 0
    rooted = np.isin(role, (Role.ONE_TO_ALL, Role.ALL_TO_ONE))[link[inside]] & (members[link[inside]] > 1)
    of_root = rooted & (rank[inside] == root[link[inside]])
    bytes_ = np.where(of_root, 0, np.maximum(size[inside], 0))
    largest = np.zeros(len(role))
    np.maximum.at(largest, link[inside], bytes_)
    share = np.ones(len(role))
    for number, name in enumerate(names):
        if name in ("allreduce", "scan", "reduce_scatter"):
            share[number] = 2.0
        elif name == "allgather":
            share[number] = members[number] + 1.0
        elif name == "alltoall":
            share[number] = 2.0 * members[number]
    return largest / share
