"""Couplings, intervals and predictions of recorded runs, against a computation of their own and against the noise."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from coupling_data import case_of, made_up, names, recorded

from advisor_coupling import noise, sentences
from advisor_coupling.cases import SECONDS, Metric
from advisor_coupling.length_selection import select_best_length
from advisor_coupling.model import build_case_model

QUIET = [name for name in names() if not name.startswith("first-noisy")]


def by_hand(found: dict[str, Any], length: int) -> float:
    """The prediction from medians, written down as section 3 says it, without any of the plugin's code."""
    alone = {name: statistics.median(values) for name, values in found["isolated_all_s"].items()}
    chains = {tuple(name.split(",")): statistics.median(values) for name, values in found["chains_all"].items()}
    total = 0.0
    for kernel, seconds in alone.items():
        above = below = 0.0
        for chain, together in chains.items():
            if len(chain) == length and kernel in chain:
                above += together / sum(alone[one] for one in chain) * together
                below += together
        total += (above / below if length > 1 else 1.0) * seconds
    return total * int(found["iterations"])


@pytest.mark.parametrize("name", names())
def test_recorded_numbers_give_the_table_of_an_independent_computation(name: str) -> None:
    found = recorded(name)
    computed = build_case_model(case_of(found))
    assert [one.length for one in computed.predictions] == list(range(1, len(found["kernels"]) + 1))
    for one in computed.predictions:
        mine = by_hand(found, one.length)
        assert one.value.value == pytest.approx(mine, rel=1e-12)
        assert one.error is not None
        assert one.error.value == pytest.approx(mine / found["actual_s"] - 1, abs=1e-12)


@pytest.mark.parametrize("name", names())
def test_recorded_numbers_give_the_couplings_and_errors_recorded_with_them(name: str) -> None:
    found = recorded(name)
    computed = build_case_model(case_of(found))
    couplings = {computed.case.chain_label(one.chain): one.value.value for one in computed.couplings}
    for length, table in found["coupling"].items():
        for chain, value in table.items():
            assert couplings[chain] == pytest.approx(value, rel=1e-9), (length, chain)
    errors = {one.length: one.error.value for one in computed.predictions if one.error}
    for method, value in found["relative_error"].items():
        length = 1 if method == "summation" else int(method.removeprefix("coupling_"))
        assert errors[length] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", [name for name in names() if name.startswith("first-noisy")])
def test_of_the_noisy_round_nothing_can_be_told(name: str) -> None:
    computed = build_case_model(case_of(recorded(name)))
    assert {one.verdict for one in computed.couplings} == {"too noisy to tell"}
    assert not computed.summation_fails


@pytest.mark.parametrize("name", QUIET)
def test_where_repeats_differ_widely_no_coupling_is_claimed(name: str) -> None:
    """Repeats that lie apart by more than a third of their median are more than any coupling recorded here."""
    found = recorded(name)
    computed = build_case_model(case_of(found))
    values = found["isolated_all_s"] | found["chains_all"]
    wide = {chain for chain, ones in values.items() if np.ptp(np.quantile(ones, [0.25, 0.75])) > 0.33 * np.median(ones)}
    assert not computed.summation_fails
    for one in computed.couplings:
        touched = {computed.case.chain_label(one.chain), *computed.case.chain_label(one.chain).split(",")} & wide
        if touched:
            assert one.verdict == "too noisy to tell", touched


def test_a_quiet_machine_shows_a_coupling_that_is_there() -> None:
    computed = build_case_model(made_up([1, 2, 3], {2: [1.3, 1.0, 0.8], 3: [1.1]}, noise=0.01))
    assert [one.verdict for one in computed.couplings] == [
        "destructive", "no coupling beyond noise", "constructive", "destructive"
    ]  # fmt: skip
    first = computed.couplings[0]
    assert first.value.low < 1.3 < first.value.high
    assert first.excess.low < 0.3 * 3 * 100 < first.excess.high


@pytest.mark.parametrize(("noise_share", "rounds"), [(0.02, 5), (0.05, 5), (0.05, 9), (0.20, 9), (0.50, 5)])
def test_where_there_is_no_coupling_hardly_one_is_claimed(noise_share: float, rounds: int) -> None:
    verdicts: Counter[str] = Counter()
    flat = {2: [1.0] * 4, 3: [1.0] * 4, 4: [1.0]}
    for seed in range(30):
        case = made_up([1, 2, 3, 4], flat, noise=noise_share, rounds=rounds, seed=seed)
        verdicts.update(one.verdict for one in build_case_model(case).couplings)
    assert verdicts["destructive"] + verdicts["constructive"] <= 0.02 * verdicts.total()
    if noise_share <= 0.02:
        assert verdicts["no coupling beyond noise"] > 0.8 * verdicts.total()


@pytest.mark.parametrize("rounds", [3, 5, 9])
def test_intervals_hold_the_truth_as_often_as_they_say(rounds: int) -> None:
    missed = 0
    for seed in range(100):
        (one,) = build_case_model(made_up([1, 1], {2: [1.2]}, noise=0.1, rounds=rounds, seed=seed)).couplings
        missed += not one.value.low <= 1.2 <= one.value.high
    assert missed <= 4


def test_two_repeats_say_nothing_about_noise() -> None:
    computed = build_case_model(made_up([1, 2], {2: [1.5]}, rounds=2))
    assert computed.couplings[0].verdict == "too noisy to tell"
    assert not computed.couplings[0].value.has_interval
    assert sentences.describe_verdict(computed).startswith("fewer than 3 repetitions")


def test_no_interval_of_a_time_goes_below_zero() -> None:
    for seed in range(20):
        computed = build_case_model(made_up([1, 1], {2: [1.2]}, noise=0.5, rounds=3, seed=seed))
        times = [*computed.alone, *(one.value for one in computed.predictions)]
        assert all(0 <= each.low <= each.value for each in times)
        assert all(one.error.low >= -1 for one in computed.predictions if one.error)


def test_a_drift_that_touches_all_alike_cancels() -> None:
    slower = np.linspace(1, 1.12, 9)
    case = made_up([1, 2, 3], {2: [1.3, 1.0, 1.0], 3: [1.1]}, noise=0.005)
    times = {chain: series * slower for chain, series in case.samples[SECONDS].items()}
    drifting = replace(case, samples={SECONDS: times}, application={SECONDS: case.application[SECONDS] * slower})
    seen = noise.find_drift(drifting)
    assert seen is not None
    assert seen.factor == pytest.approx(1.12, abs=0.03)
    assert noise.find_drift(case) is None
    assert build_case_model(drifting).couplings[0].value.value == pytest.approx(1.3, abs=0.02)


def test_a_run_that_is_far_off_is_named_and_borne() -> None:
    case = made_up([1, 2], {2: [1.0]}, noise=0.005)
    times = {chain: series.copy() for chain, series in case.samples[SECONDS].items()}
    times[(1,)][4] *= 3
    (one,) = noise.find_outliers(replace(case, samples={SECONDS: times}))
    assert (one.chain, one.round) == ((1,), 4)
    assert one.factor == pytest.approx(3, rel=0.03)
    assert build_case_model(replace(case, samples={SECONDS: times})).couplings[0].value.value == pytest.approx(
        1, abs=0.02
    )


def test_misses_add_up_and_rates_are_averaged() -> None:
    case = made_up([1, 3], {2: [1.25]}, noise=0.0)
    rates = {(0,): np.full(9, 90.0), (1,): np.full(9, 10.0), (0, 1): np.full(9, 24.0)}
    both = {"misses": {chain: 7 * series for chain, series in case.samples[SECONDS].items()}, "rate": rates}
    case = replace(case, samples={**case.samples, **both}, application=case.application | {"rate": np.full(9, 24.0)})
    (misses,) = build_case_model(case, Metric("misses")).couplings
    assert misses.value.value == pytest.approx(1.25)
    assert misses.excess.value == pytest.approx(7 * 100)
    computed = build_case_model(case, Metric("rate", "rate"))
    assert computed.couplings[0].value.value == pytest.approx(24 / 30)  # 30 = (90 * 1 s + 10 * 3 s) / 4 s
    assert computed.couplings[0].verdict == "destructive"
    assert [one.value.value for one in computed.predictions] == pytest.approx([30, 24])


def test_what_runs_once_is_added_and_not_coupled() -> None:
    case = replace(made_up([1, 2], {2: [1.5]}), once={SECONDS: np.full(9, 50.0)})
    assert [one.value.value for one in build_case_model(case).predictions] == pytest.approx([350, 500])


def test_the_best_length_is_the_shortest_that_is_as_good() -> None:
    sizes = range(1, 6)
    pairs = {2: [1.3] * 4, 3: [1.3] * 4, 4: [1.3]}
    coupled = [build_case_model(made_up([1, 1, 1, 1], pairs, noise=0.005, seed=s)) for s in sizes]
    choice = select_best_length(coupled)
    assert choice is not None
    assert (choice.length, choice.left_out) == (2, "cases")
    assert choice.errors[1] > 0.2 > 0.05 > choice.errors[2]
    flat = [
        build_case_model(made_up([1, 1, 1, 1], {2: [1.0] * 4, 3: [1.0] * 4, 4: [1.0]}, noise=0.01, seed=s))
        for s in sizes
    ]
    plain = select_best_length(flat)
    assert plain is not None
    assert plain.length == 1


def test_one_case_is_judged_by_its_rounds() -> None:
    one = build_case_model(made_up([1, 1, 1, 1], {2: [1.1] * 4, 3: [1.3] * 4, 4: [1.3]}, noise=0.01))
    choice = select_best_length([one])
    assert choice is not None
    assert (choice.length, choice.left_out) == (3, "rounds")
    assert choice.cross_validated_error < 0.03
