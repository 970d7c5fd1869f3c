"""Offsets and drifts that were put on a trace are found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from disturbed_clocks import constraints_of, disturbed, error_s, solved, stencil
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import Line, build

from advisor.trace import clocks, locations
from advisor.trace.clock_constraints import are_clocks_consistent, collect_constraints, combine_constraints
from advisor.trace.clock_islands import largest_violation
from advisor.trace.clock_observations import observe_domains
from advisor.trace.matching import match_collectives, match_messages
from advisor.trace.nesting import pair_calls

if TYPE_CHECKING:
    from advisor.trace.events import Trace


def barriers(ranks: int, rounds: int, spread_s: float, lag_s: float) -> Trace:
    """Return rounds of one second, each closed by a barrier that everybody leaves ``lag_s`` after the last enter."""
    generator = np.random.default_rng(rounds * 100 + ranks)
    lines = [Line(rank) for rank in range(ranks)]
    for turn in range(1, rounds + 1):
        enters = turn + generator.random(ranks) * spread_s
        for line, enter in zip(lines, enters, strict=True):
            line.collective(float(enter), float(enters.max()) + lag_s, "MPI_Barrier")
    return build(*lines)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=5), st.integers(1, 8))
@settings(deadline=None)
def test_offsets_are_found_to_within_the_interval_left(offsets: list[float], rounds: int) -> None:
    clean = barriers(len(offsets), rounds, spread_s=0.3, lag_s=1e-4)
    offset = np.array(offsets) - offsets[0]
    correction, aligned = solved(disturbed(clean, offset, np.zeros(len(offsets))))
    assert correction.solved.all()
    error = np.abs(correction.offset_s + offset)
    allowed = np.where(correction.offset_s == 0, np.inf, correction.uncertainty_s + 1e-9)
    assert (error <= allowed).all()
    assert not violated(aligned)


@given(st.lists(st.floats(-2e-4, 2e-4), min_size=2, max_size=4))
@settings(deadline=None, max_examples=20)
def test_drifts_are_found_where_offsets_do_not_do(drifts: list[float]) -> None:
    clean = barriers(len(drifts), 60, spread_s=0.3, lag_s=1e-5)
    drift = np.array(drifts) - drifts[0]
    correction, aligned = solved(disturbed(clean, np.arange(len(drifts)) * 0.05, drift))
    assert correction.solved.all()
    assert not violated(aligned)
    if (np.abs(drift) > 1e-6).any():
        # no clock but the first is known, so times may differ by what the barriers leave open
        assert np.abs(aligned.time_s - clean.time_s).max() < 2e-3


def violated(trace: Trace) -> bool:
    """Return whether anybody leaves a barrier before everybody has entered it."""
    calls = pair_calls(trace)
    joint = match_collectives(trace, calls)
    for first, last in zip(joint.first[:-1], joint.first[1:], strict=True):
        group = joint.call[first:last]
        if calls.start_s[group].max() > calls.end_s[group].min() + 1e-9:
            return True
    return False


def test_clocks_that_agree_are_left_alone() -> None:
    trace = barriers(3, 5, spread_s=0.2, lag_s=1e-4)
    correction, aligned = solved(trace)
    assert correction.solved.all()
    assert np.array_equal(aligned.time_s, trace.time_s)
    assert clocks.describe_clocks(correction, np.arange(3)) is None


@given(st.floats(-1e-3, 1e-3), st.integers(1, 4), st.sampled_from(["MPI_Bcast", "MPI_Reduce", "MPI_Barrier"]))
@settings(deadline=None)
def test_clocks_agree_if_no_constraint_is_broken(offset: float, rounds: int, name: str) -> None:
    left, right = Line(0), Line(1)
    for turn in range(rounds):
        for line in (left, right):
            line.collective(2 * turn + 1.0, 2 * turn + 1.0005, name, root=0)
        left.send(2 * turn + 2.0, 2 * turn + 2.0005, 1)
        right.receive(2 * turn + 2.0, 2 * turn + 2.0005, 0)
    trace = disturbed(build(left, right), np.array([0.0, offset]), np.zeros(2))
    calls = pair_calls(trace)
    joint, sent = match_collectives(trace, calls), match_messages(trace, calls)
    observed = observe_domains(collect_constraints(trace, calls, joint, sent), np.arange(2), trace.ticks_s)
    assert are_clocks_consistent(calls, joint, sent, trace.ticks_s) == (largest_violation(observed) == 0)


def test_messages_alone_tie_two_clocks_together() -> None:
    left, right = Line(0), Line(1)
    left.send(1.0, 1.001, 1).receive(2.0, 2.3, 1)
    right.receive(1.0, 1.1, 0).send(2.2, 2.201, 0)
    trace = disturbed(build(left, right), np.array([0.0, 7.0]), np.zeros(2))
    correction, _ = solved(trace)
    assert correction.solved.all()
    # receive end - send start leaves -7.1 <= correction <= -6.9: 1.1 + 7 and 2.2 + 7 against 1.0 and 2.3
    assert correction.offset_s[1] == pytest.approx(-7.0, abs=0.1 + 1e-9)
    assert correction.uncertainty_s[1] == pytest.approx(0.1)


def test_contradicting_events_are_no_solution() -> None:
    left, right = Line(0), Line(1)
    for turn, jump in enumerate((0.0, 5.0, -5.0, 5.0, -5.0)):
        left.collective(10.0 * turn + 1, 10.0 * turn + 1.1, "MPI_Barrier")
        right.collective(10.0 * turn + 1 + jump, 10.0 * turn + 1.1 + jump, "MPI_Barrier")
    correction, _ = solved(build(left, right))
    assert not correction.solved.any()


def test_constraints_grow_with_the_calls_and_not_with_the_pairs_of_ranks() -> None:
    trace, _ = stencil(1024, 120_000)
    found = constraints_of(trace)
    calls = len(pair_calls(trace).region)
    assert len(found.process) <= calls
    assert len(found.earlier) <= calls


def test_windows_together_hold_the_constraints_of_the_whole() -> None:
    trace, off = stencil(16, 50_000, ranks_per_node=4)
    calls = pair_calls(trace)
    joint, sent = match_collectives(trace, calls), match_messages(trace, calls)
    whole = collect_constraints(trace, calls, joint, sent)
    twice = combine_constraints([whole, whole], trace)
    assert np.array_equal(twice.earlier, whole.earlier)
    assert len(twice.first) == 2 * len(whole.first) - 1
    correction = clocks.align_clocks(twice, locations.hosts_of_processes(trace), trace.ticks_s)
    assert error_s(trace, correction, off) < 5e-6
