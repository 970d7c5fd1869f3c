"""Each kind of waiting on the smallest trace that shows it."""

from __future__ import annotations

import numpy as np
import pytest
from trace_builder import NUMBER, REGIONS, Line, build

from advisor.trace.events import Kind, Trace
from advisor.trace.matching import match_collectives, match_messages
from advisor.trace.nesting import pair_calls
from advisor.trace.teams import find_teams
from advisor.trace.waits import KINDS, split_waits

NOBODY = np.zeros(0, dtype=np.int64)


def waits_of(trace: Trace) -> dict[tuple[int, str, float], tuple[float, str, int, bool]]:
    """Return (location, call, start) -> (seconds, kind, partner, estimated)."""
    calls = pair_calls(trace)
    teams = find_teams(trace, calls)
    waiting = split_waits(trace, calls, match_collectives(trace, calls), match_messages(trace, calls), teams, NOBODY)
    return {
        (int(calls.location[c]), REGIONS[calls.region[c]].name, float(calls.start_s[c])): (
            pytest.approx(float(waiting.wait_s[c])),
            KINDS[waiting.kind[c]],
            int(waiting.partner[c]),
            bool(waiting.estimated[c]),
        )
        for c in range(len(calls.region))
    }


def test_a_barrier_waits_for_the_last_to_enter() -> None:
    left = Line(0).collective(1.0, 5.0, "MPI_Barrier")
    right = Line(1).collective(4.0, 5.5, "MPI_Barrier")
    found = waits_of(build(left, right))
    assert found[0, "MPI_Barrier", 1.0] == (3.0, "barrier", 1, False)
    assert found[1, "MPI_Barrier", 4.0] == (0.0, "none", -1, False)


def test_a_root_that_comes_last_to_a_reduction_makes_the_others_wait() -> None:
    lines = [Line(0).collective(3.0, 3.2, "MPI_Reduce", root=0), Line(1).collective(1.0, 3.4, "MPI_Reduce", root=0)]
    assert waits_of(build(*lines))[1, "MPI_Reduce", 1.0] == (2.0, "late root", 0, False)
    # whose data were taken at once has not waited
    lines = [Line(0).collective(3.0, 3.2, "MPI_Reduce", root=0), Line(1).collective(1.0, 1.4, "MPI_Reduce", root=0)]
    assert waits_of(build(*lines))[1, "MPI_Reduce", 1.0][0] == pytest.approx(0.0)


def test_receivers_of_a_broadcast_wait_for_the_root_and_the_root_for_nobody() -> None:
    lines = [Line(0).collective(3.0, 3.2, "MPI_Bcast", root=0), Line(1).collective(1.0, 3.4, "MPI_Bcast", root=0)]
    found = waits_of(build(*lines))
    assert found[1, "MPI_Bcast", 1.0] == (2.0, "late root", 0, False)
    assert found[0, "MPI_Bcast", 3.0][0] == 0.0


def test_only_the_root_of_a_reduction_waits() -> None:
    lines = [Line(0).collective(1.0, 3.4, "MPI_Reduce", root=0), Line(1).collective(3.0, 3.2, "MPI_Reduce", root=0)]
    found = waits_of(build(*lines))
    assert found[0, "MPI_Reduce", 1.0] == (2.0, "collective", 1, False)
    assert found[1, "MPI_Reduce", 3.0][0] == 0.0


def test_ranks_that_pass_on_few_bytes_wait_for_those_that_came_before_they_left() -> None:
    """Rank 2 reduces what rank 3 brings late, and nobody below rank 1; a large block may take as long by itself."""
    times = {0: (1.0, 3.6), 1: (1.1, 1.2), 2: (1.0, 3.2), 3: (3.0, 3.1)}
    lines = [Line(rank).collective(*each, "MPI_Reduce", root=0) for rank, each in times.items()]
    found = waits_of(build(*lines))
    assert found[2, "MPI_Reduce", 1.0] == (2.0, "collective", 3, False)
    assert [found[rank, "MPI_Reduce", times[rank][0]][0] for rank in (1, 3)] == [0.0, 0.0]
    lines = [Line(rank).collective(*each, "MPI_Bcast", root=1) for rank, each in times.items()]
    assert waits_of(build(*lines))[2, "MPI_Bcast", 1.0] == (2.0, "collective", 3, False)
    large = [replace_sizes(line, 1 << 20) for line in lines]
    assert waits_of(build(*large))[2, "MPI_Bcast", 1.0] == (pytest.approx(0.1), "late root", 1, False)


def replace_sizes(line: Line, size: int) -> Line:
    rows = [(*row[:6], size if row[1] == Kind.COLLECTIVE else row[6], row[7]) for row in line.rows]
    return Line(line.rank, rows=rows)


def test_a_scan_waits_for_the_ranks_before() -> None:
    starts = [2.0, 1.0, 3.0, 2.5]
    found = waits_of(build(*(Line(r).collective(s, 4.0, "MPI_Scan") for r, s in enumerate(starts))))
    assert [found[r, "MPI_Scan", s][0] for r, s in enumerate(starts)] == [0.0, 1.0, 0.0, 0.5]


def test_a_probe_waits_for_the_message_that_the_next_call_receives() -> None:
    sender = Line(0).send(3.0, 3.1, to=1)
    receiver = Line(1).call(1.0, 3.2, "MPI_Probe").receive(3.2, 3.3, source=0).call(4.0, 6.0, "MPI_Probe")
    found = waits_of(build(sender, receiver))
    assert found[1, "MPI_Probe", 1.0] == (2.0, "late sender", 0, False)
    assert found[1, "MPI_Recv", 3.2][0] == 0.0
    assert found[1, "MPI_Probe", 4.0][1] != "late sender", "nothing was received after it"


def test_a_poll_waits_while_another_rank_works() -> None:
    """Rank 1 polls from 1 to 9; rank 0 works until 5, waits in a barrier until 9, and has polled from 5 to 6 before."""
    poller = Line(1).call(0.5, 0.6, "MPI_Iprobe").call(1.0, 9.0, "MPI_Iprobe").collective(9.0, 9.1, "MPI_Barrier")
    worker = Line(0).call(5.0, 6.0, "MPI_Iprobe").collective(7.0, 9.2, "MPI_Barrier")
    found = waits_of(build(worker, poller))
    assert found[0, "MPI_Iprobe", 5.0][0] == pytest.approx(0.0), "the other one polls as well"
    seconds, kind, _, estimated = found[1, "MPI_Iprobe", 1.0]
    assert (kind, estimated) == ("unmatched", True)
    assert seconds == pytest.approx(8.0 - 0.1 - 1.0 - 2.0), "nobody works from 5 to 6, nor from 7 to 9"
    alone = waits_of(build(Line(0).call(1.0, 1.1, "MPI_Iprobe").call(2.0, 4.0, "MPI_Iprobe")))
    assert alone[0, "MPI_Iprobe", 2.0][0] == pytest.approx(1.9)


def test_a_receive_waits_until_its_send_starts() -> None:
    found = waits_of(build(Line(0).send(4.0, 4.1, 1), Line(1).receive(1.0, 4.5, 0)))
    assert found[1, "MPI_Recv", 1.0] == (3.0, "late sender", 0, False)


def test_a_large_send_waits_until_its_receive_is_posted_and_a_small_one_does_not() -> None:
    found = waits_of(build(Line(0).send(1.0, 4.5, 1, size=100_000), Line(1).receive(4.0, 4.6, 0, size=100_000)))
    assert found[0, "MPI_Send", 1.0] == (3.0, "late receiver", 1, False)
    found = waits_of(build(Line(0).send(1.0, 4.5, 1, size=100), Line(1).receive(4.0, 4.6, 0, size=100)))
    assert found[0, "MPI_Send", 1.0][0] == 0.0


def test_a_wait_call_waits_for_the_latest_of_its_messages() -> None:
    line = Line(1)
    for request, start in ((7, 0.1), (8, 0.2)):
        line.enter(start, "MPI_Irecv").add(start + 0.01, Kind.IRECV_POST, NUMBER["MPI_Irecv"], request=request)
        line.leave(start + 0.02, "MPI_Irecv")
    line.enter(1.0, "MPI_Wait")
    for request in (8, 7):
        line.add(6.0, Kind.IRECV, NUMBER["MPI_Wait"], 0, 0, size=8, tag=request, request=request)
    line.leave(6.1, "MPI_Wait")
    sender = Line(0).send(2.0, 2.1, 1, tag=7).send(5.0, 5.1, 1, tag=8)
    assert waits_of(build(sender, line))[1, "MPI_Wait", 1.0] == (4.0, "late sender", 0, False)


def test_without_a_partner_the_shortest_call_of_the_name_is_the_transfer() -> None:
    line = Line(0).call(0.0, 0.5, "MPI_Sendrecv").call(1.0, 3.0, "MPI_Sendrecv")
    found = waits_of(build(line))
    assert found[0, "MPI_Sendrecv", 1.0] == (1.5, "unmatched", -1, True)
    assert found[0, "MPI_Sendrecv", 0.0][0] == 0.0


def test_threads_wait_at_the_barrier_that_ends_their_region() -> None:
    master, worker = Line(0), Line(0, thread=1)
    for line, begin, arrive in ((master, 1.0, 2.0), (worker, 1.1, 4.0)):
        if line is master:
            line.add(0.9, Kind.FORK)
        line.enter(begin, "parallel").call(arrive, 4.1, "implicit barrier").leave(4.2, "parallel")
    found = waits_of(build(master, worker))
    assert found[0, "implicit barrier", 2.0] == (2.0, "thread barrier", 1, False)
    assert found[1, "implicit barrier", 4.0][0] == 0.0


def test_receives_that_are_never_seen_to_complete_wait_for_the_send_of_their_turn() -> None:
    line = Line(1)
    for turn, begin in enumerate((0.0, 10.0)):
        line.enter(begin, "MPI_Irecv").add(begin, Kind.IRECV_POST, NUMBER["MPI_Irecv"], request=turn)
        line.leave(begin + 0.1, "MPI_Irecv").call(begin + 1.0, begin + 6.0, "MPI_Wait")
    sender = Line(0).send(5.0, 5.1, 1).send(12.0, 12.1, 1)
    found = waits_of(build(sender, line))
    assert found[1, "MPI_Wait", 1.0] == (4.0, "late sender", 0, True)
    assert found[1, "MPI_Wait", 11.0] == (1.0, "late sender", 0, True)


def test_messages_whose_other_end_is_missing_are_not_paired_with_those_of_another_size() -> None:
    sender = Line(0)
    for start in (0.0, 1.0):
        sender.enter(start, "MPI_Isend").add(start, Kind.ISEND, NUMBER["MPI_Isend"], 0, 1, size=8192)
        sender.leave(start + 0.1, "MPI_Isend")
    trace = build(sender.send(5.0, 5.1, 1, size=1), Line(1).receive(2.0, 5.2, 0, size=1))
    assert waits_of(trace)[1, "MPI_Recv", 2.0] == (3.0, "late sender", 0, False)


def test_a_receive_posted_for_more_than_it_gets_is_paired() -> None:
    trace = build(Line(0).send(4.0, 4.1, 1, size=100), Line(1).receive(1.0, 4.5, 0, size=4096))
    assert waits_of(trace)[1, "MPI_Recv", 1.0] == (3.0, "late sender", 0, False)
