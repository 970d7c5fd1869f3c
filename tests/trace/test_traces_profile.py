"""From small traces to profiles whose numbers can be told by looking."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import Line, build

from advisor.analysis import soundness
from advisor.analysis.bounds import compute_bounds
from advisor.model.errors import InputError
from advisor.trace.counts import IDLE_ENDS
from advisor.trace.events import Kind
from advisor.trace.phases import find_longest_cycle, identify_elements
from advisor.trace.profile import from_trace

if TYPE_CHECKING:
    from advisor.model.records import Profile


def loop(work: list[list[list[float]]], *, late: float = 0.0, sync: float = 0.01) -> Profile:
    """Return the profile of a loop: ``work[iteration][phase][rank]`` seconds, each phase closed by a barrier."""
    ranks = len(work[0][0])
    lines = [Line(rank).enter(0.0, "main").call(0.0, 0.5, "MPI_Init") for rank in range(ranks)]
    now = [0.5] * ranks
    for row in work:
        for number, loads in enumerate(row):
            name = ("work", "more")[number % 2]
            ends = [begin + load for begin, load in zip(now, loads, strict=True)]
            for line, begin, end in zip(lines, now, ends, strict=True):
                line.call(begin, end, name).collective(end, max(ends) + sync, "MPI_Barrier")
            now = [max(ends) + sync] * ranks
    for line, end in zip(lines, now, strict=True):
        line.call(end + late, end + late + 0.25, "MPI_Finalize").leave(end + late + 0.3, "main")
    return from_trace(build(*lines))


def seconds(profile: Profile, measure: str, phase: str) -> np.ndarray:
    """Return (processors, iterations) of the named phase."""
    chosen = next(each for each in profile.phases if each.name == phase)
    return chosen.arrays[measure].sum(axis=0)


def test_phases_iterations_and_waiting_of_a_loop() -> None:
    profile = loop([[[1.0, 2.0], [3.0, 1.0]], [[2.0, 1.0], [3.0, 1.0]]])
    assert [phase.name for phase in profile.phases] == [
        "work to MPI_Barrier",
        "more to MPI_Barrier",
        "after the loop: to MPI_Finalize",
    ]
    assert seconds(profile, "wait_s", "work to MPI_Barrier") == pytest.approx(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert seconds(profile, "sync_s", "more to MPI_Barrier") == pytest.approx(np.full((2, 2), 0.01))
    assert profile.phases[0].duration_s == pytest.approx(np.array([2.01, 2.01]))
    assert profile.actual_s == pytest.approx(0.5 + 2.01 * 2 + 3.01 * 2 + 0.3)
    assert profile.outside["start-up"] == pytest.approx([0.5, 0.5])
    assert profile.outside["shutdown"] == pytest.approx([0.3, 0.3])
    assert set(profile.status.values()) == {"measured"}


def test_a_phase_in_which_one_rank_works_alone_is_serial() -> None:
    profile = loop([[[2.0, 0.0], [1.0, 1.0]]] * 3)
    assert [phase.kind for phase in profile.phases] == ["serial", "parallel", "parallel"]


def test_alternating_lone_workers_are_no_serial_phase() -> None:
    profile = loop([[[2.0, 0.0], [1.0, 1.0]], [[0.0, 2.0], [1.0, 1.0]]] * 2)
    assert {phase.kind for phase in profile.phases} == {"parallel"}


def test_what_a_process_does_after_its_shutdown_is_no_work() -> None:
    """Extrae records MPI_Finalize as over before it has begun; the process then waits for the others in it."""
    early = (
        Line(0).enter(0.0, "main").call(0.0, 0.5, "MPI_Init").collective(0.5, 1.0, "MPI_Barrier").call(1.0, 2.0, "work")
    )
    early.call(2.0, 2.125, "MPI_Finalize").call(2.5, 3.0, "flush").leave(3.5, "main")
    late = (
        Line(1).enter(0.0, "main").call(0.0, 0.5, "MPI_Init").collective(0.5, 1.0, "MPI_Barrier").call(1.0, 4.0, "work")
    )
    late.call(4.0, 4.125, "MPI_Finalize").leave(4.5, "main")
    profile = from_trace(build(early, late))
    phase = profile.phases[-1]
    total = {name: phase.arrays[name].sum(axis=(0, 2)).tolist() for name in ("wall_s", "wait_s", "transfer_s")}
    assert total == {"wall_s": [3.0, 3.0], "wait_s": [2.0, 0.0], "transfer_s": [0.0, 0.0]}


@given(st.lists(st.lists(st.lists(st.floats(0, 5), min_size=3, max_size=3), min_size=2, max_size=2), min_size=1))
@settings(deadline=None, max_examples=40)
def test_categories_and_time_outside_add_up_to_the_run(work: list[list[list[float]]]) -> None:
    profile = loop(work, late=0.125)
    inside = sum(phase.arrays["wall_s"].sum(axis=(0, 2)) for phase in profile.phases)
    assert inside + sum(profile.outside.values()) == pytest.approx(np.full(3, profile.actual_s), abs=1e-9)
    durations = sum(phase.duration_s.sum() for phase in profile.phases if phase.duration_s is not None)
    assert durations == pytest.approx(profile.actual_s - 0.5 - 0.3, abs=1e-9)
    loads = np.array(work)
    slowest = loads.max(axis=2).sum()
    assert durations == pytest.approx(slowest + 0.01 * loads.shape[0] * 2 + 0.125, abs=1e-9)


def test_causes_add_up_to_their_categories() -> None:
    profile = loop([[[1.0, 2.0], [3.0, 1.0]]] * 3)
    assert profile.causes is not None
    for number, name in enumerate(("transfer_s", "wait_s", "sync_s", "io_s")):
        booked = sum(phase.arrays[name].sum() for phase in profile.phases)
        assert profile.causes.seconds[profile.causes.category == number].sum() == pytest.approx(booked)


def test_processes_without_a_common_clock_keep_what_needs_none_and_waiting_is_estimated() -> None:
    left, right = Line(0), Line(1)
    for turn, jump in enumerate((0.0, 5.0, -5.0, 5.0, -5.0)):
        left.call(10.0 * turn, 10.0 * turn + 1, "work").collective(10.0 * turn + 1, 10.0 * turn + 1.1, "MPI_Barrier")
        begin = 10.0 * turn + 10 + jump
        right.call(begin, begin + 2, "work").collective(begin + 2, begin + 2.1, "MPI_Barrier")
    profile = from_trace(build(left, right))
    assert [phase.kind for phase in profile.phases] == ["whole"]
    measured = {name for name, status in profile.status.items() if status == "measured"}
    assert measured == {"wall_s", "io_s"}
    assert {profile.status[name] for name in ("wait_s", "transfer_s", "sync_s")} == {"estimated"}
    work = [region.name for region in profile.regions].index("work")
    assert profile.phases[0].arrays["wall_s"][work, :, 0].tolist() == pytest.approx([5.0, 10.0])
    assert any("clocks" in note.name for note in profile.notes)


def test_a_trace_without_events_says_so() -> None:
    with pytest.raises(InputError, match="no events"):
        from_trace(build(Line(0)), "empty.otf2")


def test_a_thread_of_which_nothing_was_recorded_is_not_counted_but_said() -> None:
    master = Line(0).enter(0.0, "main").call(1.0, 2.0, "work").leave(3.0, "main")
    profile = from_trace(build(master, Line(0, thread=1).call(0.5, 2.5, "main")))
    assert [processor.name for processor in profile.processors] == ["rank 0"]
    assert any(note.name == "unobserved threads" for note in profile.notes)


@given(st.lists(st.integers(0, 2), max_size=24))
def test_the_longest_cycle_is_that_of_a_search_by_hand(values: list[int]) -> None:
    cycle = find_longest_cycle(np.array(values, dtype=np.int64))
    best = 0
    for period in range(1, len(values) // 2 + 1):
        for start in range(len(values)):
            end = start + period
            while end < len(values) and values[end] == values[end - period]:
                end += 1
            if end - start >= 2 * period:
                best = max(best, end - start)
    assert cycle.end - cycle.start == best


def test_elements_before_and_after_the_loop_are_phases_of_their_own() -> None:
    phases, iterations = identify_elements(np.array([9, 1, 2, 1, 2, 1, 2, 9, 9]))
    assert phases.tolist() == [0, 1, 2, 1, 2, 1, 2, 3, 3]
    assert iterations.tolist() == [0, 0, 0, 1, 1, 2, 2, 0, 1]


def test_nothing_behind_the_last_synchronization_is_no_phase() -> None:
    lines = [Line(rank).call(0.0, 1.0, "work").collective(1.0, 2.0, "MPI_Barrier") for rank in range(2)]
    profile = from_trace(build(*lines))
    assert [phase.name for phase in profile.phases] == ["to MPI_Barrier"]
    soundness.check_profile(profile)


def test_teams_are_booked_in_the_iteration_that_starts_them() -> None:
    lines = [Line(0).enter(0.0, "main"), Line(0, 1), Line(1).enter(0.0, "main")]
    for turn in range(3):
        lines[0].add(turn + 0.1, Kind.FORK, size=2)
        for line in lines[:2]:
            line.call(turn + 0.2, turn + (0.5 if line.thread else 0.4), "parallel")
        lines[0].add(turn + 0.6, Kind.JOIN)
        for line in (lines[0], lines[2]):
            line.collective(turn + 0.9, turn + 1.0, "MPI_Barrier")
    profile = from_trace(build(*lines))
    row = [region.name for region in profile.regions].index("main")
    mine = [(phase.arrays, phase.regions.tolist().index(row)) for phase in profile.phases if row in phase.regions]
    waited, forking = (np.concatenate([arrays[name][at, 0] for arrays, at in mine]) for name in ("wait_s", "sync_s"))
    assert waited[:3] == pytest.approx([0.1] * 3), "for the thread that ends last"
    assert forking[:3] == pytest.approx([0.2] * 3), "before the team works, and behind it"
    assert profile.causes is not None
    of_teams = profile.causes.kind == profile.causes.kinds.index("thread start")
    assert profile.causes.count[of_teams].sum() == 3


def one_core(late_s: float, *, cpu_timed: bool = False) -> Profile:
    """Two threads; the first begins its part ``late_s`` after the other, which works 0.5 s: then they take turns."""
    lines = [Line(0).enter(0.0, "main"), Line(0, 1)]
    for turn in range(10):
        lines[0].add(turn + 0.1, Kind.FORK, size=2)
        lines[1].call(turn + 0.1, turn + 0.6, "parallel")
        lines[0].call(turn + 0.1 + late_s, turn + 0.3 + late_s, "parallel")
        lines[0].add(turn + 0.9, Kind.JOIN).collective(turn + 0.9, turn + 1.0, "MPI_Barrier")
    return from_trace(replace(build(*lines), cpu_timed=cpu_timed))


def test_the_idle_time_of_threads_that_end_before_their_team_is_known() -> None:
    assert one_core(0.5, cpu_timed=True).counts[IDLE_ENDS].sum(axis=0) == pytest.approx([0.0, 2.0]), (
        "0.2 s in ten teams"
    )
    assert one_core(0.1, cpu_timed=True).counts[IDLE_ENDS].sum() == 0.0, "then the first thread waits"
    assert IDLE_ENDS not in one_core(0.5).counts


def test_where_cpu_clocks_were_read_a_late_start_says_nothing_about_shared_cores() -> None:
    assert "threads share cores" not in {note.name for note in one_core(0.5, cpu_timed=True).notes}


def test_threads_that_take_turns_wait_for_a_core_and_no_bound_exceeds_the_run() -> None:
    profile = one_core(0.5)
    found = {bound.name: bound.seconds for bound in compute_bounds(profile)}
    assert found["IPCOLMDS"] == pytest.approx(found["IPCOLMD"] + 10 * 0.2), "0.1 s from join and 0.1 s of the barrier"
    assert found["IPCOLMDS"] <= found["IPCOLMDSW"] <= profile.actual_s
    (said,) = [note for note in profile.notes if note.name == "threads share cores"]
    assert said.text.startswith("threads share a core: on rank 0 the first one stood still for 50% of the run")
    assert said.collect is not None
    assert "--map-by slot:PE=2" in said.collect
    soundness.check_profile(profile)


@pytest.mark.parametrize("late_s", [0.0, 0.02])
def test_threads_that_begin_together_have_their_cores(late_s: float) -> None:
    assert "threads share cores" not in {note.name for note in one_core(late_s).notes}


def test_a_trace_without_calls_is_no_run() -> None:
    with pytest.raises(InputError, match="no calls"):
        from_trace(build(Line(0).add(0.0, Kind.FORK).add(1.0, Kind.JOIN)))
