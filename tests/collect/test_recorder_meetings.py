"""Exchanges among neighbours, fences and the making of communicators under the recorder: who waits for whom."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from recorded_runs import LIBRARIES, compile_program, record_run

from advisor.formats import recording
from advisor.trace import matching, nesting
from advisor.trace.events import Role

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 5
BLOCKING = ("alltoall", "allgather", "allgatherv", "alltoallv", "alltoallw")


@pytest.mark.parametrize("library", LIBRARIES)
def test_exchanges_among_neighbours_are_their_messages(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler, "-Wno-stringop-overflow"), "neighbours.c")
    folder, out, err = record_run(tmp_path, *launcher, "-n", "3", str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    calls = nesting.pair_calls(trace)
    found = matching.match_messages(trace, calls)
    messages = int(out.split()[0])
    assert (len(found.send), found.unmatched_ends) == (messages, 0)
    names = [trace.regions[region].name for region in calls.region.tolist()]
    receiving = Counter(names[call] for call in found.receive.tolist())
    each = {f"MPI_Neighbor_{kind}": messages // 8 for kind in BLOCKING}
    assert receiving == {**each, "MPI_Wait": messages // 8, "MPI_Waitall": 2 * messages // 8}
    assert set(found.size.tolist()) == {8, 800}
    inside = [call for call, name in enumerate(names) if name.startswith("MPI_Neighbor")]
    assert {trace.regions[calls.region[call]].role for call in inside} == {Role.SENDRECV}


@pytest.mark.parametrize("library", LIBRARIES)
def test_ranks_meet_where_they_make_communicators_and_in_fences(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler,), "meetings.c")
    folder, _, err = record_run(tmp_path, *launcher, "-n", "4", str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    calls = nesting.pair_calls(trace)
    joint = matching.match_collectives(trace, calls)
    assert joint.unmatched == 0
    found = Counter(
        (trace.regions[calls.region[joint.call[first]]].name, tuple(sorted(trace.communicators[comm])))
        for first, comm in zip(joint.first[:-1].tolist(), joint.comm.tolist(), strict=True)
    )
    everybody, some = (0, 1, 2, 3), (0, 1, 2)
    assert {found["MPI_Comm_dup", members] for members in (everybody, some)} == {ROUNDS}
    assert found["MPI_Win_fence", some] == ROUNDS + 1
    roles = {region.name: region.role for region in trace.regions}
    assert (roles["MPI_Comm_dup"], roles["MPI_Win_fence"]) == (Role.ALL_TO_ALL, Role.BARRIER)
    assert roles["MPI_Comm_free"] == Role.COMM_OTHER
