"""Clocks of nodes, and of processes that nothing ties together, are aligned as far as events tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from disturbed_clocks import disturbed, error_s, solved, stencil
from trace_builder import NUMBER, Line, build

from advisor.analysis.bounds import compute_bounds
from advisor.analysis.gaps import attribute_gaps
from advisor.analysis.loads import summarize_loads
from advisor.analysis.quality import grade_profile
from advisor.trace import clocks
from advisor.trace.events import Kind
from advisor.trace.profile import from_trace

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.events import Trace


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
