"""Which ranks or sub-domains share a node, so that most of what they exchange stays inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.program import Program

#: Passes over all, in which those that fit better elsewhere change places.
PASSES: Final = 8
#: Another mapping keeps at least this share of what leaves nodes inside, or is not worth the change.
LEAST_MOVED: Final = 0.05
#: Among more ranks no better mapping is sought while advising: what each sends to each is a table of ranks x ranks.
MOST_RANKS: Final = 1024


def place_by_exchange(exchanged: npt.NDArray[np.generic], per_node: int) -> IntArray:
    """Return the place of each (n,), 0 to n - 1; node k has the places ``k * per_node`` up to the next node's.

    ``exchanged`` (n, n) is what goes from each to each. Nodes are filled one after the other with whoever exchanges
    most with those already there; then pairs change places as long as less leaves the nodes (Kernighan and Lin 1970).
    The order of those that were given is the answer where nothing is better.
    """
    both = np.asarray(exchanged, dtype=np.float64)
    both = both + both.T
    np.fill_diagonal(both, 0.0)
    count = len(both)
    given = np.arange(count) // per_node
    grown = _exchange_pairs(both, _grow_nodes(both, per_node))
    kept = _exchange_pairs(both, given.copy())
    node = min((given, kept, grown), key=lambda one: sum_outside(both, one))
    place = np.empty(count, dtype=np.int64)
    place[np.argsort(node, kind="stable")] = np.arange(count)
    return place


def exchanged_bytes(program: Program) -> FloatArray:
    """Return the bytes that go from each rank to each (ranks, ranks)."""
    moved = np.zeros((program.ranks, program.ranks))
    np.add.at(moved, (program.source, program.target), program.sizes)
    return moved


def sum_outside(exchanged: npt.NDArray[np.generic], node: IntArray) -> float:
    """Return how much of ``exchanged`` (n, n) crosses nodes; ``node`` (n,) is the node of each rank."""
    return float(np.asarray(exchanged, dtype=np.float64)[node[:, None] != node[None, :]].sum())


def is_well_placed(program: Program) -> bool:
    """Return whether no other mapping of ranks to the same hosts keeps much more of what they exchange inside.

    Where hosts are not known, or hold different numbers of ranks, or there are more than ``MOST_RANKS`` ranks, nothing
    is known of other mappings.
    """
    hosts = program.hosts
    if None in hosts or program.ranks > MOST_RANKS:
        return False
    exchanged = exchanged_bytes(program)
    names, node = np.unique([name or "" for name in hosts], return_inverse=True)
    counts = np.bincount(node)
    if len(hosts) != len(exchanged) or (counts != counts[0]).any():
        return False
    if len(names) == 1:
        return True
    better = place_by_exchange(exchanged, int(counts[0])) // int(counts[0])
    return sum_outside(exchanged, better) >= (1.0 - LEAST_MOVED) * sum_outside(exchanged, node)


def _grow_nodes(both: npt.NDArray[np.float64], per_node: int) -> IntArray:
    node = np.full(len(both), -1, dtype=np.int64)
    for place in range(len(both)):
        free = np.flatnonzero(node < 0)
        number = place // per_node
        near = both[:, node == number].sum(axis=1) if place % per_node else both.sum(axis=1)
        node[free[int(np.argmax(near[free]))]] = number
    return node


def _exchange_pairs(both: npt.NDArray[np.float64], node: IntArray) -> IntArray:
    """Return the nodes after exchanging pairs as long as that helps."""
    for _ in range(PASSES):
        changed = False
        for one in range(len(both)):
            to = np.stack([both[:, node == number].sum(axis=1) for number in range(int(node.max()) + 1)], axis=1)
            stay = to[np.arange(len(both)), node]
            gain = to[one][node] - stay[one] + to[:, node[one]] - stay - 2 * both[one]
            gain[node == node[one]] = 0.0
            best = int(np.argmax(gain))
            if gain[best] > 1e-12:
                node[one], node[best] = node[best], node[one]
                changed = True
        if not changed:
            break
    return node
