"""Which processes a communicator of an OTF2 archive consists of.

Groups of type ``COMM_LOCATIONS`` list locations; groups of type ``COMM_GROUP`` hold indices into the list of the
same paradigm; ``COMM_SELF`` is each process alone. EZTrace gives groups and communicators of different processes
the same id, so an id stands for a set of candidates, and who uses it decides. Time and memory grow with the
members of all communicators together: large runs define thousands, some of all ranks and many of a few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.formats.otf2.codes import COMM_GROUP, COMM_LOCATION_GROUPS, COMM_LOCATIONS, COMM_SELF

if TYPE_CHECKING:
    from collections import Counter

    from advisor.formats.otf2.definition_contents import LocationTable
    from advisor.formats.otf2.definitions import Definitions
    from advisor.model.records import IntArray

Members = tuple[int, ...]
#: Definitions of one id that are looked at; more are damage.
_MOST = 64


class CommCandidate(NamedTuple):
    """What an id may stand for: who takes part, and whom a partner counts in (-1: a process that was not recorded).

    Of an inter-communicator all take part, and ``peers`` are the ``other`` side. If ``alone``, each member has a
    communicator of its own.
    """

    members: Members
    peers: Members
    other: bool = False
    alone: bool = False

    @property
    def size(self) -> int:
        """The number of processes that take part."""
        return 1 if self.alone else len(self.members)


@dataclass(frozen=True, slots=True)
class Communicators:
    """All distinct memberships, and which one a rank means by a communicator id.

    ``members`` are the distinct memberships. Rank r belongs to the ids ``number[first[r]:first[r + 1]]``, which rise,
    and ``candidate`` holds what they stand for. ``communicator`` (candidates + 1,) gives the membership of each
    candidate, -1 for the last; the peers of candidate c are ``peers[starts[c]:starts[c + 1]]``. ``undecided_ids`` are
    ids whose choice the recorded collectives do not confirm.
    """

    members: tuple[Members, ...]
    first: IntArray
    number: IntArray
    candidate: IntArray
    communicator: npt.NDArray[np.int32]
    starts: IntArray
    peers: npt.NDArray[np.int32]
    undecided_ids: tuple[int, ...]

    def find_candidates(self, rank: int | IntArray, number: npt.NDArray[np.int32]) -> IntArray:
        """Return the candidates that the ids of these numbers stand for on ``rank``, -1 for none."""
        width = int(self.number.max(initial=-1)) + 1
        keys = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first)) * width + self.number
        known = (number >= 0) & (number < width) & (np.asarray(rank) + 1 < len(self.first))
        wanted = np.where(known, rank * width + number.astype(np.int64), -1)
        place = np.searchsorted(keys, wanted)
        found = known & (np.r_[keys, -1][place] == wanted)
        return np.where(found, np.r_[self.candidate, -1][place], -1)

    def resolve_ranks(self, candidate: IntArray, local: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the rank of each partner ``local`` within its candidate, -1 where there is none."""
        begin, end = self.starts[candidate], self.starts[candidate + 1]
        valid = (candidate >= 0) & (local >= 0) & (local < end - begin)
        return np.where(valid, self.peers[np.where(valid, begin + local, -1)], np.int32(-1))


def find_candidates(definitions: Definitions, places: LocationTable) -> dict[int, list[CommCandidate]]:
    """Return every membership that is recorded under each communicator id, in recorded order, each once."""
    groups = _resolve_groups(definitions, places)
    found: dict[int, dict[CommCandidate, None]] = {}
    for identity, group in dict.fromkeys((row[0], row[2]) for row in definitions["Comm"]):
        found.setdefault(identity, {}).update(dict.fromkeys(groups.get(group, ())))
    for identity, _, first, second, *_ in definitions["InterComm"]:
        sides = [[pair.peers for pair in groups.get(group, ())[:_MOST]] for group in (first, second)]
        for one, other in product(*sides):
            both = _known_ranks(one + other)
            found.setdefault(identity, {}).update(
                {CommCandidate(both, other, other=True): None, CommCandidate(both, one, other=True): None}
            )
    return {identity: list(pairs) for identity, pairs in found.items()}


def select_communicators(
    found: dict[int, list[CommCandidate]], counts: dict[int, Counter[int]], present: set[int]
) -> Communicators:
    """Return the communicators, decided for each rank.

    ``counts`` maps the number of an id (its place in ``found``) to the number of collective operations that each rank
    recorded under it; ``present`` are the ranks that recorded anything. Among the candidates that contain a
    rank the largest counts, unless that rank alone has collectives there and a smaller one is at hand.
    """
    ranks = 1 + max((max(pair.members, default=-1) for pairs in found.values() for pair in pairs), default=-1)
    recorded = np.isin(np.arange(ranks), list(present))
    table: dict[CommCandidate, int] = {}
    decided: list[tuple[IntArray, IntArray]] = []
    undecided = []
    for number, (identity, pairs) in enumerate(found.items()):
        in_order = sorted(pairs, key=lambda pair: pair.size)
        rank, place, agreed = _decide(in_order, counts.get(number, {}), recorded)
        # candidates are known by their places: hashing one takes as long as it has members
        used = np.flatnonzero(np.bincount(place, minlength=len(in_order)))
        index = np.zeros(len(in_order), dtype=np.int64)
        index[used] = [table.setdefault(in_order[turn], len(table)) for turn in used.tolist()]
        decided.append((rank, index[place]))
        if not agreed:
            undecided.append(identity)
    return _pack_candidates(ranks, decided, list(table), tuple(undecided))


def _decide(
    pairs: list[CommCandidate], count: Mapping[int, int], recorded: npt.NDArray[np.bool_]
) -> tuple[IntArray, IntArray, bool]:
    """Return the ranks that belong to an id, the place of each one's candidate, and whether operations confirm them.

    The later of two ``pairs`` is the better one. Whoever takes part in a candidate has as many operations there.
    """
    members = [np.array(pair.members, dtype=np.int64) for pair in pairs]
    concerned = members[0] if len(pairs) == 1 else np.unique(np.concatenate([*members, np.zeros(0, dtype=np.int64)]))
    operations = np.array([count.get(rank, 0) for rank in concerned.tolist()], dtype=np.int64)
    chosen = np.full(len(concerned), -1)
    for place, (pair, ranks) in enumerate(zip(pairs, members, strict=True)):
        inside = np.arange(len(ranks)) if len(pairs) == 1 else np.searchsorted(concerned, ranks)
        here = inside[recorded[ranks]]
        active = here[operations[here] > 0]
        takes = ~np.isin(ranks, pair.peers) if pair.other else np.ones(len(ranks), dtype=np.bool_)
        if len(active) == 1 < len(here) and not pair.alone:
            takes &= (inside != active[0]) | (chosen[inside] < 0)
        chosen[inside[takes]] = place
    alone = np.array([pair.alone for pair in pairs], dtype=np.bool_)
    speaking = (chosen >= 0) & recorded[concerned] & ~np.r_[alone, False][chosen]
    said = chosen[speaking] * (int(operations.max(initial=0)) + 1) + operations[speaking]
    agreed = len(np.unique(said)) == len(np.unique(chosen[speaking]))
    return concerned[chosen >= 0], chosen[chosen >= 0], agreed


def _pack_candidates(
    ranks: int, decided: list[tuple[IntArray, IntArray]], table: list[CommCandidate], undecided: tuple[int, ...]
) -> Communicators:
    """Return the communicators; ``decided`` holds for each number of an id the ranks and their candidates."""
    nothing = np.zeros(0, dtype=np.int64)
    rank = np.concatenate([nothing, *(rank for rank, _ in decided)])
    candidate = np.concatenate([nothing, *(candidate for _, candidate in decided)])
    number = np.repeat(np.arange(len(decided)), [len(rank) for rank, _ in decided])
    candidate, table = _separate(rank, candidate, table)
    merged: dict[Members, int] = {}
    communicator = [merged.setdefault(pair.members, len(merged)) for pair in table]
    order = np.argsort(rank, kind="stable")
    return Communicators(
        members=tuple(merged),
        first=np.searchsorted(rank[order], np.arange(ranks + 1)),
        number=number[order],
        candidate=candidate[order],
        communicator=np.array([*communicator, -1], dtype=np.int32),
        starts=np.cumsum([0, *(len(pair.peers) for pair in table), 0]),
        peers=np.array([*(peer for pair in table for peer in pair.peers), -1], dtype=np.int32),
        undecided_ids=undecided,
    )


def _separate(rank: IntArray, candidate: IntArray, table: list[CommCandidate]) -> tuple[IntArray, list[CommCandidate]]:
    """Return the candidates and their table with one for each rank in place of those whose members are alone."""
    alone = np.array([pair.alone for pair in table], dtype=np.bool_)
    chosen = alone[candidate]
    ranks = np.unique(rank[chosen])
    together = [pair for pair in table if not pair.alone]
    number = np.where(chosen, len(together) + np.searchsorted(ranks, rank), (np.cumsum(~alone) - 1)[candidate])
    return number, together + [CommCandidate((one,), (one,)) for one in ranks.tolist()]


def _resolve_groups(definitions: Definitions, places: LocationTable) -> dict[int, list[CommCandidate]]:
    """Return what each group stands for as a communicator."""
    bases = _find_bases(definitions, places)
    found: dict[int, list[CommCandidate]] = {}
    for identity, _, kind, paradigm, _, entries in definitions["Group"]:
        if kind == COMM_SELF:
            found[identity] = [CommCandidate(tuple(range(places.rank_count)), (), alone=True)]
        elif kind == COMM_GROUP and paradigm in bases:
            base = bases[paradigm]
            ranks = tuple(base[entry] if entry < len(base) else -1 for entry in entries)
            found.setdefault(identity, []).append(CommCandidate(_known_ranks(ranks), ranks))
    return found


def _known_ranks(ranks: Members) -> Members:
    return tuple(dict.fromkeys(rank for rank in ranks if rank >= 0))


def _find_bases(definitions: Definitions, places: LocationTable) -> dict[int, list[int]]:
    """Return by paradigm the ranks that the indices of its groups count in, -1 where a location is unknown."""
    kinds = {COMM_LOCATIONS: places.rank_of, COMM_LOCATION_GROUPS: places.group_ranks}
    found: dict[int, list[int]] = {}
    for _, _, kind, paradigm, _, entries in definitions["Group"]:
        if kind in kinds and len(entries) >= len(found.get(paradigm, [])):
            found[paradigm] = [kinds[kind].get(entry, -1) for entry in entries]
    return found
