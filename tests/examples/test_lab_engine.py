"""The laboratory's simulator: worked examples by hand, properties, and the project's replay as an independent check."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from lab.archive import write_archive
from lab.collectives import Pieces
from lab.costs import Network, Storage, collective_s
from lab.engine import DeadlockError, Engine, Machine
from lab.exchanges import Exchange, Wavefront, graph, grid, stencil
from lab.loads import KINDS, Load
from lab.operations import (
    ANY,
    Access,
    Collective,
    Critical,
    EndAccess,
    EndExposure,
    Enter,
    Expose,
    Fence,
    Irecv,
    Isend,
    Parallel,
    Put,
    Recv,
    Send,
    Sendrecv,
    StartCollective,
    Transfer,
    Wait,
    Work,
)
from lab.teams import schedule
from lab.world import Code, run

from advisor.formats import otf2
from advisor_simulation.replay import conversion, network, outcome
from advisor_simulation.replay.collectives import TODAY

if TYPE_CHECKING:
    from lab.operations import Operation, Program

#: A network on which hand calculations are easy: 1 ms latency, 1 MB/s, 0.1 ms at each end, eager up to 1000 bytes.
SLOW = Network(1e-3, 1e6, 1e-3, 1e6, 1e-4, 1000)


def program(*steps: Operation) -> Program:
    return (step for step in steps)


def lasts(*programs: Program, machine: Machine | None = None) -> float:
    return Engine(len(programs), machine or Machine(SLOW)).run(programs)


def events(*programs: Program, kind: str = "leave", machine: Machine | None = None) -> list[list[float]]:
    """Return when each rank leaves its calls."""
    engine = Engine(len(programs), machine or Machine(SLOW), record=True)
    engine.run(programs)
    return [[time for time, what, _ in log if what == kind] for log in engine.log]


def test_an_eager_send_is_over_when_it_is_copied_and_arrives_by_itself() -> None:
    # the sender: overhead 0.1 ms + 500 B at 1 MB/s = 0.6 ms; at the receiver one latency later, and its overhead
    assert events(program(Send(1, 500)), program(Recv(0))) == [[pytest.approx(0.6e-3)], [pytest.approx(1.7e-3)]]


def test_an_eager_message_that_is_there_costs_the_receiver_its_overhead_only() -> None:
    ends = events(program(Send(1, 500)), program(Work(1.0), Recv(0)))
    assert ends[1] == [pytest.approx(1.0 + 1e-4)]


def test_a_rendezvous_send_waits_for_its_receiver() -> None:
    # posted at 1 s; one latency back to the sender, 5 ms of data, one latency to arrive, and the overhead
    ends = events(program(Send(1, 5000)), program(Work(1.0), Recv(0)))
    assert ends[0] == [pytest.approx(1.0 + 1e-3 + 5e-3)]
    assert ends[1] == [pytest.approx(1.0 + 1e-3 + 5e-3 + 1e-3 + 1e-4)]


def test_a_synchronous_send_of_any_size_waits() -> None:
    ends = events(program(Send(1, 10, synchronous=True)), program(Work(1.0), Recv(0)))
    assert ends[0][0] > 1.0


def test_a_rendezvous_goes_on_while_both_sides_compute() -> None:
    # announced at 0.1 ms + 1 ms; then 1 ms + 5 ms + 1 ms: there at 8.1 ms, long before both have computed
    sender = program(Isend(1, 5000, 0), Work(1.0), Wait((0,)))
    receiver = program(Irecv(0, 0), Work(1.0), Wait((0,)))
    ends = events(sender, receiver)
    assert ends[0][-1] == pytest.approx(1.0001)
    assert ends[1][-1] == pytest.approx(1.0002)


def test_sends_of_large_messages_to_each_other_deadlock() -> None:
    with pytest.raises(DeadlockError, match="rank 0"):
        lasts(program(Send(1, 5000), Recv(1)), program(Send(0, 5000), Recv(0)))
    assert lasts(program(Sendrecv(1, 5000, 1)), program(Sendrecv(0, 5000, 0))) < 0.01


def test_messages_of_a_pair_do_not_overtake() -> None:
    got: list[float] = []

    def receiver() -> Program:
        yield Recv(0)
        got.append(1)
        yield Recv(0)

    engine = Engine(2, Machine(SLOW), record=True)
    engine.run([program(Isend(1, 900, 0), Isend(1, 10, 1), Wait((0, 1))), receiver()])
    sizes = [values[2] for _, kind, values in engine.log[1] if kind == "recv"]
    assert sizes == [900, 10]


def test_a_receive_from_anybody_takes_the_first_to_come() -> None:
    sources: list[int | None] = []

    def master() -> Program:
        for _ in range(2):
            source = yield Recv(ANY)
            sources.append(source)

    lasts(master(), program(Work(0.2), Send(0, 10)), program(Work(0.1), Send(0, 10)))
    assert sources == [2, 1]


def test_links_that_are_busy_delay_messages() -> None:
    # three ranks on hosts of their own send 5000 B each to the fourth: with contention one after the other
    def programs() -> list[Program]:
        receiver = program(Irecv(0, 0), Irecv(1, 1), Irecv(2, 2), Wait((0, 1, 2)))
        return [*(program(Send(3, 5000)) for _ in range(3)), receiver]

    free = lasts(*programs(), machine=Machine(SLOW, ranks_per_host=1))
    busy = lasts(*programs(), machine=Machine(replace(SLOW, contention=True), ranks_per_host=1))
    assert busy - free == pytest.approx(2 * 5e-3, rel=0.1)


@pytest.mark.parametrize(
    ("call", "ranks", "seconds"),
    [
        ("MPI_Barrier", 8, 3 * 1.1e-3),
        ("MPI_Allreduce", 8, 6 * (1.1e-3 + 1e-4)),
        ("MPI_Bcast", 5, 3 * (1.1e-3 + 1e-4)),
        ("MPI_Alltoall", 4, 1e-3 + 3 * (1e-4 + 1e-4)),
        ("MPI_Gather", 4, 2 * 1.1e-3 + 3 * 1e-4),
        ("MPI_Barrier", 1, 0.0),
    ],
)
def test_the_cost_of_a_collective(call: str, ranks: int, seconds: float) -> None:
    assert collective_s(call, 100, ranks, 1e-3, 1e6, 1e-4) == pytest.approx(seconds)


def test_nobody_leaves_an_allreduce_before_the_last_has_entered() -> None:
    ends = events(*(program(Work(0.1 * rank), Collective("MPI_Allreduce", 100)) for rank in range(4)))
    assert [each[0] for each in ends] == [pytest.approx(0.3 + 4 * 1.2e-3)] * 4


def test_a_broadcast_waits_for_its_root_only() -> None:
    ends = events(*(program(Work(0.1 * rank), Collective("MPI_Bcast", 100, 1)) for rank in range(4)))
    assert ends[0][0] == ends[1][0] == pytest.approx(0.1 + 2 * 1.2e-3)
    assert ends[3][0] == pytest.approx(0.3 + 1e-4)


def test_a_reduction_holds_its_root_only() -> None:
    ends = events(*(program(Work(0.1 * rank), Collective("MPI_Reduce", 100, 0)) for rank in range(4)))
    assert ends[0][0] == pytest.approx(0.3 + 2 * 1.2e-3)
    assert ends[1][0] == pytest.approx(0.1 + 1e-4 + 1e-4)


def test_a_nonblocking_allreduce_goes_on_beside_work() -> None:
    steps = [program(StartCollective("MPI_Allreduce", 100, 0), Work(0.5), Wait((0,))) for _ in range(4)]
    assert lasts(*steps) == pytest.approx(0.5 + 1e-4)


def test_a_file_server_does_one_operation_at_a_time() -> None:
    machine = Machine(SLOW, Storage(operation_s=0.1, bandwidth=1e6, servers=1))
    assert lasts(*(program(Transfer("write", "f", 100000)) for _ in range(3)), machine=machine) == pytest.approx(0.6)
    wide = replace(machine, storage=replace(machine.storage, servers=4))
    assert lasts(*(program(Transfer("write", "f", 100000)) for _ in range(3)), machine=wide) == pytest.approx(0.2)
    locked = [program(Transfer("write", "f", 100000, exclusive=True)) for _ in range(3)]
    assert lasts(*locked, machine=wide) == pytest.approx(0.6)


def test_threads_wait_for_a_lock_and_for_each_other() -> None:
    # fork 3 us; the lock is held three times for 0.1 s; the last to hold it computes 0.2 s more; join 2 us
    def thread() -> Program:
        yield Critical("main.c:7", 0.1)
        yield Work(0.2)

    def master() -> Program:
        yield Parallel("main.c:5", tuple(thread() for _ in range(3)))

    engine = Engine(1, Machine(SLOW), threads=3, record=True)
    assert engine.run([master()]) == pytest.approx(0.5 + 5e-6)
    assert [sum(kind == "enter" for _, kind, _ in log) for log in engine.log] == [4, 4, 4]


def test_cores_are_shared_in_turns() -> None:
    two = Machine(SLOW, ranks_per_host=4, cores=2)
    assert lasts(*(program(Work(0.1)) for _ in range(4)), machine=two) == pytest.approx(0.2)
    assert lasts(program(Work(0.1)), program(Work(0.1)), program(), program(), machine=two) == pytest.approx(0.1)


def test_who_goes_on_computing_keeps_its_core() -> None:
    one = Machine(SLOW, ranks_per_host=2, cores=1)
    first, second = Enter("a"), Enter("b")
    engine = Engine(2, one, record=True)
    engine.run([program(Work(0.001), first, Work(0.001), second), program(Work(0.001))])
    assert [event[0] for event in engine.log[0]] == pytest.approx([0.001, 0.002])


def test_static_and_dynamic_schedules() -> None:
    assert schedule([4, 1, 1, 1, 1], 2, "static") == [6, 2]
    assert schedule([4, 1, 1, 1, 1], 2, "dynamic", take_s=0) == [4, 4]
    assert schedule([1, 1, 4], 2, "dynamic", take_s=0.5) == [1.5 + 4.5, 1.5]


def test_a_pipeline_fills_once() -> None:
    # 4 ranks, 5 blocks of 10 ms: (4 - 1 + 5) x 10 ms
    fast = Machine(Network(1e-9, 1e15, 1e-9, 1e15, 0.0))
    code = Code(1, "wave", 4, 1, (Wavefront(name="w", work_s=0.05, blocks=5),), machine=fast, start_s=0.0)
    assert run(code).wall_s == pytest.approx(0.08 + 1e-4, rel=1e-4)


def test_neighbours_are_mutual() -> None:
    for ranks in (1, 2, 6, 7, 12, 27):
        for dimensions in (1, 2, 3):
            assert len(grid(ranks, dimensions)) == dimensions
            for rank in range(ranks):
                for way, (to, source, _) in enumerate(stencil(ranks, dimensions, rank, True)):
                    assert to < 0 or stencil(ranks, dimensions, to, True)[way][1] == rank
                    assert source < 0 or stencil(ranks, dimensions, source, True)[way][0] == rank
        edges = graph(ranks, 4, 3)
        assert all((rank, edge) in edges[other] for rank in range(ranks) for other, edge in edges[rank])


@given(
    st.sampled_from(KINDS), st.floats(0, 0.9), st.integers(1, 20), st.integers(1, 12), st.integers(0, 99),
    st.sampled_from(["", "measured", "demand", "repeated"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_distributions_and_remedies_conserve_work(
    kind: str, strength: float, ranks: int, iterations: int, seed: int, remedy: str
) -> None:
    shares = Load(kind, strength, seed, remedy, 3).shares(ranks, iterations)
    assert shares.shape == (ranks, iterations)
    assert shares.sum() == pytest.approx(ranks * iterations)
    assert (shares >= 0).all()
    if remedy == "measured":
        assert shares.sum(axis=1) == pytest.approx(shares.sum() / ranks)


STYLES = st.sampled_from(["nonblocking", "sendrecv", "blocking", "chain"])


@given(STYLES, st.integers(0, 3), st.integers(2, 9), st.sampled_from([100, 20000]), st.integers(1, 3), st.booleans())
@settings(max_examples=40, deadline=None)
def test_virtual_time_is_causal(
    style: str, dimensions: int, ranks: int, size: int, fragments: int, synchronous: bool
) -> None:
    phase = Exchange(
        name="p", work_s=1e-3, load=Load("random", 0.3, 1), style=style, dimensions=dimensions, size_B=size,
        fragments=fragments, synchronous=synchronous, inner=0.3, boundary=0.2, late=50, close="MPI_Allreduce",
    )  # fmt: skip
    made = run(Code(1, "p", ranks, 3, (phase,)), record=True)
    sent: dict[tuple[int, int, int], list[float]] = {}
    for rank, log in enumerate(made.log):
        times = [time for time, kind, _ in log if kind in ("enter", "leave")]
        assert times == sorted(times)
        for time, kind, values in log:
            if kind in ("send", "isend"):
                sent.setdefault((rank, values[0], values[1]), []).append(time)
    received = 0
    for rank, log in enumerate(made.log):
        for time, kind, values in log:
            if kind in ("recv", "irecv"):
                received += 1
                assert time > sent[values[0], rank, values[1]].pop(0)
    assert received
    assert not any(sent.values())


@pytest.mark.parametrize("other", [Network(1e-6, 1e10, 1e-6, 1e10, 0.0), Network(5e-5, 5e8, 5e-5, 5e8, 0.0)])
@pytest.mark.parametrize(
    "phase",
    [
        Exchange(name="p", work_s=2e-3, load=Load("heavy", 0.3, 2), dimensions=2, size_B=4000),
        Exchange(name="p", work_s=2e-3, style="blocking", dimensions=1, size_B=4000, load=Load("random", 0.2, 1)),
        Exchange(name="p", work_s=2e-3, inner=0.4, late=50, size_B=30000),
        Exchange(name="p", work_s=2e-3, style="chain", dimensions=1, inner=0.3, size_B=4000),
        Wavefront(name="p", work_s=4e-3, blocks=4, size_B=4000),
        Pieces(name="p", work_s=2e-3, spread=0.4, call="MPI_Barrier"),
    ],
    ids=["halo", "blocking", "late", "chain", "wavefront", "barriers"],
)
def test_the_replay_of_a_trace_agrees_with_the_simulated_run(phase: Exchange, other: Network, tmp_path: Path) -> None:
    """Two simulators that share nothing: a trace made on one network and replayed on another, and a run on that."""
    code = Code(3, "p", 6, 10, (phase,), machine=Machine(Network(1e-5, 1e9, 1e-5, 1e9, 0.0)))
    made = run(code, record=True)
    path = write_archive(tmp_path / "t", made.log, ranks=6, threads=1, ranks_per_host=None, sources=code.sources())
    point = network.Network(
        latency_s=other.latency_s, bandwidth=other.bandwidth, eager_bytes=other.eager_B, startup="wire",
        collectives=TODAY,
    )  # fmt: skip
    replayed = outcome.replay_program(conversion.convert_trace(otf2.read_trace(path)), point)
    truth = run(replace(code, machine=Machine(other))).wall_s
    assert replayed.time_s == pytest.approx(truth, rel=0.05)


def test_a_group_meets_without_the_others() -> None:
    pair = Collective("MPI_Barrier", 0, -1, (0, 1))
    ends = events(
        program(Work(0.5), pair), program(Work(1.0), pair), program(Work(3.0), Collective("MPI_Barrier", 0, -1, (2,)))
    )
    step_s = 1e-3 + 1e-4  # a latency and an overhead for the one level of two ranks, none for one
    assert [each[0] for each in ends] == pytest.approx([1.0 + step_s, 1.0 + step_s, 3.0 + 1e-4])


def test_a_fence_waits_for_all_ranks_and_for_what_was_put() -> None:
    ends = events(program(Put(1, 5000), Fence()), program(Work(0.001), Fence()))
    assert [each[-1] for each in ends] == pytest.approx([1e-4 + 1e-3 + 5e-3] * 2)  # overhead, latency, bytes
    late = events(program(Put(1, 5000), Fence()), program(Work(0.02), Fence()))
    assert [each[-1] for each in late] == pytest.approx([0.02 + 1e-3 + 1e-4] * 2)


def test_neighbours_order_what_is_put_without_the_others() -> None:
    origin = program(Access((1,)), Put(1, 5000), EndAccess((1,)))
    target = program(Work(0.01), Expose((0,)), EndExposure((0,)))
    first, second, third = events(origin, target, program(Work(1.0), Collective("MPI_Barrier", 0, -1, (2,))))
    begin = 0.01 + 1e-3 + 1e-4  # the notice of the target comes a latency later, MPI_Win_start takes an overhead
    assert first[0] == pytest.approx(begin)
    there = begin + 1e-4 + 1e-3 + 5e-3
    assert second[-1] == pytest.approx(there + 1e-4)
    assert third[0] > 1.0
