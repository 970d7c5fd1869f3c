"""Advice on programs of the laboratory whose gains are known in closed form, and on their mirror images."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from typing import TYPE_CHECKING

from lab.costs import Network
from lab.engine import Machine
from lab.exchanges import Exchange, Wavefront
from lab.groups import Coupled
from lab.judge import judge
from lab.loads import Load
from lab.one_sided import OneSided
from lab.patterns import Phase
from lab.servers import Served
from lab.shapes import build
from lab.teams import Team
from lab.world import Code

from advisor_simulation.whatif.traced.ceilings import _least_even
from advisor_simulation.whatif.traced.side_by_side import divide_ranks

if TYPE_CHECKING:
    from lab.scores import Case


def advise(*phases: Phase, ranks: int = 8, iterations: int = 20, threads: int = 1, eager_B: int = 8192) -> Case:
    machine = Machine(Network(eager_B=eager_B))
    case = judge(Code(1, "closed_form", ranks, iterations, phases, threads, machine=machine, start_s=0.0))
    assert not case.error
    return case


def test_codes_side_by_side_get_ranks_by_their_work() -> None:
    coupled = Coupled(name="advance_air", work_s=0.01, work_share=0.75)
    case = advise(coupled)
    first = case.items[0]
    assert first.action == "A-28"
    # three quarters of the work on 4 of 8 ranks, then on 6
    assert first.gain_s / case.wall_s == pytest.approx(1 - 4 / 6, rel=0.01)
    assert first.expected_s == pytest.approx(first.gain_s, rel=0.01)


def test_codes_side_by_side_that_are_done_together_need_nothing() -> None:
    assert advise(Coupled(name="advance_air", work_s=0.01)).items == []
    # of 3 to 5 no other numbers of 8 ranks are better
    assert advise(Coupled(name="advance_air", work_s=0.01, work_share=3 / 8, rank_share=3 / 8)).items == []


def test_uneven_work_between_fences_is_balanced() -> None:
    case = advise(OneSided(name="relax", work_s=0.01, load=Load("heavy", 0.45, 1), fenced=True))
    assert [item.action for item in case.items] == ["A-28"]
    assert case.items[0].expected_s == pytest.approx(20 * 0.0045, rel=0.02)
    assert advise(OneSided(name="relax", work_s=0.01, fenced=True)).items == []


def test_waiting_for_notices_of_neighbours_is_no_late_message() -> None:
    closed = OneSided(name="relax", work_s=0.01, load=Load("heavy", 0.45, 1), close="MPI_Allreduce")
    case = advise(closed)
    assert [item.action for item in case.items] == ["A-28"]
    assert case.items[0].expected_s == pytest.approx(case.items[0].gain_s, rel=0.1)
    assert advise(replace(closed, load=Load())).items == []


def test_an_exchange_that_waits_for_its_receiver_is_not_slow_by_itself() -> None:
    """Large messages of MPI_Sendrecv: who sends waits for less than a message takes, and not for its own time."""
    ring = Exchange(
        name="sweep", work_s=0.01, dimensions=1, style="sendrecv", periodic=True, load=Load("random", 0.2, 3),
        boundary=1.0, close="MPI_Allreduce", size_B=16384,
    )  # fmt: skip
    case = advise(ring, ranks=24)
    first = case.items[0]
    assert first.action in ("A-29", "A-38")
    assert first.expected_s == pytest.approx(first.gain_s, rel=0.15)


def test_waiting_for_a_lock_is_won_by_no_earlier_message() -> None:
    team = Team(name="update", work_s=0.02, locked=0.05)
    chain = Exchange(name="pack", work_s=0.001, dimensions=1, style="chain", size_B=131072, inner=0.1)
    case = advise(team, chain, ranks=3, threads=4)
    assert {"G-4", "G-5", "G-6"}.isdisjoint(item.action for item in case.items)
    lock = next(item for item in case.items if item.action == "G-55")
    assert lock.expected_s == pytest.approx(lock.gain_s, rel=0.05)


def test_who_only_serves_shows_nothing_of_when_others_can_send() -> None:
    """Ranks that wait until their large blocks are written: neither earlier messages nor larger blocks help."""
    case = advise(Served(name="compute", work_s=0.02, buffers=1, size_B=1 << 21), ranks=16, iterations=12)
    assert case.items[0].action in ("G-20", "G-22")
    assert {"G-4", "G-17", "G-18"}.isdisjoint(item.action for item in case.items)


def test_a_pipeline_of_two_ranks_is_cut_finer_and_not_sent_early() -> None:
    sweep = Wavefront(name="sweep", work_s=0.02, blocks=8)
    source = Phase(name="update", work_s=0.005, close="MPI_Allreduce")
    case = advise(sweep, source, ranks=2, eager_B=65536)
    assert [item.action for item in case.items] == ["G-6"]
    assert case.items[0].expected_s == pytest.approx(case.items[0].gain_s, rel=0.1)


def test_ranks_are_divided_so_that_codes_end_together() -> None:
    assert divide_ranks(np.array([6.0, 2.0]), 8) == [6, 2]
    assert divide_ranks(np.array([1.0, 1.0, 1.0]), 4) in ([2, 1, 1], [1, 2, 1], [1, 1, 2])
    assert divide_ranks(np.array([100.0, 1.0]), 2) == [1, 1]


def test_even_work_takes_the_harmonic_mean_where_a_rank_is_slow() -> None:
    slow = np.array([[1.0], [1.0], [1.0], [1.45]])
    assert _least_even(slow) == pytest.approx([4 / (3 + 1 / 1.45)])
    assert _least_even(np.array([[2.0], [0.0]])) == pytest.approx([1.0])
    assert _least_even(np.array([[1.0], [3.0]])) <= 2.0


def test_a_slow_core_wins_no_more_than_the_ceiling() -> None:
    plain = Exchange(name="sweep", work_s=0.01, close="MPI_Allreduce")
    code = Code(1, "slow", 4, 20, (plain,), start_s=0.0)
    case = judge(replace(code, noise=replace(code.noise, slow_rank=1, slowness=1.45)))
    first = case.items[0]
    assert first.action == "A-28"
    assert first.ceiling_s == pytest.approx(first.gain_s)


def test_work_that_only_noise_makes_uneven_is_not_handed_out() -> None:
    """Phases judge one-sided epochs; that a schedule wins nothing there is known, and no item without a number."""
    case = judge(build(13411, "one_sided_halo"))
    assert case.items == []
