"""Predictions where nothing was measured: models of the kernels, composed with couplings that still hold there.

Formula 3 of the source with analytical models E_k. A coupling is carried over from the nearest case in which every
kernel's data, and those of all together, live in the same caches; across such a border it may change, and nothing is
carried over. So does a kernel's time jump: its model is fitted to cases where its data live in the same cache, if there
are three of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from advisor.model.errors import UsageError
from advisor.support.expressions import Expression
from advisor_coupling import algebra, planning, transitions
from advisor_coupling.cases import SECONDS
from advisor_coupling.length_selection import select_best_length

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from advisor.model.records import FloatArray
    from advisor_coupling.cases import CouplingCase
    from advisor_coupling.model import CaseModel
    from advisor_coupling.results import CacheRecord, ExperimentDocument

    #: From the coordinates of a point to value, low and high end.
    Predict = Callable[[Sequence[float]], tuple[float, float, float]]


#: From so many cases on, those in which a kernel's data live in the same cache are enough for its model.
_FEWEST_ALIKE: Final = 3


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the loop takes at a place that was not measured, seconds; ``source`` is the case the couplings come from.

    Without a source ``value`` is the plain sum, and ``reason`` says why.
    """

    case: CouplingCase
    summation: float
    value: float
    low: float
    high: float
    length: int
    source: CouplingCase | None
    reason: str


def parse_targets(texts: Sequence[str], cases: Sequence[CouplingCase]) -> tuple[dict[str, float], ...]:
    """Return the places of ``N=64 P=4``; what is not named is taken from the last case. ``UsageError`` for mistakes."""
    last = cases[-1]
    usual = {**last.parameters, transitions.PROCESSORS: float(last.processors)}
    return tuple({**usual, **_parse_target(text, tuple(usual))} for text in texts)


def _parse_target(text: str, known: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in text.split():
        name, equals, value = part.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            equals = ""
        if not equals or name not in known or not math.isfinite(found[name]) or found[name] <= 0:
            raise UsageError(f"--predict: '{part}', expected values of {', '.join(known)} such as {known[0]}=64")
    return found


def compute_forecasts(
    models: Sequence[CaseModel],
    places: Sequence[Mapping[str, float]],
    document: ExperimentDocument,
    caches: Mapping[str, CacheRecord],
    maker: Callable[..., object] | None,
) -> tuple[Forecast, ...]:
    """Return the predictions at these places; ``UsageError`` if they need kernel models that no plugin offers.

    ``maker`` is called as ``maker(names, points, values)`` for one kernel: names of the coordinates, (n, m) points and
    for each the repeated seconds; it returns what takes a point and returns seconds, low and high.
    """
    if not places:
        return ()
    if maker is None and not set(document.kernels) <= document.formulas.keys():
        raise UsageError("--predict needs models of the kernels, which the plugin 'scaling' offers; it is not there")
    cases = [model.case for model in models]
    names = transitions.find_axes(cases)
    if not names:
        raise UsageError("--predict needs measurements at several sizes or numbers of processors")
    choice = select_best_length(models)
    length = choice.length if choice else max(cases[0].measured_lengths(), default=1)
    wanted = [_make_target_case(place, document, cases) for place in places]
    return tuple(
        _compute_forecast(
            models, case, names, _make_kernel_models(document, maker, names, cases, case, caches), length, caches
        )
        for case in wanted
    )


def _make_kernel_models(
    document: ExperimentDocument,
    maker: Callable[..., object] | None,
    names: Sequence[str],
    cases: Sequence[CouplingCase],
    target: CouplingCase,
    caches: Mapping[str, CacheRecord],
) -> list[Predict]:
    """Return a model of each kernel, good for the target: its own formula, else one fitted to what was measured."""
    found = []
    for index in range(target.size):
        own = evaluate_formulas(
            document,
            {**target.parameters, transitions.PROCESSORS: float(target.processors)},
            target.kernels[index:][:1],
        )
        if own is not None or maker is None:
            value = float(own[0]) if own is not None else float("nan")
            found.append(_constant_model(value))
            continue
        alike = [case for case in cases if _find_home(case, index, caches) == _find_home(target, index, caches)]
        used = alike if len(alike) >= _FEWEST_ALIKE else cases
        points = [[_case_coordinate(case, name) for name in names] for case in used]
        series = [case.samples[SECONDS][(index,)] for case in used]
        values = [[float(value) for value in one if np.isfinite(value)] for one in series]
        found.append(cast("Predict", maker(tuple(names), points, values)))
    return found


def _constant_model(value: float) -> Predict:
    """Return a model that says the same of every point, since its formula was evaluated there."""
    return lambda _: (value, value, value)


def _find_home(case: CouplingCase, index: int, caches: Mapping[str, CacheRecord]) -> str | None:
    size = case.working_set((index,))
    return (
        None if size is None else transitions.find_home(size, transitions.build_cache_levels(caches, case.processors))
    )


def _case_coordinate(case: CouplingCase, name: str) -> float:
    return float(case.processors) if name == transitions.PROCESSORS else case.parameters[name]


def _make_target_case(
    place: Mapping[str, float], document: ExperimentDocument, cases: Sequence[CouplingCase]
) -> CouplingCase:
    """Return a case without measurements at that place."""
    counts = {case.loop_count for case in cases}
    if document.loop_count:
        count = int(Expression.parse(document.loop_count).evaluate_number(place))
    elif len(counts) == 1:
        count = counts.pop()
    else:
        raise UsageError("the results do not tell how often the loop runs elsewhere (loop_count)")
    size = {name: Expression.parse(text).evaluate_number(place) for name, text in document.arrays.items()}
    parameters = {name: value for name, value in place.items() if name != transitions.PROCESSORS}
    processors = round(place[transitions.PROCESSORS])
    uses = cases[0].uses if set(size) >= {array for arrays in cases[0].uses.values() for array in arrays} else {}
    return replace(
        cases[0], parameters=parameters, processors=processors, loop_count=count, samples={}, application={}, once={},
        data_bytes=size, uses=uses,
    )  # fmt: skip


def _compute_forecast(
    models: Sequence[CaseModel],
    case: CouplingCase,
    names: Sequence[str],
    kernels: Sequence[Predict],
    length: int,
    caches: Mapping[str, CacheRecord],
) -> Forecast:
    point = [_case_coordinate(case, name) for name in names]
    table = np.array([kernel(point) for kernel in kernels])
    source, reason = _find_nearest_case([model.case for model in models], case, names, length, caches)
    coefficient = np.ones(case.size) if source is None else compute_coefficients(source, length)
    rest = planning.once_s(source or models[-1].case)
    value, low, high = (rest + case.loop_count * float(coefficient @ table[:, column]) for column in range(3))
    plain = rest + case.loop_count * float(table[:, 0].sum())
    return Forecast(case, plain, value, low, high, length, source, reason)


def _find_nearest_case(
    cases: Sequence[CouplingCase],
    target: CouplingCase,
    names: Sequence[str],
    length: int,
    caches: Mapping[str, CacheRecord],
) -> tuple[CouplingCase | None, str]:
    """Return the nearest case (by ratios of coordinates) whose data live where those of the target do, and why."""

    def case_distance(case: CouplingCase) -> float:
        return sum(
            abs(math.log(_case_coordinate(case, name) / _case_coordinate(target, name)))
            for name in names
            if _case_coordinate(case, name) > 0
        )

    usable = sorted((case for case in cases if length == 1 or case.has_all_chains(SECONDS, length)), key=case_distance)
    wanted = _find_homes(target, caches)
    if wanted is None:
        return (usable[0] if usable else None), "nearest case; where data live is not known"
    for case in usable:
        if _find_homes(case, caches) == wanted:
            return case, "data live in the same caches"
    return None, "no case was measured whose data live in the same caches: plain sum"


def _find_homes(case: CouplingCase, caches: Mapping[str, CacheRecord]) -> tuple[str, ...] | None:
    return transitions.find_homes(
        case, tuple(range(case.size)), transitions.build_cache_levels(caches, case.processors)
    )


@dataclass(frozen=True, slots=True)
class FormulaPrediction:
    """What own formulas say of the application at one case, seconds: added up, and composed by couplings."""

    case: CouplingCase
    summation: float
    composed: float
    length: int
    measured: float | None


def evaluate_formulas(
    document: ExperimentDocument, values: Mapping[str, float], kernels: Sequence[str]
) -> FloatArray | None:
    """Return E_k (kernels,) at these parameters and ``P``, seconds of one pass; None where a kernel has no formula."""
    if not set(kernels) <= document.formulas.keys():
        return None
    return np.array([Expression.parse(document.formulas[name]).evaluate_number(values) for name in kernels])


def predict_by_formulas(
    models: Sequence[CaseModel], document: ExperimentDocument, length: int
) -> tuple[FormulaPrediction, ...]:
    """Return what the formulas predict at the cases that were measured with all chains of that length."""
    found = []
    for model in models:
        case = model.case
        values = {**case.parameters, transitions.PROCESSORS: float(case.processors)}
        alone = evaluate_formulas(document, values, case.kernels)
        if alone is None or (length > 1 and not case.has_all_chains(SECONDS, length)):
            continue
        rest = planning.once_s(case)
        composed = float(compute_coefficients(case, length) @ alone)
        measured = model.application.value if model.application else None
        found.append(
            FormulaPrediction(
                case, rest + case.loop_count * float(alone.sum()), rest + case.loop_count * composed, length, measured
            )
        )
    return tuple(found)


def compute_coefficients(case: CouplingCase, length: int) -> FloatArray:
    """Return a_j (kernels,) of a case that was measured with all chains of that length (formula 3)."""
    if length == 1:
        return np.ones(case.size)
    known = planning.compute_medians(case)
    member = algebra.build_membership(case.size, length)
    alone = np.array([known[(index,)] for index in range(case.size)])
    together = np.array([known[chain] for chain in algebra.chain_windows(case.size, length)])
    return algebra.compute_coefficients(algebra.compute_couplings(alone, together, member), together, member)
