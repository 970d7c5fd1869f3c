"""Over sizes and processors: where couplings change, what to measure next, predictions where nothing was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import coupling_pages
import numpy as np
import pytest
from coupling_data import RECORDED, made_up

from advisor.model.errors import UsageError
from advisor_coupling import forecasts, planning, report, results
from advisor_coupling.cases import SECONDS, CouplingCase, Metric
from advisor_coupling.length_selection import errors_where_summation_fails, select_best_length
from advisor_coupling.model import CaseModel, build_case_model
from advisor_coupling.results import CacheRecord, ExperimentDocument
from advisor_coupling.transitions import build_cache_levels, find_transitions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CACHES = {"L1": CacheRecord(48e3), "L2": CacheRecord(2e6), "L3": CacheRecord(64e6, shared_by=4)}
LEVELS = {processors: build_cache_levels(CACHES, processors) for processors in (1, 2, 8)}


def at(size: float, pair: float, *, processors: int = 1, noise: float = 0.005) -> CouplingCase:
    """Three kernels of 8 N bytes each, the first two coupled by ``pair``; times grow with N."""
    alone = [size, 2 * size, size]
    whole = 1 + (pair - 1) * 3 / 4
    case = made_up(alone, {2: [pair, 1.0, 1.0], 3: [whole]}, noise=noise, seed=int(size), parameters={"N": size})
    arrays = dict.fromkeys("uvw", 8 * size / processors)
    return replace(case, data_bytes=arrays, uses={"a": ("u",), "b": ("v",), "c": ("w",)}, processors=processors)


def test_transitions_are_found_and_named_by_the_cache() -> None:
    """Alone 8 N bytes, the pair 16 N: beyond 2550 the pair leaves L1, beyond 5100 each kernel does."""
    sizes = {1000: 1.0, 2500: 1.0, 4000: 1.4, 5000: 1.4, 8000: 1.0, 20000: 1.0}
    found = find_transitions([build_case_model(at(size, pair)) for size, pair in sizes.items()], LEVELS)
    pairs = [one for one in found if one.chain == (0, 1)]
    assert [(one.axis, one.start, one.end) for one in pairs] == [("N", 2500, 4000), ("N", 5000, 8000)]
    assert pairs[0].crossed == ("a,b: L1 to L2",)
    assert pairs[1].crossed == ("a: L1 to L2", "b: L1 to L2")
    assert pairs[0].before == pytest.approx(1, abs=0.02)
    assert pairs[0].after == pytest.approx(1.4, abs=0.03)
    assert {one.chain for one in found} == {(0, 1), (0, 1, 2)}


def test_changes_inside_the_noise_are_no_transitions() -> None:
    assert not find_transitions([build_case_model(at(size, 1.0, noise=0.04)) for size in (1000, 4000, 9000)], LEVELS)


def test_a_change_in_steps_is_one_transition() -> None:
    found = find_transitions([build_case_model(at(n, c)) for n, c in ((1000, 1.0), (2000, 1.2), (4000, 1.4))], LEVELS)
    assert [(one.start, one.end) for one in found if one.chain == (0, 1)] == [(1000, 4000)]


def test_processors_are_an_axis_too() -> None:
    cases = [at(4000, 1.4, processors=1), at(4000, 1.0, processors=2)]
    found = [one for one in find_transitions([build_case_model(case) for case in cases], LEVELS) if one.chain == (0, 1)]
    assert [(one.axis, one.start, one.end, one.crossed) for one in found] == [("P", 1, 2, ("a,b: L2 to L1",))]


def test_shared_caches_are_divided_among_those_that_compute() -> None:
    assert [level.bytes for level in LEVELS[2]] == [48e3, 2e6, 32e6]
    assert LEVELS[8][-1].bytes == 16e6


def recorded_models(name: str) -> tuple[ExperimentDocument, list[CaseModel]]:
    document = results.read_results(RECORDED / "measured" / f"{name}.coupling.json")
    return document, [build_case_model(case) for case in results.build_cases(document)]


def test_the_solver_measured_from_the_first_cache_to_memory() -> None:
    """What examples/coupling/adi.yaml showed: the numbers are kept, the claims are computed here."""
    _, models = recorded_models("adi")
    failing = errors_where_summation_fails(models)
    assert sum(one.summation_fails for one in models) >= 3
    choice = select_best_length(models)
    assert choice is not None
    assert 1 < choice.length < 5
    assert failing[choice.length] < failing[1] / 2
    by_size = {one.case.parameters["N"]: one for one in models}
    worst = max(by_size[40].couplings_of_length(2), key=lambda one: one.value.value)
    assert by_size[40].case.chain_label(worst.chain) == "y_solve,z_solve"
    assert worst.verdict == "destructive"
    for size in (64, 96):
        assert not any(one.verdict in ("destructive", "constructive") for one in by_size[size].couplings)
    caches = {1: build_cache_levels({name: CacheRecord(size) for name, size in (("L1", 48 << 10), ("L2", 2 << 20))}, 1)}
    pair = [one for one in find_transitions(models, caches) if one.chain == worst.chain]
    assert [(one.start, one.end) for one in pair] == [(32, 40), (40, 64)]
    assert pair[0].crossed == ("y_solve,z_solve: L2 to memory",)


def test_the_destructive_pair_costs_what_its_fused_version_wins() -> None:
    """Predicted: back to what both kernels take alone. Both were measured in rounds of one experiment."""
    _, models = recorded_models("fused")
    fused, plain = sorted(models, key=lambda one: one.case.parameters["B"])
    (pair,) = plain.couplings
    assert pair.verdict == "destructive"
    assert plain.application is not None
    assert fused.application is not None
    won = plain.application.value - fused.application.value
    assert pair.excess.low <= won <= pair.excess.high
    _, before = recorded_models("pair")
    assert [one.couplings[0].verdict for one in before] == ["no coupling beyond noise"] * 2 + ["destructive"]


def test_unmeasured_chains_are_estimated_from_shorter_ones() -> None:
    known = {(0,): 1.0, (1,): 2.0, (2,): 3.0, (0, 1): 4.0, (1, 2): 5.5}
    assert planning.estimate_excess((0, 1), known) == pytest.approx(1.0)
    assert planning.estimate_excess((0, 1, 2), known) == pytest.approx(1.5)
    assert planning.estimate_excess((2, 0), known) == pytest.approx(4 * 1.5 / 8)  # as other pairs lose
    assert planning.estimate_excess((2, 0), {(0,): 1.0, (2,): 3.0}) == 0.0
    assert planning.estimate_excess((0, 1, 2), {**known, (0, 1, 2): 6.0}) == 0.0


def test_what_is_missing_comes_first_and_the_largest_doubt_leads() -> None:
    case = made_up([1, 1, 10, 10], {2: [1.0, 1.0, 1.0, 1.0]}, noise=0.01)
    times = {chain: series for chain, series in case.samples[SECONDS].items() if chain not in ((0, 1), (2, 3))}
    partial = build_case_model(replace(case, samples={SECONDS: times}))
    assert [one.length for one in partial.predictions] == [1]
    first, second = planning.select_next_chains(partial, 2)[:2]
    assert (first.chain, first.again) == ((2, 3), False)
    assert first.seconds > 5 * second.seconds


def test_a_chain_that_was_chosen_first_brings_the_prediction_nearer_than_one_chosen_last() -> None:
    """On the recorded solver, where summation is far off: with two chains of five, in the order that is proposed."""
    _, models = recorded_models("adi")
    (one,) = [each for each in models if each.case.parameters["N"] == 40]
    assert one.application is not None
    times = one.case.samples[SECONDS]
    without = replace(one.case, samples={SECONDS: {chain: s for chain, s in times.items() if len(chain) < 4}})
    order = [each.chain for each in planning.select_next_chains(build_case_model(without), 4)]
    assert len(order) == 5
    errors = [abs(value / one.application.value - 1) for value in coupling_pages.predict_by_prefix(one.case, 4, order)]
    assert errors[-1] < 0.03 < errors[0]
    forwards, backwards = (coupling_pages.predict_by_prefix(one.case, 4, chains) for chains in (order, order[::-1]))
    best_first, worst_first = (abs(values[2] - forwards[-1]) for values in (forwards, backwards))
    assert best_first <= worst_first


def maker(names: Sequence[str], points: Sequence[Sequence[float]], values: Sequence[Sequence[float]]) -> object:
    """Stands in for another plugin's models: proportional to the first coordinate, 10 % either way."""
    assert names == ("N",)
    slope = float(np.median([np.median(value) / point[0] for point, value in zip(points, values, strict=True)]))
    return lambda point: (slope * point[0], 0.9 * slope * point[0], 1.1 * slope * point[0])


def ahead(text: str, offered: Callable[..., object] | None = maker) -> forecasts.Forecast:
    cases = [at(size, pair) for size, pair in ((1000, 1.0), (2500, 1.0), (4000, 1.4), (5000, 1.4))]
    uses = {"a": ("u",), "b": ("v",), "c": ("w",)}
    sizes = dict.fromkeys("uvw", "8 * N")
    document = ExperimentDocument(
        results.SCHEMA, "toy", ("a", "b", "c"), (), (), uses=uses, arrays=sizes, loop_count="100"
    )
    models = [build_case_model(case) for case in cases]
    return forecasts.compute_forecasts(models, forecasts.parse_targets([text], cases), document, CACHES, offered)[0]


def test_couplings_are_carried_over_where_data_live_in_the_same_caches() -> None:
    """At N = 5050 three kernels of 40 kB fit L1 each and leave it together, as at 5000."""
    one = ahead("N=5050")
    assert one.source is not None
    assert one.source.parameters["N"] == 5000
    assert one.summation == pytest.approx(100 * 4 * 5050, rel=0.02)
    assert one.length == 2
    first = (1.4 * 4.2 + 1.0 * 2) / (4.2 + 2)  # a kernel's couplings by their times: a,b takes 1.4 * 3, c,a 2 …
    second = (1.4 * 4.2 + 1.0 * 3) / (4.2 + 3)
    whole = 100 * 5050 * (first + 2 * second + 1)
    assert one.value == pytest.approx(whole, rel=0.03)
    assert one.low < whole < one.high


def test_nothing_is_carried_across_the_border_of_a_cache() -> None:
    one = ahead("N=9000")
    assert one.source is None
    assert one.value == pytest.approx(one.summation)
    assert "no case was measured whose data live in the same caches" in one.reason


@pytest.mark.parametrize("text", ["N", "M=3", "N=x", "N=0", "N=inf", "=5"])
def test_places_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected values of N, P such as N=64"):
        ahead(text)


def test_without_models_of_kernels_it_says_who_offers_them() -> None:
    with pytest.raises(UsageError, match="which the plugin 'scaling' offers"):
        ahead("N=9000", None)


def test_the_report_holds_what_was_asked_for() -> None:
    document, models = recorded_models("adi")
    made = report.build_report(document, {Metric(SECONDS): models}, {1: build_cache_levels(document.caches, 1)})
    titles = [getattr(part, "title", "") for part in made.parts]
    assert titles[1] == "Measured and predicted seconds"
    assert any(title.startswith("Couplings of a kernel (row) with the next (column)") for title in titles)
    assert any(title.startswith("Where couplings change beyond noise") for title in titles)
    assert "What to measure next" in titles


@pytest.mark.parametrize("name", sorted(coupling_pages.TABLES))
def test_the_page_holds_the_tables_of_the_recorded_experiments(name: str) -> None:
    assert coupling_pages.TABLES[name]() in coupling_pages.PAGE.read_text(encoding="utf-8")


def test_one_chain_of_the_right_length_is_most_of_the_way() -> None:
    """Where summation fails: the first of five chains, as proposed, brings the error below a third."""
    for one in recorded_models("adi")[1]:
        if one.summation_fails:
            assert one.application is not None
            values = coupling_pages.predict_by_prefix(one.case, 4, coupling_pages.proposed(one, 4))
            errors = [abs(value / one.application.value - 1) for value in values]
            assert errors[1] < errors[0] / 3


def test_at_other_sizes_measured_afterwards_it_holds_as_well() -> None:
    """Chains of four, as chosen before: where summation fails, less than half of its mean error."""
    _, models = recorded_models("held")
    failing = [one for one in models if one.summation_fails]
    assert len(failing) >= 3
    errors = {
        length: np.mean(
            [
                abs(each.error.value)
                for one in failing
                for each in one.predictions
                if each.length == length and each.error
            ]
        )
        for length in (1, 4)
    }
    assert errors[4] < errors[1] / 2
