"""Offsets and drifts that were put on a trace are found again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import Line, build

from advisor.traces import clocks
from advisor.traces.matching import collectives, messages
from advisor.traces.nesting import pair

if TYPE_CHECKING:
    from advisor.traces.events import Trace


def barriers(ranks: int, rounds: int, spread_s: float, lag_s: float) -> Trace:
    """Return rounds of one second, each closed by a barrier that everybody leaves ``lag_s`` after the last enter."""
    generator = np.random.default_rng(rounds * 100 + ranks)
    lines = [Line(rank) for rank in range(ranks)]
    for turn in range(1, rounds + 1):
        enters = turn + generator.random(ranks) * spread_s
        for line, enter in zip(lines, enters, strict=True):
            line.collective(float(enter), float(enters.max()) + lag_s, "MPI_Barrier")
    return build(*lines)


def solved(trace: Trace) -> tuple[clocks.Correction, Trace]:
    calls = pair(trace)
    found = clocks.constraints(trace, calls, collectives(trace, calls), messages(trace, calls))
    correction = clocks.solve(found, trace.ranks, trace.ticks_s)
    return correction, replace(trace, time_s=clocks.corrected(trace, correction))


def disturbed(trace: Trace, offset: np.ndarray, drift: np.ndarray) -> Trace:
    rank = np.repeat([location.rank for location in trace.locations], np.diff(trace.first))
    return replace(trace, time_s=trace.time_s * (1 + drift[rank]) + offset[rank])


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=5), st.integers(1, 8))
@settings(deadline=None)
def test_offsets_are_found_to_within_the_interval_left(offsets: list[float], rounds: int) -> None:
    clean = barriers(len(offsets), rounds, spread_s=0.3, lag_s=1e-4)
    offset = np.array(offsets) - offsets[0]
    correction, aligned = solved(disturbed(clean, offset, np.zeros(len(offsets))))
    assert correction.solved
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
    assert correction.solved
    assert not violated(aligned)
    if (np.abs(drift) > 1e-6).any():
        # no clock but the first is known, so times may differ by what the barriers leave open
        assert np.abs(aligned.time_s - clean.time_s).max() < 2e-3


def violated(trace: Trace) -> bool:
    """Return whether anybody leaves a barrier before everybody has entered it."""
    calls = pair(trace)
    joint = collectives(trace, calls)
    for first, last in zip(joint.first[:-1], joint.first[1:], strict=True):
        group = joint.call[first:last]
        if calls.start_s[group].max() > calls.end_s[group].min() + 1e-9:
            return True
    return False


def test_clocks_that_agree_are_left_alone() -> None:
    trace = barriers(3, 5, spread_s=0.2, lag_s=1e-4)
    correction, aligned = solved(trace)
    assert correction.solved
    assert np.array_equal(aligned.time_s, trace.time_s)
    assert clocks.note(correction) is None


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
    calls = pair(trace)
    joint, sent = collectives(trace, calls), messages(trace, calls)
    found = clocks.constraints(trace, calls, joint, sent)
    kept = bool((found.after_s - found.before_s >= -trace.ticks_s).all())
    assert clocks.agree(calls, joint, sent, trace.ticks_s) == kept


def test_messages_alone_tie_two_clocks_together() -> None:
    left, right = Line(0), Line(1)
    left.send(1.0, 1.001, 1).receive(2.0, 2.3, 1)
    right.receive(1.0, 1.1, 0).send(2.2, 2.201, 0)
    trace = disturbed(build(left, right), np.array([0.0, 7.0]), np.zeros(2))
    correction, _ = solved(trace)
    assert correction.solved
    # receive end - send start leaves -7.1 <= correction <= -6.9: 1.1 + 7 and 2.2 + 7 against 1.0 and 2.3
    assert correction.offset_s[1] == pytest.approx(-7.0, abs=0.1 + 1e-9)
    assert correction.uncertainty_s[1] == pytest.approx(0.1)


def test_a_process_that_nothing_ties_to_the_others_is_no_solution() -> None:
    trace = build(Line(0).call(0.0, 1.0, "work"), Line(1).call(0.0, 1.0, "work"))
    correction, _ = solved(trace)
    assert not correction.solved
    note = clocks.note(correction)
    assert note is not None
    assert "cannot be brought together" in note.text


def test_contradicting_events_are_no_solution() -> None:
    left, right = Line(0), Line(1)
    for turn, jump in enumerate((0.0, 5.0, -5.0, 5.0, -5.0)):
        left.collective(10.0 * turn + 1, 10.0 * turn + 1.1, "MPI_Barrier")
        right.collective(10.0 * turn + 1 + jump, 10.0 * turn + 1.1 + jump, "MPI_Barrier")
    correction, _ = solved(build(left, right))
    assert not correction.solved
