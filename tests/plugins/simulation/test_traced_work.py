"""What of the work of ranks is structure: work that is handed around, and noise and disturbances, which are none."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_simulation.whatif import changes
from advisor_simulation.whatif.call_grouping import _share_of_bytes
from advisor_simulation.whatif.measured_run import MeasuredRun, PhaseRun
from advisor_simulation.whatif.traced import sharing
from advisor_simulation.whatif.traced.noise import count_positions, split_noise, split_noise_by_position
from advisor_simulation.whatif.traced.work import Unit

RANKS, PASSES = 12, 20


def test_work_that_is_handed_around_is_no_noise() -> None:
    """One rank has 4 % more in each pass, another one each time: less than noise can be, and yet structure."""
    seconds = np.random.default_rng(1).normal(1.0, 0.001, (RANKS, PASSES))
    seconds[np.arange(PASSES) % RANKS, np.arange(PASSES)] += 0.04
    structure, _ = split_noise(seconds, PASSES)
    assert structure == pytest.approx(seconds)


@pytest.mark.parametrize("kind", ["scatter", "now and then", "of all sizes"])
def test_noise_stays_noise(kind: str) -> None:
    random = np.random.default_rng(2)
    seconds = random.normal(1.0, 0.01 if kind == "scatter" else 0.001, (RANKS, PASSES))
    hit = (np.arange(PASSES) * 5 % RANKS, np.arange(PASSES))
    if kind == "now and then":
        seconds[hit] += np.where(random.random(PASSES) < 0.6, 0.04, 0.0)
    if kind == "of all sizes":
        seconds[hit] += random.exponential(0.03, PASSES)
    structure, _ = split_noise(seconds, PASSES)
    assert structure.max() < 1.02


def test_a_disturbance_among_work_that_wanders_is_none() -> None:
    """One rank has a fifth more in each pass, another one each time; once one takes twice as long."""
    seconds = np.random.default_rng(3).normal(1.0, 0.001, (RANKS, PASSES))
    seconds[np.arange(PASSES) % RANKS, np.arange(PASSES)] += 0.2
    wanders = seconds.copy()
    seconds[5, 2] += 1.0
    structure, noise = split_noise(seconds, PASSES)
    assert noise < 0
    assert structure[5, 2] == pytest.approx(1.0, abs=0.01)
    others = np.ones_like(seconds, dtype=bool)
    others[5, 2] = False
    assert structure[others] == pytest.approx(wanders[others])


def test_work_spread_evenly_has_no_tail() -> None:
    """All ranks have up to a fifth more or less, each time another part; what is far beyond is disturbance."""
    seconds = 1.0 + np.random.default_rng(4).uniform(-0.2, 0.2, (40, PASSES))
    kept, noise = split_noise(seconds, PASSES)
    assert noise > 0
    assert kept == pytest.approx(seconds)
    seconds[7, 3] = 1.9
    structure, noise = split_noise(seconds, PASSES)
    assert noise < 0
    assert structure[7, 3] < 1.3


def test_one_disturbance_may_last_for_several_passes() -> None:
    """A rank is half as fast in three passes in a row, which is no trend; one that slows down more and more is."""
    seconds = np.random.default_rng(5).normal(1.0, 0.002, (RANKS, PASSES))
    seconds[4, 7:10] += 1.0
    structure, noise = split_noise(seconds, PASSES)
    assert noise < 0
    assert structure.max() < 1.01
    grown = np.random.default_rng(5).normal(1.0, 0.002, (RANKS, PASSES))
    grown[4] += np.linspace(0.0, 1.0, PASSES)
    assert split_noise(grown, PASSES)[0] == pytest.approx(grown, abs=0.01)


def test_work_that_grows_is_told_from_what_disturbs_it() -> None:
    """The work of a rank grows, and one pass of it takes three times as long: growth stays, the disturbance goes."""
    seconds = np.random.default_rng(6).normal(1.0, 0.005, (RANKS, 14))
    seconds[4] += np.linspace(0.0, 0.4, 14)
    grown = seconds.copy()
    seconds[4, 5] += 2.0
    structure, noise = split_noise(seconds, 14)
    assert noise < 0
    assert structure[4] == pytest.approx(grown[4], abs=0.04)


def test_noise_that_stays_for_several_passes_is_no_trend() -> None:
    """Each rank keeps its deviation for four of 92 passes, as where a step of the program has four of them."""
    random = np.random.default_rng(7)
    seconds = 1.0 + np.repeat(random.normal(0.0, 0.01, (RANKS, 23)), 4, axis=1)
    structure, noise = split_noise(seconds, 92)
    assert noise == pytest.approx(0.01, rel=0.2)
    assert structure.std() < 0.005


def test_what_wanders_is_no_disturbance_where_ranks_are_of_two_kinds() -> None:
    """Five ranks have less work than four; another rank has half as much again in each pass."""
    seconds = np.r_[np.full(4, 1.06), np.full(5, 0.85)][:, None] * np.random.default_rng(8).normal(1, 0.001, (9, 27))
    seconds[np.arange(27) % 9, np.arange(27)] *= 1.5
    structure, noise = split_noise(seconds, 27)
    assert noise > 0
    assert structure == pytest.approx(seconds)


def test_work_that_is_handed_around_may_be_disturbed() -> None:
    seconds = np.random.default_rng(9).normal(1.0, 0.001, (RANKS, PASSES))
    seconds[np.arange(PASSES) % RANKS, np.arange(PASSES)] += 0.04
    wanders = seconds.copy()
    seconds[7, 3] += 0.8
    structure, noise = split_noise(seconds, PASSES)
    assert noise < 0
    others = np.arange(PASSES) != 3
    assert structure[:, others] == pytest.approx(wanders[:, others])
    assert structure[7, 3] == pytest.approx(1.0, abs=0.01)


def test_ranks_with_next_to_nothing_do_not_tell_how_long_a_pass_is() -> None:
    """One rank computes 4 ms in each pass, three a few ticks of the timer, now more and now less of them."""
    ticks = np.random.default_rng(10).choice([5e-6, 1e-5, 2e-5], (3, 16), p=[0.6, 0.2, 0.2])
    seconds = np.r_[np.full((1, 16), 4e-3), ticks]
    structure, _ = split_noise(seconds, 16)
    assert structure == pytest.approx(seconds)


def test_who_writes_gets_as_much_work_as_it_has_time_for() -> None:
    """Three ranks compute 10 s each, the fourth writes for 6 s: it has time for 4 s, and the others for 26 / 3 s."""
    seconds = np.array([[10.0], [10.0], [10.0], [0.0]])
    none = np.full(4, -1)
    unit = Unit(0, none, none, seconds, seconds, 0.0, 0 * seconds, -1, 1, none, spare_s=np.array([10.0, 10, 10, 4]))
    assert unit.stretch * 7.5 == pytest.approx(26 / 3)
    assert replace(unit, spare_s=np.full(4, 10.0)).stretch == 1.0


def test_the_first_rank_of_a_trace_takes_its_part_while_it_waits() -> None:
    seconds = np.array([[0.0], [4.0], [4.0], [8.0]])
    none = np.full(4, -1)
    unit = Unit(0, none, none, seconds, seconds, 0.0, 0 * seconds, -1, 1, none)
    (factor,) = sharing.FACTORS["rebalance", "first rank"]([unit])
    assert factor[:, 0].tolist() == pytest.approx([1.0, 0.75, 0.75, 0.75])
    (factor,) = sharing.FACTORS["rebalance", "first rank"]([replace(unit, codes=np.array([0, 0, 1, 1]))])
    assert (factor == 1.0).all()


def test_large_file_operations_take_their_time_for_their_bytes() -> None:
    share = _share_of_bytes(np.array([8.0, 4096, 1 << 16, 1 << 20, 1 << 30]))
    assert share == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0])


@given(seed=st.integers(0, 99), factor=st.floats(2.5, 50.0), spread=st.floats(0.0, 0.02))
def test_passes_of_different_sizes_are_judged_by_themselves(seed: int, factor: float, spread: float) -> None:
    """Long passes keep their shares whatever the short ones between them do."""
    random = np.random.default_rng(seed)
    long = random.normal(factor, spread * factor, (RANKS, PASSES))
    both = np.empty((RANKS, 2 * PASSES))
    both[:, ::2], both[:, 1::2] = long, random.uniform(0.5, 1.0, (RANKS, PASSES))
    assert count_positions(both, PASSES) == 2
    assert count_positions(long, PASSES) == 1
    assert split_noise_by_position(both, PASSES)[0][:, ::2] == pytest.approx(split_noise(long, PASSES)[0])


def run_of(io: np.ndarray, work: float) -> MeasuredRun:
    """Two processors; each instance computes, then writes."""
    shape = (2, len(io))
    nothing = np.zeros(shape)
    phase = PhaseRun(
        0, False, np.full(shape, work), nothing, np.broadcast_to(io, shape).copy(), nothing, nothing,
        np.zeros(len(io)), np.arange(len(io)) * (work + float(io.max())),
    )  # fmt: skip
    profile: Any = SimpleNamespace(processors=[0, 1], phases=[SimpleNamespace(arrays={})])
    return MeasuredRun(profile, SimpleNamespace(is_hybrid=False), (phase,), 0.0, 0.0)  # type: ignore[arg-type]


def test_what_is_written_last_is_not_hidden() -> None:
    """Three outputs of 0.5 s; 0.8 of the 1 s that follows hides each, but nothing follows the last one."""
    hidden = changes.hide_io(run_of(np.array([0.5, 0.5, 0.5]), 1.0), set())
    assert hidden is not None
    assert hidden.phases[0].io[0].tolist() == pytest.approx([0.0, 0.0, 0.5])


def test_only_what_is_computed_until_the_next_output_hides_one() -> None:
    hidden = changes.hide_io(run_of(np.array([2.0, 2.0]), 1.0), set())
    assert hidden is not None
    assert hidden.phases[0].io[0].tolist() == pytest.approx([1.2, 2.0])


def test_a_loop_in_one_instance_hides_all_but_its_last_output() -> None:
    once = run_of(np.array([4.0]), 10.0)
    four = once.with_phases([replace(once.phases[0], passes=4)])
    two = once.with_phases([replace(four.phases[0], outputs=2)])
    hidden, rare, unknown = (changes.hide_io(run, set()) for run in (four, two, once))
    assert hidden is not None
    assert rare is not None
    assert unknown is not None
    assert hidden.phases[0].io[0, 0] == pytest.approx(1.0), "a quarter is written last"
    assert rare.phases[0].io[0, 0] == pytest.approx(2.0), "two passes of four write"
    assert unknown.phases[0].io[0, 0] == pytest.approx(4.0 * changes.LAST)


def test_threads_share_what_others_have_a_function_for() -> None:
    """Of three threads one decodes alone for 6 s; 9 s of encoding are anyone's."""
    team: Any = SimpleNamespace(is_hybrid=True, master=np.zeros(3, dtype=np.int64), others=np.array([1, 2]))
    work, nothing = np.array([[7.0], [6.0], [2.0]]), np.zeros((3, 1))
    seconds = np.stack([np.array([[6.0], [0.0], [0.0]]), work - np.array([[6.0], [0.0], [0.0]])])
    regions = [SimpleNamespace(name=name, threaded=True) for name in ("decode", "encode")]
    recorded = SimpleNamespace(arrays={"wall_s": seconds}, regions=np.array([0, 1]))
    phase = PhaseRun(0, False, work, nothing, nothing, nothing, nothing, np.zeros(1), np.zeros(1))
    profile: Any = SimpleNamespace(processors=[0, 1, 2], phases=[recorded], regions=regions)
    run = MeasuredRun(profile, team, (phase,), 0.0, 0.0)
    assert run.find_single_work(phase).tolist() == [[6.0], [0.0], [0.0]]
    after = changes.schedule_dynamically(run, set())
    assert after is not None
    assert after.phases[0].work[:, 0].tolist() == pytest.approx([6.0, 4.5, 4.5])


def test_fetching_work_leaves_noise_where_it_was() -> None:
    run = run_of(np.zeros(PASSES), 1.0)
    noise = np.random.default_rng(3).normal(0.0, 0.005, (2, PASSES))
    noisy = run.with_phases([replace(run.phases[0], work=1.0 + noise)])
    before, after = noisy.phases[0], changes.schedule_dynamically(noisy, set())
    assert after is not None
    assert after.phases[0].durations().sum() >= 0.999 * before.durations().sum()


def test_only_input_and_output_is_shared_not_waiting_for_a_core() -> None:
    """Of 5 s of one processor 1 s is output, and of 2 s of the other nothing."""
    run = run_of(np.array([4.0]), 10.0)
    phase = replace(run.phases[0], io=np.array([[5.0], [2.0]]))
    run.profile.phases = [SimpleNamespace(arrays={"io_s": np.array([[[1.0], [0.0]]])})]  # type: ignore[misc]
    shared = changes.share_io(run.with_phases([phase]), set())
    assert shared is not None
    assert shared.phases[0].io[:, 0].tolist() == pytest.approx([4.5, 2.5])
