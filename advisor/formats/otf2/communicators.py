"""Which processes a communicator of an OTF2 archive consists of.

Groups of type ``COMM_LOCATIONS`` list locations; groups of type ``COMM_GROUP`` hold indices into the list of the
same paradigm; ``COMM_SELF`` is each process alone. EZTrace gives groups and communicators of different processes
the same id, so an id stands for a set of candidates, and who uses it decides.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.formats.otf2.codes import COMM_GROUP, COMM_LOCATION_GROUPS, COMM_LOCATIONS, COMM_SELF

if TYPE_CHECKING:
    from collections.abc import Container

    from advisor.formats.otf2.definition_contents import LocationTable
    from advisor.formats.otf2.definitions import Definitions
    from advisor.model.records import IntArray

Members = tuple[int, ...]
#: Definitions of one id that are looked at; more are damage.
_MOST = 64


class CommCandidate(NamedTuple):
    """What an id may stand for: who takes part, and whom a partner counts in (-1: a process that was not recorded).

    Of an inter-communicator all take part, and ``peers`` are the ``other`` side.
    """

    members: Members
    peers: Members
    other: bool = False


@dataclass(frozen=True, slots=True)
class Communicators:
    """All distinct memberships, and which one a rank means by a communicator id.

    ``members`` are the distinct memberships. ``chosen_candidates`` holds for each rank the numbers of the ids it
    belongs to and the candidates they stand for. ``communicator`` (candidates + 1,) gives the membership of each
    candidate, -1 for the last; the peers of candidate c are ``peers[starts[c]:starts[c + 1]]``. ``undecided_ids`` are
    ids whose choice the recorded collectives do not confirm.
    """

    ids: int
    members: tuple[Members, ...]
    chosen_candidates: dict[int, list[tuple[int, int]]]
    communicator: npt.NDArray[np.int32]
    starts: IntArray
    peers: npt.NDArray[np.int32]
    undecided_ids: tuple[int, ...]

    def map_rank(self, rank: int) -> IntArray:
        """Return the candidate that each id's number stands for on ``rank``, -1 for none (ids + 1,)."""
        table = np.full(self.ids + 1, -1, dtype=np.int64)
        for number, candidate in self.chosen_candidates.get(rank, ()):
            table[number] = candidate
        return table

    def resolve_ranks(self, candidate: IntArray, local: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the rank of each partner ``local`` within its candidate, -1 where there is none."""
        begin, end = self.starts[candidate], self.starts[candidate + 1]
        valid = (candidate >= 0) & (local >= 0) & (local < end - begin)
        return np.where(valid, self.peers[np.where(valid, begin + local, -1)], np.int32(-1))


def find_candidates(definitions: Definitions, places: LocationTable) -> dict[int, list[CommCandidate]]:
    """Return every membership that is recorded under each communicator id, in recorded order, each once."""
    groups = _resolve_groups(definitions, places)
    found: dict[int, dict[CommCandidate, None]] = {}
    for identity, _, group, *_ in definitions["Comm"]:
        pairs = found.setdefault(identity, {})
        pairs.update((CommCandidate(_known_ranks(peers), peers), None) for peers in groups.get(group, ()))
    for identity, _, first, second, *_ in definitions["InterComm"]:
        for one in groups.get(first, ())[:_MOST]:
            for other in groups.get(second, ())[:_MOST]:
                both = _known_ranks(one + other)
                found.setdefault(identity, {}).update(
                    {CommCandidate(both, other, True): None, CommCandidate(both, one, True): None}
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
    table: dict[CommCandidate, int] = {}
    chosen: dict[int, list[tuple[int, int]]] = {}
    undecided = []
    for number, (identity, pairs) in enumerate(found.items()):
        count = counts.get(number, Counter())
        decided: dict[int, int] = {}
        sorted_pairs = sorted(pairs, key=lambda pair: len(pair.members))
        for place, pair in enumerate(sorted_pairs):
            decided.update(dict.fromkeys(_find_takers(pair, decided, count, present), place))
        # candidates are known by their places: hashing one takes as long as it has members
        places = {place: table.setdefault(sorted_pairs[place], len(table)) for place in dict.fromkeys(decided.values())}
        for rank, place in decided.items():
            chosen.setdefault(rank, []).append((number, places[place]))
        speaking = {rank: place for rank, place in decided.items() if rank in present}
        if len({(place, count[rank]) for rank, place in speaking.items()}) > len(set(speaking.values())):
            undecided.append(identity)
    return _pack_candidates(len(found), list(table), chosen, tuple(undecided))


def _find_takers(pair: CommCandidate, decided: Container[int], count: Counter[int], present: set[int]) -> list[int]:
    """Return the ranks for which ``pair`` is better than the smaller candidate that the ``decided`` ones have."""
    here = [member for member in pair.members if member in present]
    active = [member for member in here if count[member]]
    alone = active[0] if len(active) == 1 and len(here) > 1 else None
    own_side = set(pair.peers) if pair.other else set()
    return [rank for rank in pair.members if rank not in own_side and not (rank == alone and rank in decided)]


def _pack_candidates(
    ids: int, table: list[CommCandidate], chosen: dict[int, list[tuple[int, int]]], undecided: tuple[int, ...]
) -> Communicators:
    merged: dict[Members, int] = {}
    communicator = [merged.setdefault(members, len(merged)) for members, *_ in table]
    return Communicators(
        ids=ids,
        members=tuple(merged),
        chosen_candidates=chosen,
        communicator=np.array([*communicator, -1], dtype=np.int32),
        starts=np.cumsum([0, *(len(peers) for _, peers, _ in table), 0]),
        peers=np.array([*(peer for _, peers, _ in table for peer in peers), -1], dtype=np.int32),
        undecided_ids=undecided,
    )


def _resolve_groups(definitions: Definitions, places: LocationTable) -> dict[int, list[Members]]:
    bases = _find_bases(definitions, places)
    found: dict[int, list[Members]] = {}
    for identity, _, kind, paradigm, _, entries in definitions["Group"]:
        if kind == COMM_SELF:
            found[identity] = [(rank,) for rank in range(places.rank_count)]
        elif kind == COMM_GROUP and paradigm in bases:
            base = bases[paradigm]
            ranks = tuple(base[entry] if entry < len(base) else -1 for entry in entries)
            found.setdefault(identity, []).append(ranks)
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
