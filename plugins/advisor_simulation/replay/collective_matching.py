"""Collective operations of a trace: which calls belong together, and how much each member contributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay import message_matching
from advisor_simulation.replay.collectives import short_name
from advisor_simulation.replay.program import Collectives

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.events import Trace


@dataclass(frozen=True, slots=True)
class MatchedCollectives:
    """Collective operations, the one of each call (-1 where members are missing), and how many calls have none."""

    collectives: Collectives
    link: IntArray
    lost: int


def match_collectives(
    trace: Trace, rank: IntArray, comm: IntArray, region: IntArray, root: IntArray, size: IntArray
) -> MatchedCollectives:
    """Return the operations of calls, given in the order of the ranks: the k-th of each member on a communicator."""
    turn = message_matching.number_turns(comm * (int(rank.max(initial=0)) + 1) + rank)
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
