"""Many points at once, the exact function of latency and bandwidth, and the straight lines of the paper."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from replay_programs import halo, networks, programs
from yaml_files import read_yaml

from advisor.model.errors import UsageError
from advisor_simulation.replay import critical_path, engine, fitting, piecewise, slopes, study, sweeps
from advisor_simulation.replay.network import Network

if TYPE_CHECKING:
    from advisor_simulation.replay.program import Program

REFERENCE = read_yaml(Path(__file__).parents[2] / "reference" / "linear_latency_bandwidth.yaml")
RANGES = sweeps.Ranges(latencies_s=(0.0, 1e-4), bandwidths=(1e8, 1e10))
GAPS = 1e-10, 1e-8


@settings(max_examples=60)
@given(programs(), networks())
def test_slopes_are_those_of_the_critical_path(drawn: Program, network: Network) -> None:
    plan = engine.prepare_program(drawn, network)
    time, alpha, beta, gamma = slopes.compute_coefficients(plan, network)
    assert time == pytest.approx(engine.replay_steps(plan, network).time_s, rel=1e-12, abs=1e-18)
    assert alpha + beta * network.latency_s + gamma / network.bandwidth == pytest.approx(time, rel=1e-12, abs=1e-18)


@settings(max_examples=25)
@given(programs(most=25))
def test_the_piecewise_form_is_the_run_time_everywhere(drawn: Program) -> None:
    found = piecewise.explore_planes(drawn, Network(), RANGES.latencies_s, GAPS)
    points = sweeps.make_random_points(Network(), RANGES, 200, 3)
    np.testing.assert_allclose(
        found.evaluate_times(*study.point_axes(points)), sweeps.sweep_times(drawn, points), rtol=1e-9
    )


def test_one_path_counts_its_latencies_and_bytes() -> None:
    some = halo(16, 5)
    found = piecewise.explore_planes(some, Network(), RANGES.latencies_s, GAPS)
    alpha, beta, gamma = found.find_plane(1e-5, 1e-9)
    network = Network(1e-5, 1e9)
    plan = engine.prepare_program(some, network)
    critical = critical_path.find_critical_path(plan, engine.replay_steps(plan, network), network, some)
    assert (beta, gamma) == (critical.beta, critical.gamma)
    assert alpha == pytest.approx(critical.alpha, rel=1e-12)


def test_points_together_are_points_alone() -> None:
    some = halo(9, 10)
    points = sweeps.make_random_points(Network(), replace(RANGES, cpu_ratios=(0.5, 2.0)), 150, 1)
    alone = [engine.replay_steps(engine.prepare_program(some, point), point).time_s for point in points]
    np.testing.assert_allclose(sweeps.sweep_times(some, points), alone, rtol=1e-13)


def test_one_seed_gives_the_same_points_and_a_grid_has_equal_sides() -> None:
    assert sweeps.make_random_points(Network(), RANGES, 20, 7) == sweeps.make_random_points(Network(), RANGES, 20, 7)
    assert sweeps.make_random_points(Network(), RANGES, 20, 7) != sweeps.make_random_points(Network(), RANGES, 20, 8)
    grid = sweeps.make_grid_points(Network(), RANGES, 30)
    assert len(grid) == 25
    assert {point.latency_s for point in grid} == set(np.linspace(0, 1e-4, 5).tolist())


def test_links_are_no_piecewise_function() -> None:
    with pytest.raises(UsageError, match="--links"):
        piecewise.explore_planes(halo(4, 1), Network(links_in=1), RANGES.latencies_s, GAPS)


def test_a_cluster_gives_what_this_machine_gives() -> None:
    distributed = pytest.importorskip("distributed", reason="needs dask.distributed: pip install 'gapwatch[cluster]'")
    some = halo(4, 3)
    points = sweeps.make_random_points(Network(), RANGES, 130, 1)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
    ) as cluster:
        there = sweeps.sweep_on_cluster(some, points, cluster.scheduler_address)
    assert there.tolist() == sweeps.sweep_times(some, points).tolist()


def test_the_straight_line_is_found_where_there_is_one() -> None:
    points = sweeps.make_random_points(Network(), RANGES, 50, 1)
    latency, gap = study.point_axes(points)
    found = fitting.fit_plane(latency, gap, 2.0 + 300 * latency + 5e6 * gap)
    assert [each.value for each in (found.alpha, found.beta, found.gamma)] == pytest.approx([2.0, 300.0, 5e6])
    noise = np.random.default_rng(1).normal(0, 1e-3, 50)
    flat = fitting.fit_plane(latency, gap, 2.0 + noise)
    assert flat.alpha.is_significant
    assert not flat.beta.is_significant
    assert not flat.gamma.is_significant


def test_alpha_over_p_is_the_printed_one() -> None:
    """Table 3 of NAS BT: alpha0' and alpha1' from alpha_P / LF(P) of table 1."""
    rows = REFERENCE["table1"]
    counts, values = [row["P"] for row in rows], [row["alpha_P"] / row["LF"] for row in rows]
    found = fitting.fit_line(counts, values, inverse=True)
    printed = REFERENCE["table3"]["NAS"]
    assert found.constant.value == pytest.approx(printed["alpha0"], abs=5e-4)
    assert found.slope.value == pytest.approx(printed["alpha1"], abs=1.5e-3)
    assert found.slope.is_significant


def test_what_is_not_significant_over_p_is_left_out() -> None:
    """As table 3 has it of gamma' of NAS BT: a constant, and no slope."""
    flat = fitting.fit_line([4, 9, 16, 25, 36], [0.452, 0.455, 0.451, 0.456, 0.452], inverse=False)
    assert not flat.slope.is_significant
    assert flat.predict_coefficient(100) == pytest.approx(np.mean([0.452, 0.455, 0.451, 0.456, 0.452]))
    rising = fitting.fit_line([4, 9, 16, 25, 36], [250.0, 311.0, 396.5, 507.0, 641.0], inverse=False)
    assert rising.slope.is_significant
    assert rising.predict_coefficient(49) == pytest.approx(200.8 + 12.24 * 49, rel=0.01)


def test_products_with_the_locality_factor_are_the_printed_ones() -> None:
    """Table 1; the factors are printed with three digits, so products agree within what that hides."""
    for row in REFERENCE["table1"]:
        hidden = 5e-4 * row["alpha_prime"] + 5e-4 * row["LF"] + 5e-4
        assert row["alpha_prime"] * row["LF"] == pytest.approx(row["product"], abs=hidden)
    line = fitting.fit_line(
        [row["P"] for row in REFERENCE["table1"]], [row["alpha_prime"] for row in REFERENCE["table1"]], True
    )
    printed = REFERENCE["table3"]["NAS"]
    assert (line.constant.value, line.slope.value) == pytest.approx((printed["alpha0"], printed["alpha1"]), abs=6e-4)


def test_locality_is_total_computation_over_that_of_the_fewest_ranks() -> None:
    assert fitting.compute_locality({4: 10.0, 16: 9.0, 49: 5.53}) == {4: 1.0, 16: 0.9, 49: pytest.approx(0.553)}


def test_the_largest_relative_error_is_that_of_table_4() -> None:
    assert fitting.compute_largest_error(np.array([1.0139, 2.0]), np.array([1.0, 2.0])) == pytest.approx(0.0139)


def test_models_of_halo_exchange_over_ranks_predict_others() -> None:
    """Work that is divided among the ranks, and as many messages and steps for all of them."""
    traced = [halo(ranks, 10, work_s=16e-3 / ranks, size=1000.0) for ranks in (4, 16, 64)]
    ranges = sweeps.Ranges(latencies_s=(0.0, 2e-5), bandwidths=(1e9, 1e10))
    found = study.run_study(traced, Network(), ranges, 60, 1)
    assert [one.processors for one in found.by_rank_count] == [4, 16, 64]
    assert all(one.locality == pytest.approx(1.0, abs=0.02) for one in found.by_rank_count)
    assert all(one.error < 0.05 for one in found.by_rank_count)
    assert all(one.piecewise_error is not None and one.piecewise_error < 1e-9 for one in found.by_rank_count)
    other = halo(36, 10, work_s=16e-3 / 36, size=1000.0)
    truth = engine.replay_steps(engine.prepare_program(other, Network(0, math.inf)), Network(0, math.inf)).time_s
    assert found.model.predict_time(36, 0.0, 0.0) == pytest.approx(truth, rel=0.1)


def test_two_traces_of_one_size_are_refused() -> None:
    with pytest.raises(UsageError, match="same number of ranks"):
        study.run_study([halo(4, 1), halo(4, 2)], Network(), RANGES, 10, 1)
