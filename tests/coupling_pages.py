"""The tables about coupling in ``docs/validation.md``, from the recorded experiments.

``PYTHONPATH=plugins python tests/coupling_pages.py`` writes them anew.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coupling_data import RECORDED

from advisor_coupling import planning, results
from advisor_coupling.cases import SECONDS
from advisor_coupling.length_selection import errors_where_summation_fails, select_best_length
from advisor_coupling.model import build_case_model

if TYPE_CHECKING:
    from collections.abc import Collection

    from advisor_coupling.cases import Chain, CouplingCase
    from advisor_coupling.intervals import Estimate
    from advisor_coupling.model import CaseModel

PAGE = Path(__file__).parents[1] / "docs" / "validation.md"


def models(name: str) -> list[CaseModel]:
    """The recorded cases of an experiment."""
    document = results.read_results(RECORDED / "measured" / f"{name}.coupling.json")
    return [build_case_model(case) for case in results.build_cases(document)]


def solver() -> str:
    """The solver over its sizes: measured time, errors of summation and of each length, the largest pair."""
    found = models("adi")
    head = "| N | data | measured | summation | 2 kernels | 3 kernels | 4 kernels | largest claim of a pair |"
    lines = [head, "|---|---|---|---|---|---|---|---|", *map(_size, found)]
    failing, choice = errors_where_summation_fails(found), select_best_length(found)
    assert choice
    means = " | ".join(f"{100 * choice.errors[length]:.1f} %" for length in (1, 2, 3, 4))
    worst = " | ".join(f"{100 * failing[length]:.1f} %" for length in (1, 2, 3, 4))
    lines.append(f"| mean size of the error | | | {means} | chosen: {choice.length} kernels |")
    sizes = ", ".join(f"{one.case.parameters['N']:g}" for one in found if one.summation_fails)
    lines.append(f"| where summation fails: {sizes} | | | {worst} | |")
    return "\n".join(lines)


def _size(one: CaseModel) -> str:
    size = one.case.working_set(tuple(range(one.case.size))) or 0.0
    errors = [prediction.error for prediction in one.predictions if prediction.length < one.case.size]
    shown = " | ".join(_percent(error) for error in errors if error)
    claimed = [pair for pair in one.couplings_of_length(2) if pair.verdict in ("destructive", "constructive")]
    largest = max(claimed, key=lambda pair: abs(pair.excess.value), default=None)
    words = "none"
    if largest:
        value = largest.value
        words = f"{one.case.chain_label(largest.chain)} {value.value:.2f} ({value.low:.2f} to {value.high:.2f})"
    assert one.application
    measured = f"{1e3 * one.application.value:.1f} ms"
    return f"| {one.case.parameters['N']:g} | {size / 1024:.0f} KiB | {measured} | {shown} | {words} |"


def _percent(error: Estimate) -> str:
    return f"{100 * error.value:+.1f} ({100 * error.low:+.1f} to {100 * error.high:+.1f})"


def pair() -> str:
    """The pair that was built to be destructive, by itself and block by block."""
    lines = ["| program | measured | sum of both alone | coupling | costs |", "|---|---|---|---|---|"]
    for name in ("pair", "fused"):
        for one in models(name):
            (both,) = one.couplings
            assert one.application
            plain = one.predictions[0].value
            cells = (_ms(one.application), _ms(plain), _plain(both.value), _ms(both.excess))
            lines.append(f"| {name}, {one.case.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ms(one: Estimate) -> str:
    return f"{1e3 * one.value:.1f} ms ({1e3 * one.low:.1f} to {1e3 * one.high:.1f})"


def _plain(one: Estimate) -> str:
    return f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def thrift() -> str:
    """Errors of the prediction as chains of four are measured one after the other, in the proposed order."""
    lines = ["| N | none | 1 | 2 | 3 | 4 | all 5 |", "|---|---|---|---|---|---|---|"]
    for one in models("adi"):
        if one.summation_fails:
            assert one.application
            values = predict_by_prefix(one.case, 4, proposed(one, 4))
            errors = " | ".join(f"{100 * (value / one.application.value - 1):+.1f} %" for value in values)
            lines.append(f"| {one.case.parameters['N']:g} | {errors} |")
    return "\n".join(lines)


def held() -> str:
    """Other sizes, measured when the method was settled: summation, chains of four, and the first of those chains."""
    lines = ["| N | measured | summation | 4 kernels | one chain of 4, the others estimated |", "|---|---|---|---|---|"]
    for one in models("held"):
        assert one.application
        errors = [prediction.error for prediction in one.predictions]
        shown = " | ".join(_percent(error) for error in errors if error)
        first = predict_by_prefix(one.case, 4, proposed(one, 4)[:1])[1]
        only = f"{100 * (first / one.application.value - 1):+.1f}"
        lines.append(f"| {one.case.parameters['N']:g} | {_ms(one.application)} | {shown} | {only} |")
    return "\n".join(lines)


def predict_by_prefix(case: CouplingCase, length: int, order: Collection[Chain]) -> tuple[float, ...]:
    """The predictions from the isolated kernels and the first 0, 1, 2 … chains of ``order``."""
    measured = planning.compute_medians(case)
    known = {chain: value for chain, value in measured.items() if len(chain) == 1}
    found = [planning.predict_partial(case, length, known)]
    for chain in order:
        known[chain] = measured[chain]
        found.append(planning.predict_partial(case, length, known))
    return tuple(found)


def proposed(one: CaseModel, length: int) -> list[Chain]:
    """The order in which chains are proposed, each when those before it were measured and no others."""
    times = one.case.samples[SECONDS]
    known = {chain: series for chain, series in times.items() if len(chain) == 1}
    order: list[Chain] = []
    while len(order) < one.case.size:
        so_far = build_case_model(replace(one.case, samples={SECONDS: known}))
        order.append(next(each.chain for each in planning.select_next_chains(so_far, length) if not each.again))
        known = {**known, order[-1]: times[order[-1]]}
    return order


TABLES = {"coupling-solver": solver, "coupling-pair": pair, "coupling-thrift": thrift, "coupling-held": held}


def main() -> None:
    """Write the tables between their marks."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        marks = rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)"
        text = re.sub(marks, lambda found, made=table: f"{found[1]}{made()}\n{found[2]}", text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
