"""The members of communicators of many processes: kept once, and told apart as their members count them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from advisor.formats.recording.communicators import Communicators
from advisor.trace.recordings.layout import RECORD
from advisor.trace.recordings.processes import Process, compact_members, share_members


def test_ranks_at_equal_distances_are_a_range_and_equal_lists_are_equal_values() -> None:
    for ranks in ([0, 1, 2, 3], [7], [1, 5, 9], [3, 2, 1], [4, 9]):
        assert isinstance(compact_members(ranks), range)
        assert list(compact_members(ranks)) == ranks
    for ranks in ([], [0, 2, 1], [5, 5], [-1, -1, 0]):
        assert compact_members(ranks) == tuple(ranks)


def test_processes_share_the_lists_of_their_members() -> None:
    lists: dict[Any, Any] = {}
    mixed = [(0, 3, 1, 2) for _ in range(2)]
    first, second = (share_members(Process(Path(str(n)), communicators={1: mixed[n]}), lists) for n in range(2))
    assert first.communicators[1] is second.communicators[1]


def test_partners_are_ranks_of_the_world_in_each_communicator() -> None:
    own, other = (
        Process(Path(name), communicators={1: range(4), 2: range(4), 4: members}, remotes={4: remote})
        for name, members, remote in (("a", range(2), (3, 2)), ("b", (3, 2), range(2)))
    )
    comms = Communicators((own, other))
    assert comms.members == ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
    assert comms.members[0] is comms.members[1], "one list for equal ones"
    records = np.zeros(6, dtype=RECORD)
    records["comm"], records["partner"] = [1, 2, 4, 4, 3, 9], [3, 0, 0, 2, 0, 0]
    for process, partners in ((own, [3, 0, 3, -1, -1, -1]), (other, [3, 0, 0, -1, -1, -1])):
        thread: Any = SimpleNamespace(process=process)
        assert comms.communicator_numbers(thread, records).tolist() == [0, 1, 2, 2, -1, -1]
        assert comms.partner_ranks(thread, records).tolist() == partners
