"""Changes tried on measured runs: what they win, what they leave, and what they do to the other gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from advisor.analysis import bounds, gaps
from advisor.analysis.disturbance import TAKEN
from advisor.model.records import CAUSE_CATEGORIES, Causes, Phase, PhaseKind, Processor, Profile, Region
from advisor.trace.counts import TO_FIRST
from advisor_simulation.whatif.changes import CHANGES, fetch_pieces
from advisor_simulation.whatif.gains import try_change, try_jointly
from advisor_simulation.whatif.measured_run import MeasuredRun, build_run
from advisor_simulation.whatif.trial import Trial

LOADS = arrays(np.float64, (2, 4, 3), elements=st.floats(0.125, 10))


def profile(
    loads: np.ndarray, sync: float = 0.0, kinds: tuple[PhaseKind, PhaseKind] = ("parallel", "parallel")
) -> Profile:
    """Return a run of two phases, loads (phase, processor, iteration), everybody waiting for the slowest."""
    phases = []
    start = 0.0
    lasted = loads.max(axis=1) + sync
    for number, load in enumerate(loads):
        times = np.cumsum(np.r_[start, lasted.sum(axis=0)[:-1]]) + (lasted[0] if number else 0.0)
        wait = load.max(axis=0) - load
        measures = {"wall_s": load + wait + sync, "wait_s": wait, "sync_s": np.full_like(load, sync)}
        measures |= {"transfer_s": np.zeros_like(load), "io_s": np.zeros_like(load)}
        phases.append(
            Phase(
                f"phase {number}",
                kinds[number],
                np.array([number]),
                {name: array[None] for name, array in measures.items()},
                "MPI_Barrier",
                times,
                lasted[number],
            )
        )
    return Profile(
        program="made",
        run="made",
        reader="test",
        actual_s=float(lasted.sum()),
        processors=tuple(Processor(rank) for rank in range(loads.shape[1])),
        regions=(Region("first"), Region("second")),
        phases=tuple(phases),
        status={},
        paradigms=("mpi",),
    )


def run_of(made: Profile) -> MeasuredRun:
    run = build_run(made)
    assert run is not None
    return run


@given(loads=LOADS, sync=st.floats(0, 1))
def test_the_unchanged_run_takes_the_measured_time_and_has_the_measured_gaps(loads: np.ndarray, sync: float) -> None:
    made = profile(loads, sync)
    run = run_of(made)
    assert run.total_seconds() == pytest.approx(made.actual_s)
    assert run.error_s == pytest.approx(0.0, abs=1e-9)
    expected = {gap.name: gap.seconds for gap in gaps.attribute_gaps(made, bounds.compute_bounds(made))}
    for name, seconds in run.compute_gaps().items():
        assert seconds == pytest.approx(expected[name], abs=1e-9), name


@pytest.mark.parametrize("words", sorted(CHANGES), ids=" ".join)
@settings(max_examples=20)
@given(loads=LOADS)
def test_no_change_makes_work_vanish_or_time_negative(words: tuple[str, str], loads: np.ndarray) -> None:
    run = run_of(profile(loads, 0.25))
    found = try_change(Trial(run), dict([words]))
    if found is None:
        return
    work = sum(float(phase.work.sum()) for phase in run.phases)
    left = sum(float(phase.work.sum()) for phase in found.changed.run.phases)
    assert left == pytest.approx(work)
    assert found.changed.total_seconds() > 0
    assert found.low_s <= found.expected_s <= found.high_s


@given(loads=LOADS)
def test_fetched_pieces_leave_a_piece_at_most(loads: np.ndarray) -> None:
    run = run_of(profile(loads))
    found = try_change(Trial(run), {"schedule": "dynamic"})
    assert found is not None
    mean, piece = float(loads.mean(axis=1).sum()), float(loads.max(axis=1).sum()) / 32
    assert mean - 1e-9 <= found.changed.total_seconds() <= mean + piece


def test_equal_pieces_leave_nothing_uneven() -> None:
    found = fetch_pieces(np.ones((5, 2)))
    assert found == pytest.approx(1.0)
    first_has_more = fetch_pieces(np.array([[1.5], [1.0], [1.0], [1.0]]))
    assert first_has_more.max() == pytest.approx(1.125, abs=1 / 32)


def test_figure_4_by_remedies() -> None:
    """41 is the mean load: scheduling reaches it but for a piece, a decomposition for each phase comes near it."""
    loads = np.array([[[10.0, 5.0], [5.0, 6.0]], [[10.0, 15.0], [15.0, 16.0]]])
    run = run_of(profile(loads))
    assert run.total_seconds() == 47
    decomposed, scheduled = (
        try_change(Trial(run), {"rebalance": "phases"}),
        try_change(Trial(run), {"schedule": "dynamic"}),
    )
    assert decomposed is not None
    assert scheduled is not None
    assert 41 <= decomposed.changed.total_seconds() < 47
    assert 41 <= scheduled.changed.total_seconds() <= 41 * (1 + 1 / 32)


def test_a_decomposition_for_one_phase_can_hurt_the_other() -> None:
    loads = np.array([[[3.0], [1.0]], [[1.0], [2.0]]])
    found = try_change(Trial(run_of(profile(loads))), {"rebalance": "critical phase"})
    assert found is not None
    assert found.gap_changes()["M'"] < 0
    first, second = found.changed.run.phases
    assert first.load.ravel().tolist() == pytest.approx([2, 2])
    assert second.load.ravel().tolist() == pytest.approx([3 / 7, 18 / 7])  # even factors: 1 : 2 becomes 1 : 6


def test_the_first_rank_takes_its_part_and_leaves_the_others_uneven() -> None:
    """Of 16 s each of four has 4: the others keep three quarters, of which one still has twice as much."""
    loads = np.array([[[0.0], [4.0], [4.0], [8.0]], [[5.0], [4.0], [4.0], [4.0]]])
    found = try_change(Trial(run_of(profile(loads))), {"rebalance": "first rank"})
    assert found is not None
    first, second = found.changed.run.phases
    assert first.load.ravel().tolist() == pytest.approx([4, 3, 3, 6])
    assert second.load.ravel().tolist() == [5, 4, 4, 4]


def test_a_serial_part_is_shared() -> None:
    loads = np.zeros((2, 4, 3))
    loads[0, 0] = 8.0
    loads[1] = 1.0
    run = run_of(profile(loads, kinds=("serial", "parallel")))
    found = try_change(Trial(run), {"serial": "parallel"})
    assert found is not None
    assert found.expected_s == pytest.approx(3 * (8 - 2))
    assert found.gap_changes()["P"] == pytest.approx(-18)


def test_waiting_for_neighbours_only_lets_a_late_processor_be_late_alone() -> None:
    """One processor is slow in each iteration, never a neighbour of the one before: lateness takes time to spread."""
    loads = np.ones((1, 6, 6))
    loads[0, [0, 3, 5, 1, 4, 2], np.arange(6)] = 5.0
    run = run_of(profile(np.concatenate([loads, np.full((1, 6, 6), 1e-9)])))
    found = try_change(Trial(run), {"barriers": "pairwise"})
    assert found is not None
    assert run.total_seconds() == pytest.approx(30, rel=1e-6)
    assert 0 < found.expected_s < 24


def test_gains_of_two_changes_do_not_add_up() -> None:
    loads = np.array([[[10.0, 5.0], [5.0, 6.0]], [[10.0, 15.0], [15.0, 16.0]]])
    run = run_of(profile(loads))
    even, phases = try_change(Trial(run), {"schedule": "dynamic"}), try_change(Trial(run), {"rebalance": "phases"})
    both = try_jointly(Trial(run), [({"rebalance": "phases"}, set()), ({"schedule": "dynamic"}, set())]).gain
    assert even is not None
    assert phases is not None
    assert max(even.expected_s, phases.expected_s) <= both.expected_s + 1e-9
    assert both.expected_s < even.expected_s + phases.expected_s


def test_what_a_profile_does_not_tell_is_not_guessed() -> None:
    run = run_of(profile(np.ones((2, 2, 2))))
    assert try_change(Trial(run), {"layout": "padded"}) is None
    assert try_change(Trial(run), {"fsync": "rare"}) is None
    assert try_change(Trial(run), {"messages": "grouped"}) is None
    assert build_run(replace(run.profile, actual_s=float("nan"))) is None


@pytest.mark.parametrize(("instances", "wins"), [(1, False), (4, True)])
def test_messages_of_a_phase_that_comes_once_are_not_grouped(instances: int, wins: bool) -> None:
    made = profile(np.ones((2, 2, instances)))
    sent = {"transfer_s": np.full((1, 2, instances), 0.5 / instances)}
    phase = replace(made.phases[0], arrays={**made.phases[0].arrays, **sent})
    both, none = np.arange(2), np.zeros(2, dtype=np.int64)
    causes = Causes(
        kinds=("message",),
        targets=(),
        category=none + CAUSE_CATEGORIES.index("transfer"),
        kind=none,
        phase=none,
        call=none,
        caller=none - 1,
        processor=both,
        partner=1 - both,
        target=none - 1,
        size_class=none + 4,
        seconds=np.full(2, 0.5),
        count=none + 1000,
        bytes=none + 8000,
    )
    run = run_of(replace(made, phases=(phase, made.phases[1]), causes=causes))
    found = try_change(Trial(run), {"messages": "grouped"})
    assert found is not None
    assert (found.expected_s > 0.4) == wins
    assert wins or found.expected_s == 0


def crowded(loads: list[float], counts: dict[str, np.ndarray] | None = None) -> Profile:
    """Four ranks of one phase that lasts 8 s, on two cores; ``loads`` are their CPU seconds."""
    work = np.array(loads)[None, :, None]
    measures = {"wall_s": np.full_like(work, 8.0), "cpu_s": work, "wait_s": 8.0 - work}
    measures |= dict.fromkeys(("transfer_s", "io_s", "sync_s", "os_s"), np.zeros_like(work))
    step = Phase("step", "parallel", np.array([0]), measures, "MPI_Barrier", np.zeros(1), np.full(1, 8.0))
    made = replace(profile(np.ones((2, 4, 1))), phases=(step,), actual_s=8.0, cores=2, counts=counts or {})
    return replace(made, status=dict.fromkeys(measures, "measured"))


@pytest.mark.parametrize(
    ("first_s", "answers", "seconds"),
    [
        (2.0, False, 4.0),
        (0.19, False, 6.19),  # takes no part: one of two ranks would compute
        (0.21, False, 3.105),
        (1.49, True, 7.49),  # hands out the work
        (1.51, True, 3.755),
    ],
)
def test_fewer_ranks_share_the_work_but_one_that_hands_it_out_does_none(
    first_s: float, *, answers: bool, seconds: float
) -> None:
    sent, to_first = np.zeros((2, 4)), np.zeros((2, 4))
    sent[0] = [300.0, 100.0, 100.0, 100.0]
    to_first[0, 1:] = 100.0
    counts = {"messages": sent, TO_FIRST: to_first} if answers else {}
    changed = CHANGES["ranks", "cores"](run_of(crowded([first_s, 2.0, 2.0, 2.0], counts)), set())
    assert changed is not None
    assert changed.total_seconds() == pytest.approx(seconds)


def test_fewer_ranks_leave_other_programs_what_they_took() -> None:
    taken = np.zeros((2, 4))
    taken[0, 0] = 0.25 * 2 * 8.0
    changed = CHANGES["ranks", "cores"](run_of(crowded([2.0] * 4, {TAKEN: taken})), set())
    assert changed is not None
    assert changed.total_seconds() == pytest.approx(4.0 / 0.75)


def test_a_writer_takes_output_and_not_what_the_system_took() -> None:
    work = np.full((1, 2, 4), 2.0)
    io = np.zeros_like(work)
    io[0, 0] = 0.5
    measures = {"wall_s": np.full_like(work, 4.5), "cpu_s": work, "io_s": io, "os_s": np.full_like(work, 2.0)}
    measures |= {"wait_s": 0.5 - io, "transfer_s": np.zeros_like(work), "sync_s": np.zeros_like(work)}
    step = Phase("step", "parallel", np.array([0]), measures, "MPI_Barrier", np.arange(4) * 4.5, np.full(4, 4.5))
    made = replace(profile(np.ones((2, 2, 1))), phases=(step,), actual_s=18.0)
    run = run_of(replace(made, status=dict.fromkeys(measures, "measured")))
    changed = CHANGES["io", "asynchronous"](run, set())
    assert changed is not None
    assert run.total_seconds() == pytest.approx(18.0)
    assert changed.total_seconds() == pytest.approx(18.0 - 3 * 0.5), "nothing hides the last output"
