"""The fast engine against the slow simulator, against sums by hand, and in deadlocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import replay_reference as reference
from hypothesis import given, settings
from replay_programs import Do, halo, networks, program, programs

from advisor_simulation.replay import contended_replay, critical_path, engine
from advisor_simulation.replay.engine import DeadlockError
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Op, Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.records import FloatArray

LATENCY, BANDWIDTH = 1e-5, 1e8


def fast(given_program: Program, network: Network) -> FloatArray:
    plan = engine.prepare_program(given_program, network)
    return engine.operation_ends(plan, engine.replay_steps(plan, network), given_program)


def ended(
    simulate: Callable[[Program, Network], FloatArray], drawn: Program, network: Network
) -> FloatArray | tuple[tuple[int, str], ...]:
    """Return the ends of the operations, or who waits where in a deadlock."""
    try:
        return simulate(drawn, network)
    except DeadlockError as error:
        return error.waiting


@settings(max_examples=300)
@given(programs(), networks())
def test_the_fast_engine_equals_the_slow_simulator(drawn: Program, network: Network) -> None:
    slow = reference.simulate_program(drawn, network)
    np.testing.assert_allclose(fast(drawn, network), slow, rtol=1e-12, atol=0)
    plan = engine.prepare_program(drawn, network)
    assert engine.replay_times(plan, [network])[0] == pytest.approx(slow.max(initial=0.0), rel=1e-12)


@settings(max_examples=200)
@given(programs(broken=True), networks())
def test_both_end_in_the_same_deadlock_or_agree(drawn: Program, network: Network) -> None:
    slow, fast_ = ended(reference.simulate_program, drawn, network), ended(fast, drawn, network)
    if isinstance(slow, tuple):
        assert fast_ == slow
    else:
        np.testing.assert_allclose(fast_, slow, rtol=1e-12, atol=0)


@settings(max_examples=100)
@given(programs(), networks())
def test_the_critical_path_counts_the_run_time(drawn: Program, network: Network) -> None:
    plan = engine.prepare_program(drawn, network)
    found = engine.replay_steps(plan, network)
    critical = critical_path.find_critical_path(plan, found, network, drawn)
    assert critical.begin_s + critical.seconds.sum() == pytest.approx(found.time_s, rel=1e-12, abs=1e-18)
    counted = critical.alpha + critical.beta * network.latency_s + critical.gamma / network.bandwidth
    assert counted == pytest.approx(found.time_s, rel=1e-12, abs=1e-18)


@settings(max_examples=100)
@given(programs(), networks())
def test_links_and_buses_for_everybody_change_nothing(drawn: Program, network: Network) -> None:
    np.testing.assert_allclose(
        contended_replay.replay_contended(drawn, network).end_s,
        reference.simulate_program(drawn, network),
        rtol=1e-12,
        atol=1e-18,
    )


def test_an_eager_message_by_hand() -> None:
    ping = program([[Do(Op.BURST, 1e-3), Do(Op.SEND, 1000, 0)], [Do(Op.RECV, link=0)]], [(0, 1)])
    ends = fast(ping, Network(LATENCY, BANDWIDTH))
    assert ends.tolist() == pytest.approx([1e-3, 1e-3 + LATENCY, 1e-3 + LATENCY + 1000 / BANDWIDTH])


def test_a_large_message_waits_for_its_receiver() -> None:
    late = program([[Do(Op.SEND, 1e6, 0)], [Do(Op.BURST, 5e-3), Do(Op.RECV, link=0)]], [(0, 1)])
    ends = fast(late, Network(LATENCY, BANDWIDTH, eager_bytes=1000))
    assert ends.tolist() == pytest.approx([5e-3 + LATENCY, 5e-3, 5e-3 + LATENCY + 1e-2])


def test_two_messages_on_one_link_go_one_after_the_other() -> None:
    fan = [[Do(Op.SEND, 1e6, 0)], [Do(Op.SEND, 1e6, 1)], [Do(Op.RECV, link=0), Do(Op.RECV, link=1)]]
    both = program(fan, [(0, 2), (1, 2)])
    free = contended_replay.replay_contended(both, Network(0.0, BANDWIDTH, eager_bytes=1e9))
    held = contended_replay.replay_contended(both, Network(0.0, BANDWIDTH, eager_bytes=1e9, links_in=1))
    assert (free.time_s, held.time_s) == pytest.approx((0.01, 0.02))
    assert held.resource_s.tolist() == pytest.approx([0.0, 0.01])
    assert contended_replay.replay_contended(
        both, Network(0.0, BANDWIDTH, eager_bytes=1e9, buses=1)
    ).time_s == pytest.approx(0.02)


def test_a_deadlock_names_ranks_and_calls() -> None:
    circle = [[Do(Op.RECV, link=1), Do(Op.SEND, 8, 0)], [Do(Op.RECV, link=0), Do(Op.SEND, 8, 1)]]
    with pytest.raises(DeadlockError, match=r"rank 0 in receive from rank 1; rank 1 in receive from rank 0"):
        fast(program(circle, [(0, 1), (1, 0)]), Network())


def test_a_step_of_halo_exchange_costs_what_its_parts_cost() -> None:
    network = Network(5e-6, 1e9)
    one = halo(16, 1, work_s=1e-3)
    longest = one.value[one.op == Op.BURST].max()
    assert fast(one, network).max() == pytest.approx(longest + 16 * 5e-6 + 4 * 8192e-9, rel=0.05)
    np.testing.assert_allclose(fast(one, network), reference.simulate_program(one, network), rtol=1e-12)


def test_compiled_loops_give_what_plain_ones_give(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="compiled loops need numba: pip install 'gapwatch[fast]'")
    from advisor_simulation.replay import numba_compiler

    some = halo(12, 20, size=4000.0)
    networks_ = [Network(1e-6 * i, 1e8 * (i + 1), eager_bytes=4096) for i in range(5)]
    held = Network(1e-6, 1e8, links_in=1, links_out=1)
    plan = engine.prepare_program(some, networks_[0])
    plain = (
        fast(some, networks_[0]),
        engine.replay_times(plan, networks_),
        contended_replay.replay_contended(some, held).end_s,
    )
    monkeypatch.setattr(numba_compiler, "WORTH_COMPILING", 0)
    plan = engine.prepare_program(some, networks_[0])
    quick = (
        fast(some, networks_[0]),
        engine.replay_times(plan, networks_),
        contended_replay.replay_contended(some, held).end_s,
    )
    for one, other in zip(plain, quick, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
