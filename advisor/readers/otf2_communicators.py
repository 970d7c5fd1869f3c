"""Which processes a communicator of an OTF2 archive consists of.

Groups of type ``COMM_LOCATIONS`` list locations; groups of type ``COMM_GROUP`` hold indices into the list of the
same paradigm; ``COMM_SELF`` is each process alone. EZTrace gives groups and communicators of different processes
the same id, so an id stands for a set of candidates, and who uses it decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from advisor.readers.otf2_contents import COMM_GROUP, COMM_LOCATION_GROUPS, COMM_LOCATIONS, COMM_SELF, Places

if TYPE_CHECKING:
    from advisor.model import IntArray
    from advisor.readers.otf2_definitions import Definitions

Members = tuple[int, ...]
#: Who takes part, and whom a recorded partner counts in (the other side of an inter-communicator).
Candidate = tuple[Members, Members]


@dataclass(frozen=True, slots=True)
class Communicators:
    """All distinct memberships, and which one a rank means by a communicator id.

    ``members`` are the distinct memberships. ``choice`` (ids + 1, ranks) indexes the candidates in use, -1 where a
    rank belongs to none (and in the last row); ``communicator`` (candidates + 1,) gives the membership of each.
    The peers of candidate c are ``peers[starts[c]:starts[c + 1]]``. ``undecided`` are ids whose choice the
    recorded collectives do not confirm.
    """

    members: tuple[Members, ...]
    choice: IntArray
    communicator: npt.NDArray[np.int32]
    starts: IntArray
    peers: npt.NDArray[np.int32]
    undecided: tuple[int, ...]

    def ranks(self, chosen: IntArray, local: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the rank of each partner ``local`` within the candidate ``chosen``, -1 where there is none."""
        begin, end = self.starts[chosen], self.starts[chosen + 1]
        valid = (chosen >= 0) & (local >= 0) & (local < end - begin)
        return np.where(valid, self.peers[np.where(valid, begin + local, -1)], np.int32(-1))


def candidates(definitions: Definitions, places: Places) -> dict[int, list[Candidate]]:
    """Return every membership that is recorded under each communicator id, in recorded order, each once."""
    groups = _groups(definitions, places)
    found: dict[int, list[Candidate]] = {}
    for identity, _, group, *_ in definitions["Comm"]:
        found.setdefault(identity, []).extend((members, members) for members in groups.get(group, []))
    for identity, _, first, second, *_ in definitions["InterComm"]:
        for one in groups.get(first, []):
            for other in groups.get(second, []):
                both = tuple(dict.fromkeys(one + other))
                found.setdefault(identity, []).extend(((both, other), (both, one)))
    return {identity: list(dict.fromkeys(pairs)) for identity, pairs in found.items()}


def choose(found: dict[int, list[Candidate]], ids: list[int], counts: IntArray, present: set[int]) -> Communicators:
    """Return the communicators, decided for each rank.

    ``counts`` (ids, ranks) holds how many collective operations each rank recorded under each id of ``ids``;
    ``present`` are the ranks that recorded anything. Among the candidates that contain a rank the largest counts,
    unless that rank alone has collectives there and a smaller one is at hand.
    """
    ranks = counts.shape[1]
    choice = np.full((len(ids) + 1, ranks), -1, dtype=np.int64)
    table: dict[Candidate, int] = {}
    undecided: dict[int, None] = {}
    for row, identity in enumerate(ids):
        for rank in range(ranks):
            fitting = [pair for pair in found[identity] if rank in pair[0] and _other_side(pair, rank)]
            if not fitting:
                continue
            best, sure = _best(sorted(fitting, key=lambda pair: -len(pair[0])), counts[row], rank, present)
            choice[row, rank] = table.setdefault(best, len(table))
            if not sure:
                undecided[identity] = None
    return _pack(list(table), choice, tuple(undecided))


def _other_side(pair: Candidate, rank: int) -> bool:
    """Whether partners are counted as this rank counts them: in an inter-communicator, not in its own group."""
    members, peers = pair
    return members == peers or rank not in peers


def _best(fitting: list[Candidate], counts: IntArray, rank: int, present: set[int]) -> tuple[Candidate, bool]:
    for pair in fitting:
        others = [int(counts[member]) for member in pair[0] if member != rank and member in present]
        alone = counts[rank] > 0 and others and not any(others)
        if not alone:
            return pair, all(count == counts[rank] for count in others)
    return fitting[0], False


def _pack(table: list[Candidate], choice: IntArray, undecided: tuple[int, ...]) -> Communicators:
    merged: dict[Members, int] = {}
    communicator = [merged.setdefault(members, len(merged)) for members, _ in table]
    return Communicators(
        members=tuple(merged),
        choice=choice,
        communicator=np.array([*communicator, -1], dtype=np.int32),
        starts=np.cumsum([0, *(len(peers) for _, peers in table), 0]),
        peers=np.array([*(peer for _, peers in table for peer in peers), -1], dtype=np.int32),
        undecided=undecided,
    )


def _groups(definitions: Definitions, places: Places) -> dict[int, list[Members]]:
    bases = _bases(definitions, places)
    found: dict[int, list[Members]] = {}
    for identity, _, kind, paradigm, _, entries in definitions["Group"]:
        if kind == COMM_SELF:
            found.setdefault(identity, []).extend((rank,) for rank in range(places.ranks))
        elif kind == COMM_GROUP and paradigm in bases:
            base = bases[paradigm]
            ranks = [base[entry] for entry in entries if entry < len(base)]
            found.setdefault(identity, []).append(tuple(dict.fromkeys(rank for rank in ranks if rank >= 0)))
    return found


def _bases(definitions: Definitions, places: Places) -> dict[int, list[int]]:
    """Return by paradigm the ranks that the indices of its groups count in, -1 where a location is unknown."""
    kinds = {COMM_LOCATIONS: places.rank_of, COMM_LOCATION_GROUPS: places.group_ranks}
    found: dict[int, list[int]] = {}
    for _, _, kind, paradigm, _, entries in definitions["Group"]:
        if kind in kinds and len(entries) >= len(found.get(paradigm, [])):
            found[paradigm] = [kinds[kind].get(entry, -1) for entry in entries]
    return found
