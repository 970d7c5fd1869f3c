"""Who takes part in a communicator: several under one id, indices into lists, two sides of an inter-communicator."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from otf2_archives import BARRIER, OPENMP, Archive
from otf2_archives import COMM_LOCATIONS as LOCATIONS

from advisor.formats.otf2 import read_trace
from advisor.formats.otf2.codes import COMM_GROUP, COMM_LOCATION_GROUPS, COMM_LOCATIONS, COMM_SELF, MPI
from advisor.formats.otf2.communicators import Communicators, find_candidates, select_communicators
from advisor.formats.otf2.definition_contents import LocationTable
from advisor.trace.events import Location

if TYPE_CHECKING:
    from pathlib import Path

#: Four ranks as EZTrace numbers them.
IDS = (0, 536870911, 1073741822, 1610612733)
PLACES = LocationTable(IDS, tuple(Location("", rank) for rank in range(4)), {10: 0, 11: 1, 12: 2, 13: 3}, 0)
#: The number of the first id.
FIRST = np.zeros(1, dtype=np.int32)
WORLD = [0, 0, COMM_LOCATIONS, MPI, 0, list(IDS)]


def group(identity: int, members: list[int], kind: int = COMM_GROUP) -> list[Any]:
    return [identity, 0, kind, MPI, 0, members]


def resolved(
    groups: list[list[Any]], comms: list[tuple[int, int]], counts: dict[int, dict[int, int]] | None = None
) -> tuple[Communicators, list[int]]:
    """Return the communicators of definitions (id, group) and the ids in the order of their numbers."""
    definitions = {
        "Group": groups,
        "Comm": [[identity, 0, number, 0, 0] for identity, number in comms],
        "InterComm": [],
    }
    found = find_candidates(definitions, PLACES)
    numbered = {list(found).index(identity): Counter(count) for identity, count in (counts or {}).items()}
    return select_communicators(found, numbered, {0, 1, 2, 3}), list(found)


def members(of: tuple[Communicators, list[int]], identity: int, rank: int) -> tuple[int, ...] | None:
    communicators, ids = of
    candidate = int(communicators.find_candidates(rank, np.array([ids.index(identity)], dtype=np.int32))[0])
    number = int(communicators.communicator[candidate])
    return communicators.members[number] if number >= 0 else None


def test_groups_index_the_list_of_locations() -> None:
    found = resolved([WORLD, group(7, [2, 0])], [(5, 7)])
    assert [members(found, 5, rank) for rank in range(4)] == [(2, 0), None, (2, 0), None]


def test_a_group_may_index_location_groups() -> None:
    found = resolved([group(0, [13, 12, 11, 10], COMM_LOCATION_GROUPS), group(7, [0, 3])], [(5, 7)])
    assert members(found, 5, 0) == (3, 0)


def test_self_is_each_process_alone() -> None:
    found = resolved([WORLD, group(3, [], COMM_SELF)], [(2, 3)])
    assert [members(found, 2, rank) for rank in range(4)] == [(0,), (1,), (2,), (3,)]


def test_work_grows_with_the_members_and_not_with_communicators_times_ranks() -> None:
    ranks, ids = 300, range(200)
    places = LocationTable(tuple(range(ranks)), tuple(Location("", rank) for rank in range(ranks)), {}, 0)
    groups = [[0, 0, COMM_LOCATIONS, MPI, 0, list(range(ranks))], group(1, [], COMM_SELF)]
    pairs = [group(2, [rank, (rank + 1) % ranks]) for rank in range(ranks)]
    alone = [[identity, 0, 1, 0, 0] for identity in ids]
    same_id = [[len(ids), 0, 2, 0, 0]] * ranks
    definitions = {"Group": groups + pairs, "Comm": alone + same_id, "InterComm": []}
    found = find_candidates(definitions, places)
    assert sum(map(len, found.values())) == len(ids) + ranks
    chosen = select_communicators(found, {}, set(range(ranks)))
    assert len(chosen.number) == len(chosen.candidate) == ranks * (len(ids) + 1)
    assert {members for members in chosen.members if len(members) == 1} == {(rank,) for rank in range(ranks)}
    mine = chosen.communicator[chosen.find_candidates(7, np.array([0, 199, 200, 201, -1], dtype=np.int32))]
    meant = [chosen.members[number] if number >= 0 else None for number in mine.tolist()]
    assert meant == [(7,), (7,), (7, 8), None, None]


def test_the_largest_of_several_candidates_counts() -> None:
    twice = [WORLD, group(1, [0]), group(1, [0, 1, 2, 3])]
    assert members(resolved(twice, [(1, 1), (1, 1)]), 1, 0) == (0, 1, 2, 3)
    assert members(resolved(twice, [(1, 1)], {1: {0: 5, 1: 5, 2: 5, 3: 5}}), 1, 0) == (0, 1, 2, 3)


def test_collectives_of_a_single_process_speak_for_the_small_candidate() -> None:
    found = resolved([WORLD, group(1, [0]), group(1, [0, 1, 2, 3])], [(1, 1)], {1: {0: 3}})
    assert [members(found, 1, rank) for rank in range(4)] == [(0,), (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)]
    assert found[0].undecided_ids == ()


def test_collectives_that_do_not_agree_are_told() -> None:
    found = resolved([WORLD, group(1, [0]), group(1, [0, 1, 2, 3])], [(1, 1)], {1: {0: 3, 1: 3, 2: 2, 3: 3}})
    assert members(found, 1, 0) == (0, 1, 2, 3)
    assert found[0].undecided_ids == (1,)


def test_a_rank_without_events_does_not_speak_against_a_communicator() -> None:
    definitions = {"Group": [WORLD, group(1, [0]), group(1, [0, 1])], "Comm": [[1, 0, 1, 0, 0]], "InterComm": []}
    found = select_communicators(find_candidates(definitions, PLACES), {0: Counter({0: 4})}, {0})
    assert found.members[int(found.communicator[found.find_candidates(0, FIRST)[0]])] == (0, 1)
    assert found.undecided_ids == ()


def test_groups_may_be_defined_after_their_communicators(tmp_path: Path) -> None:
    with Archive(tmp_path / "late", ranks=2) as archive:
        archive.events().mpi_send(1, 1, archive.world, 0, 8)
    trace = read_trace(tmp_path)
    assert trace.communicators == ((0, 1),)
    found = resolved([group(4, [3, 1]), WORLD], [(9, 4)])
    assert members(found, 9, 1) == (3, 1)


def test_equal_memberships_are_one_communicator() -> None:
    found = resolved([WORLD, group(1, [0, 1, 2, 3]), group(2, [0, 1, 2, 3])], [(1, 1), (2, 2)])
    assert found[0].members == ((0, 1, 2, 3),)
    assert members(found, 1, 2) == members(found, 2, 2)


def test_partners_are_counted_within_the_communicator() -> None:
    found, _ = resolved([WORLD, group(7, [2, 0, 3])], [(5, 7)])
    candidate = found.find_candidates(0, FIRST.repeat(4))
    local = np.array([0, 2, 3, -1], dtype=np.int32)
    assert found.resolve_ranks(candidate, local).tolist() == [2, 3, -1, -1]


def test_a_process_that_was_not_recorded_keeps_its_place() -> None:
    world = [0, 0, COMM_LOCATIONS, MPI, 0, [IDS[0], 99, IDS[1]]]
    found, _ = resolved([world, group(7, [0, 1, 2])], [(5, 7)])
    assert found.members == ((0, 1),)
    local = np.array([0, 1, 2], dtype=np.int32)
    assert found.resolve_ranks(found.find_candidates(0, FIRST.repeat(3)), local).tolist() == [0, -1, 1]


def test_in_an_inter_communicator_partners_are_on_the_other_side() -> None:
    definitions = {"Group": [WORLD, group(1, [0, 2]), group(2, [3, 1])], "Comm": [], "InterComm": [[6, 0, 1, 2, 0, 0]]}
    found = select_communicators(
        find_candidates(definitions, PLACES), {0: Counter({0: 1, 1: 1, 2: 1, 3: 1})}, {0, 1, 2, 3}
    )
    local = np.array([0, 1], dtype=np.int32)
    partners = [found.resolve_ranks(found.find_candidates(rank, FIRST.repeat(2)), local).tolist() for rank in range(4)]
    assert partners == [[3, 1], [0, 2], [3, 1], [0, 2]]
    assert {frozenset(members) for members in found.members} == {frozenset({0, 1, 2, 3})}


@pytest.mark.parametrize("root", [2**32 - 1, 2**32 - 2, 2**32 - 3])
def test_roots_that_are_no_process_are_none(tmp_path: Path, root: int) -> None:
    with Archive(tmp_path / "roots", ranks=2) as archive:
        archive.events().mpi_collective_end(1, BARRIER, archive.world, root, 0, 0)
    assert read_trace(tmp_path).partner.tolist() == [-1]


def test_teams_of_threads_are_no_mpi_communicators(tmp_path: Path) -> None:
    with Archive(tmp_path / "teams", ranks=2, threads=2) as archive:
        archive.group(archive.locations[:2], LOCATIONS, OPENMP)
        threads = archive.comm_of(archive.group([0, 1], paradigm=OPENMP), "team")
        archive.events(0).thread_team_begin(1, threads)
        archive.events(2).mpi_send(1, 0, archive.world, 3, 8)
    trace = read_trace(tmp_path)
    assert [(x.rank, x.thread) for x in trace.locations] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert trace.comm.tolist()[0] == -1
    assert trace.communicators[trace.comm[1]] == (0, 1)
    assert trace.partner.tolist() == [-1, 0]
