"""Which chains lose and why, orders that win, and formulas of kernels: on cases whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from coupling_data import made_up

from advisor_coupling import arrangements, forecasts, losses
from advisor_coupling.model import build_case_model
from advisor_coupling.results import CacheRecord, ExperimentDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor_coupling.cases import CouplingCase

DOCUMENT = ExperimentDocument("gapwatch/coupling/1", "toy", ("a", "b", "c"), (), ())


def lost_chains(case: CouplingCase, document: ExperimentDocument = DOCUMENT) -> list[tuple[str, float]]:
    found = losses.compute_losses(document, [build_case_model(case)], {}, 1)
    assert found is not None
    return [(case.chain_label(one.coupling.chain), round(one.excess.value, 3)) for one in found.chains]


def test_the_shortest_chain_that_shows_a_loss_stands_for_it() -> None:
    alone = [0.01, 0.01, 0.01]
    pair = made_up(alone, {2: [1.5, 1.0, 1.0], 3: [4 / 3]}, noise=0.002)
    assert [name for name, _ in lost_chains(pair)] == ["a,b"]
    assert lost_chains(pair)[0][1] == pytest.approx(100 * 0.01, rel=0.05)


def test_a_loss_that_only_three_kernels_show_is_found() -> None:
    case = made_up([0.01, 0.01, 0.01], {2: [1.0, 1.0, 1.0], 3: [1.5]}, noise=0.002)
    ((name, seconds),) = lost_chains(case)
    assert name == "a,b,c"
    assert seconds == pytest.approx(100 * 0.015, rel=0.05)


def test_where_the_whole_loop_does_not_lose_no_pair_does() -> None:
    assert lost_chains(made_up([0.01, 0.01, 0.01], {2: [1.3, 1.0, 1.0], 3: [0.95]}, noise=0.002)) == []


def test_pairs_that_share_a_kernel_never_explain_more_than_the_loop_loses() -> None:
    case = made_up([0.01, 0.01, 0.01], {2: [1.5, 1.5, 1.5], 3: [1.5]}, noise=0.002)
    assert sum(seconds for _, seconds in lost_chains(case)) == pytest.approx(100 * 0.015, rel=0.05)


def test_where_only_pairs_were_run_the_program_itself_stands_for_the_loop() -> None:
    """Each of four neighbouring pairs loses a fifth, the program two fifths: two pairs side by side explain half."""
    pairs = made_up([0.01] * 4, {2: [1.2] * 4}, noise=0.002)
    slow = replace(pairs, application={"seconds": 1.4 * pairs.application["seconds"]})
    ((name, seconds),) = lost_chains(slow)
    assert name == "a,b,c,d"
    assert seconds == pytest.approx(100 * 0.016, rel=0.05)
    assert lost_chains(pairs) == []  # as fast as its kernels by themselves


def worst_of(case: CouplingCase, **more: Any) -> losses.ChainLoss:  # noqa: ANN401
    found = losses.compute_losses(replace(DOCUMENT, **more), [build_case_model(case)], {}, 1)
    assert found is not None
    assert found.worst is not None
    return found.worst


@pytest.mark.parametrize(
    ("kernel_KiB", "cache"), [(12.0, None), (20.0, "L1"), (27.8, "L1"), (31.9, "L1"), (60.0, None), (700.0, "L2")]
)
def test_the_cache_is_the_one_that_holds_most_of_each_kernel_and_not_both(kernel_KiB: float, cache: str | None) -> None:
    case = replace(
        made_up([0.01, 0.01], {2: [1.4]}, noise=0.002),
        data_bytes={"u": kernel_KiB * 1024, "v": kernel_KiB * 1024}, uses={"a": ("u",), "b": ("v",)},
    )  # fmt: skip
    caches = {"L1": CacheRecord(32768), "L2": CacheRecord(1048576)}
    worst = worst_of(case, kernels=("a", "b"), caches=caches)
    assert worst.cache == cache
    assert worst.has_no_reason == (cache is None)


def with_metric(case: CouplingCase, alone: Sequence[float], together: float) -> CouplingCase:
    random = np.random.default_rng(5)

    def repeats(value: float) -> Any:  # noqa: ANN401
        return value * np.exp(0.002 * random.standard_normal(9))

    values = {(0,): repeats(alone[0]), (1,): repeats(alone[1]), (0, 1): repeats(together)}
    return replace(
        case, samples={**case.samples, "extra": values}, application={**case.application, "extra": np.ones(9)}
    )


def test_metrics_tell_imbalance_messages_and_misses_apart() -> None:
    case = made_up([0.01, 0.01], {2: [1.4]}, noise=0.002)  # loses 8 ms a pass
    waits = with_metric(case, [0.001, 0.001], 0.009)
    imbalance = worst_of(waits, kernels=("a", "b"), reasons={"extra": "imbalance"})
    assert imbalance.is_mainly("imbalance")
    assert imbalance.reasons["imbalance"].value == pytest.approx(100 * 0.007, rel=0.05)
    messages = worst_of(waits, kernels=("a", "b"), reasons={"extra": "messages"})
    assert messages.is_mainly("messages")
    assert not messages.is_mainly("imbalance")
    misses = worst_of(with_metric(case, [1000, 1000], 5000), kernels=("a", "b"), reasons={"extra": "cache"})
    assert misses.cache == "extra"
    same = worst_of(with_metric(case, [1000, 1000], 2000), kernels=("a", "b"), reasons={"extra": "cache"})
    assert same.has_no_reason


def test_the_best_order_is_found_and_keeps_what_has_to_run_before() -> None:
    """Neighbours a,b and c,d lose half of their time, all other pairs nothing."""
    case = made_up([0.01] * 4, {2: [1.5, 1.0, 1.5, 1.0]}, noise=0.002)
    times = dict(case.samples["seconds"])
    times |= {(0, 2): times[0,] + times[2,], (1, 3): times[1,] + times[3,]}
    case = replace(case, samples={"seconds": times})
    best = arrangements.find_best_order(case, {})
    assert best is not None
    kernels = "".join(case.kernels[index] for index in best.order)
    neighbours = {frozenset(pair) for pair in zip(kernels, kernels[1:] + kernels[0], strict=True)}
    assert frozenset("ab") not in neighbours
    assert frozenset("cd") not in neighbours
    assert best.estimated == ()
    assert best.saved.value == pytest.approx(100 * 0.012, rel=0.05)  # a_k of the present order is 1.3, of that one 1
    assert arrangements.find_best_order(case, {"b": ("a",), "c": ("b",), "d": ("c",)}) is None


def test_a_pair_that_was_not_measured_widens_the_doubt() -> None:
    case = made_up([0.01] * 4, {2: [1.5, 1.0, 1.5, 1.0]}, noise=0.002)
    best = arrangements.find_best_order(case, {})
    assert best is None or best.estimated


def test_own_formulas_are_composed_by_the_couplings() -> None:
    case = replace(made_up([0.01, 0.02], {2: [1.5]}, noise=0.001), parameters={"N": 100.0})
    document = replace(DOCUMENT, kernels=("a", "b"), formulas={"a": "1e-4 * N", "b": "2e-6 * N^2"})
    (found,) = forecasts.predict_by_formulas([build_case_model(case)], document, 2)
    assert found.summation == pytest.approx(100 * 0.03)
    assert found.composed == pytest.approx(100 * 0.045, rel=0.01)
    assert found.measured == pytest.approx(100 * 0.045, rel=0.01)
    assert forecasts.predict_by_formulas([build_case_model(case)], replace(document, formulas={"a": "1"}), 2) == ()
