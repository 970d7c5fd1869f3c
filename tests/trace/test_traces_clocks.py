"""Offsets and drifts that were put on a trace are found again."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import NUMBER, Line, build

from advisor.analysis.bounds import compute_bounds
from advisor.analysis.gaps import attribute_gaps
from advisor.analysis.loads import summarize_loads
from advisor.analysis.quality import grade_profile
from advisor.trace import clocks, locations
from advisor.trace.clock_constraints import (
    ClockConstraints,
    are_clocks_consistent,
    collect_constraints,
    combine_constraints,
)
from advisor.trace.clock_intervals import largest_violation
from advisor.trace.clock_observations import observe_domains
from advisor.trace.events import Kind
from advisor.trace.matching import match_collectives, match_messages
from advisor.trace.nesting import pair_calls
from advisor.trace.profile import from_trace

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from stencil_traces import NodeClocks, stencil

if TYPE_CHECKING:
    from advisor.model.records import Profile
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


def solved(trace: Trace) -> tuple[clocks.ClockCorrection, Trace]:
    correction = clocks.align_clocks(constraints_of(trace), locations.hosts_of_processes(trace), trace.ticks_s)
    return correction, replace(trace, time_s=clocks.correct_times(trace, correction))


def constraints_of(trace: Trace) -> ClockConstraints:
    calls = pair_calls(trace)
    return collect_constraints(trace, calls, match_collectives(trace, calls), match_messages(trace, calls))


def disturbed(trace: Trace, offset: np.ndarray, drift: np.ndarray) -> Trace:
    rank = np.repeat([location.rank for location in trace.locations], np.diff(trace.first))
    return replace(trace, time_s=trace.time_s * (1 + drift[rank]) + offset[rank])


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


def with_a_loner(offset_s: float, hosts: tuple[str | None, ...] = (None,) * 4) -> tuple[Trace, np.ndarray]:
    """Return three processes with barriers, whose clocks are off, a fourth one that works alone, and these offsets."""
    generator = np.random.default_rng(11)
    lines = [Line(rank) for rank in range(4)]
    for turn in range(30):
        enters = turn + 0.3 * generator.random(3)
        for line, enter in zip(lines, enters.tolist(), strict=False):
            line.collective(enter, float(enters.max()) + 1e-5, "MPI_Barrier")
    lines[3].call(0.1, 29.9, "work")
    offset = np.array([0.0, 0.7, -0.4, offset_s])
    trace = disturbed(build(*lines, communicators=((0, 1, 2),)), offset, np.zeros(4))
    places = tuple(replace(place, host=host) for place, host in zip(trace.locations, hosts, strict=True))
    return replace(trace, locations=places), offset


@pytest.mark.parametrize(("offset_s", "moved"), [(0.5, False), (7200.0, True)])
@pytest.mark.parametrize("hosts", [(None,) * 4, ("a", "b", "c", "d"), ("a", "b", "c", None)])
def test_a_process_that_nothing_ties_to_the_others_costs_them_nothing(
    offset_s: float, moved: bool, hosts: tuple[str | None, ...]
) -> None:
    trace, offset = with_a_loner(offset_s, hosts)
    correction, _ = solved(trace)
    assert correction.solved.all()
    assert correction.island.tolist() == [0, 0, 0, 1]
    assert np.abs(correction.offset_s + offset)[:3].max() < 1e-4
    placed = clocks.place_islands(trace, np.full(4, -np.inf), correction)
    assert placed.moved == moved
    assert placed.offset_s[3] == pytest.approx(-7200.0, abs=0.5) if moved else placed.offset_s[3] == 0.0
    note = clocks.describe_clocks(placed, np.arange(4))
    assert note is not None
    assert "ties 1 of 4 processes to the rest" in note.text
    assert ("started with the rest" if moved else "as recorded") in note.text
    profile = from_trace(trace)
    assert profile.actual_s == pytest.approx(29.6, abs=1.0)
    assert profile.status["wait_s"] == "measured"


def test_islands_are_aligned_each_by_itself() -> None:
    generator = np.random.default_rng(12)
    lines = [Line(rank) for rank in range(6)]
    groups = ((0, 2, 5), (1, 3), (4,))
    for turn in range(30):
        for comm, members in enumerate(groups):
            enters = turn + 0.3 * generator.random(len(members))
            for rank, enter in zip(members, enters.tolist(), strict=True):
                lines[rank].collective(enter, float(enters.max()) + 1e-5, "MPI_Barrier", comm=comm)
    trace = on_nodes(build(*lines, communicators=groups), 1)
    offset = np.array([0.0, 0.2, 0.7, 0.1, 0.3, -0.4])
    correction, _ = solved(disturbed(trace, offset, np.zeros(6)))
    assert correction.solved.all()
    assert correction.island.tolist() == [0, 1, 0, 1, 2, 0]
    left = correction.offset_s + offset
    for members in groups:
        assert np.abs(left[list(members)] - offset[members[0]]).max() < 1e-4
    assert correction.uncertainty_s.max() < 1e-3


def test_where_nobody_exchanges_anything_all_keep_their_clocks() -> None:
    profile = from_trace(build(Line(0).call(0.0, 1.0, "work"), Line(1).call(0.0, 2.0, "work")))
    assert profile.actual_s == 2.0
    assert [note.text for note in profile.notes if note.name == "clocks"] == [
        "no matched message or collective ties 1 of 2 processes to the rest; they keep their clocks as recorded"
    ]


def test_contradicting_events_are_no_solution() -> None:
    left, right = Line(0), Line(1)
    for turn, jump in enumerate((0.0, 5.0, -5.0, 5.0, -5.0)):
        left.collective(10.0 * turn + 1, 10.0 * turn + 1.1, "MPI_Barrier")
        right.collective(10.0 * turn + 1 + jump, 10.0 * turn + 1.1 + jump, "MPI_Barrier")
    correction, _ = solved(build(left, right))
    assert not correction.solved.any()


def sound_lines() -> list[Line]:
    """Return three processes with barriers, for which the first waits longest."""
    lines = [Line(rank) for rank in range(3)]
    for turn in range(20):
        enters = [2.0 * turn + late for late in (0.1, 0.6, 0.9)]
        for line, enter in zip(lines, enters, strict=True):
            line.collective(enter, max(enters) + 1e-5, "MPI_Barrier", comm=0)
    return lines


def contradictory_lines() -> list[Line]:
    """Return two processes of which no clocks explain the barriers."""
    generator = np.random.default_rng(13)
    lines = [Line(3), Line(4)]
    for turn in range(20):
        for line, jump in zip(lines, (0.0, 0.9 * float(generator.uniform(-1, 1))), strict=True):
            begin = 2.0 * turn + 1.0 + jump
            line.collective(begin, begin + 0.02 + 0.01 * line.rank, "MPI_Barrier", comm=1)
    return lines


def waiting_s(profile: Profile) -> np.ndarray:
    return sum((phase.arrays["wait_s"].sum(axis=(0, 2)) for phase in profile.phases), np.zeros(1))


@pytest.mark.parametrize("ranks_per_node", [None, 1, 3])
def test_an_island_that_contradicts_itself_leaves_the_others_as_they_are(ranks_per_node: int | None) -> None:
    trace = build(*sound_lines(), *contradictory_lines(), communicators=((0, 1, 2), (3, 4)))
    trace = on_nodes(trace, ranks_per_node) if ranks_per_node else trace
    correction, _ = solved(trace)
    assert correction.solved.tolist() == [True, True, True, False, False]
    assert np.isinf(correction.uncertainty_s).tolist() == [False, False, False, True, True]
    profile = from_trace(trace)
    note = next(note for note in profile.notes if note.name == "clocks")
    assert "the clocks of 2 of 5 processes (ranks 3, 4) cannot be brought together" in note.text
    assert note.penalty == pytest.approx(0.08)
    assert profile.has_phases
    assert profile.clock_uncertainty_s is None
    assert profile.status["wait_s"] == "estimated"
    alone = from_trace(build(*sound_lines(), communicators=((0, 1, 2),)))
    assert alone.status["wait_s"] == "measured"
    assert waiting_s(profile)[:3] == pytest.approx(waiting_s(alone))
    # the run begins once all are there, in the first barrier
    assert waiting_s(alone)[:2] == pytest.approx([19 * 0.8, 19 * 0.3], rel=1e-3)
    partners = {
        (one, who) for one, who in zip(profile.causes.processor, profile.causes.partner, strict=True) if who >= 0
    }
    assert partners == {(0, 2), (1, 2)}


def test_where_every_island_contradicts_itself_processes_are_not_compared() -> None:
    profile = from_trace(build(*contradictory_lines(), communicators=((0, 1), (3, 4))))
    assert not profile.has_phases
    assert profile.status["wait_s"] == profile.status["transfer_s"] == "estimated"
    note = next(note for note in profile.notes if note.name == "clocks")
    assert note.text.startswith("the processes' clocks cannot be brought together")
    assert note.penalty == 0.2


def on_nodes(trace: Trace, ranks_per_node: int) -> Trace:
    places = tuple(replace(place, host=f"node{place.rank // ranks_per_node}") for place in trace.locations)
    return replace(trace, locations=places)


def error_s(trace: Trace, correction: clocks.ClockCorrection, off: NodeClocks) -> float:
    """Return by how much the corrected clocks differ at most at the beginning and at the end of the run."""
    length = float(np.ptp(trace.time_s[: trace.first[1]]))
    worst = 0.0
    for moment in (0.0, length):
        own = moment * (1 + off.drift) + off.offset_s + off.origin_s
        common = own + correction.offset_s + correction.drift * own
        worst = max(worst, float(np.abs(common - common[0]).max()))
    return worst


@pytest.mark.parametrize("ranks", [64, 256, 1024])
def test_nodes_of_any_number_of_ranks_are_brought_together(ranks: int) -> None:
    trace, off = stencil(ranks, 120_000, ranks_per_node=16, offset_s=1e-4, drift=2e-6, seed=ranks)
    correction, _ = solved(trace)
    assert correction.solved.all()
    assert error_s(trace, correction, off) < 5e-6


@pytest.mark.parametrize("seed", range(4))
def test_long_runs_drift_and_clocks_may_be_hours_apart(seed: int) -> None:
    trace, off = stencil(16, 100_000, ranks_per_node=1, offset_s=7200.0, drift=1e-4, seed=seed)
    correction, _ = solved(trace)
    assert correction.solved.all()
    assert error_s(trace, correction, off) < 5e-6


def test_a_node_that_never_comes_last_has_the_clock_with_which_all_leave_together() -> None:
    generator = np.random.default_rng(5)
    lines = [Line(rank) for rank in range(4)]
    for turn in range(200):
        enters = 0.1 * turn + 0.01 * generator.random(4) + np.array([0, 0, 0.05, 0.05])
        for line, enter in zip(lines, enters.tolist(), strict=True):
            line.collective(enter, float(enters.max()) + 1e-5 + 1e-6 * generator.random(), "MPI_Allreduce")
    offset = np.array([0.0, 0.0, 3.0, 3.0])
    correction, _ = solved(disturbed(on_nodes(build(*lines), 2), offset, np.zeros(4)))
    assert correction.solved.all()
    assert np.abs(correction.offset_s + offset).max() < 5e-6
    assert correction.uncertainty_s.max() < 5e-5


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


def gathering(clock_s: tuple[float, ...], hosts: tuple[str | None, ...]) -> Trace:
    """Return processes that work for 0.3 to 1.2 s, and reduce what they have to the first one at the end."""
    lines = []
    work = np.linspace(0.3, 1.2, len(clock_s)).tolist()
    for rank, (off, done) in enumerate(zip(clock_s, work, strict=True)):
        line = Line(rank).enter(off, "main").call(off + 0.001, off + 0.01, "MPI_Init")
        line.call(off + 0.011, off + done, "work")
        end = off + (1.2001 if rank == 0 else done + 0.0001)
        line.collective(off + done + 0.00005, end, "MPI_Reduce", root=0)
        lines.append(line.call(end + 0.001, off + 1.21, "MPI_Finalize").leave(off + 1.211, "main"))
    trace = build(*lines)
    places = tuple(replace(place, host=host) for place, host in zip(trace.locations, hosts, strict=True))
    return replace(trace, locations=places)


@pytest.mark.parametrize(
    ("clock_s", "hosts", "words"),
    [
        ((0.0, 0.0, 0.0, 0.0), ("a", "a", "a", "a"), None),
        ((0.0, 0.0, 0.0, 0.0), (None, None, None, None), "taken as they were recorded"),
        ((0.0, 0.0, 0.0, 0.0), ("a", "a", "b", "b"), "taken as they were recorded"),
        ((0.0, 0.0, -3600.0, -3600.0), ("a", "a", "b", "b"), "cannot be brought together"),
        ((0.0, 0.0, -3600.0, -3600.0), (None, None, None, None), "cannot be brought together"),
        ((0.0, 0.0, 3600.0, 3600.0), ("a", "a", "b", "b"), "cannot be brought together"),
        ((0.0, 0.04, 0.02, 0.9), (None, None, None, None), "cannot be brought together"),
    ],
)
def test_a_program_that_only_gathers_shows_its_imbalance(
    clock_s: tuple[float, ...], hosts: tuple[str | None, ...], words: str | None
) -> None:
    profile = from_trace(gathering(clock_s, hosts))
    summary = summarize_loads(profile)
    levels = compute_bounds(profile, None, summary)
    found = attribute_gaps(profile, levels, summary)
    letter = grade_profile(profile, levels, found, summary).letter
    assert letter == "D" if words == "cannot be brought together" else letter < "D"
    largest = max(found, key=lambda gap: gap.seconds)
    assert largest.name == "L"
    assert largest.seconds == pytest.approx(0.45, rel=0.02)
    notes = " ".join(note.text for note in profile.notes if note.name == "clocks")
    assert (words in notes) if words else not notes


def test_a_line_of_ranks_is_brought_together_from_neighbour_to_neighbour() -> None:
    generator = np.random.default_rng(3)
    ranks = 150
    lines = [Line(rank) for rank in range(ranks)]
    for turn in range(6):
        start = float(turn)
        for rank in range(ranks - 1):
            sent, answered = start + 0.004 * rank, start + 0.004 * rank + 0.002
            delay = 1e-5 * (1 + generator.random(2))
            lines[rank].send(sent, sent + 1e-6, rank + 1)
            lines[rank + 1].receive(sent - 5e-4, sent + float(delay[0]), rank)
            lines[rank + 1].send(answered, answered + 1e-6, rank)
            lines[rank].receive(answered - 5e-4, answered + float(delay[1]), rank + 1)
    offset = generator.uniform(-1e-3, 1e-3, ranks)
    offset[0] = 0.0
    correction, _ = solved(disturbed(on_nodes(build(*lines), 1), offset, np.zeros(ranks)))
    assert correction.solved.all()
    assert (np.abs(correction.offset_s + offset) <= correction.uncertainty_s + 1e-9).all()
    assert np.abs(correction.drift).max() < 1e-4


@pytest.mark.parametrize("size", [8, 1_000_000])
@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_always_leaves_late_is_known_no_better_than_that(size: int, seed: int) -> None:
    """Only small collectives say that all leave together; what large ones leave open is told."""
    generator = np.random.default_rng(seed)
    late = np.array([0.0, 0.0, 5e-3]) if size > 8 else np.zeros(3)
    lines = [Line(rank) for rank in range(3)]
    for turn in range(40):
        enters = 0.1 * turn + 0.02 * generator.random(3)
        leaves = enters.max() + 1e-5 * (1 + generator.random(3)) + late
        for line, enter, leave in zip(lines, enters.tolist(), leaves.tolist(), strict=True):
            line.enter(enter, "MPI_Allreduce")
            line.add(leave, Kind.COLLECTIVE, NUMBER["MPI_Allreduce"], 0, size=size).leave(leave, "MPI_Allreduce")
    offset = np.array([0.0, 0.3, -0.2])
    correction, _ = solved(disturbed(on_nodes(build(*lines), 1), offset, np.zeros(3)))
    assert correction.solved.all()
    assert (np.abs(correction.offset_s + offset) <= correction.uncertainty_s + 1e-9).all()
    if size == 8:
        assert correction.uncertainty_s.max() < 1e-4
