"""Which chain length predicts best, found by leaving out what is predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from advisor_coupling import algebra
from advisor_coupling.cases import SECONDS, CouplingCase

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_coupling.model import CaseModel

HeldOutUnit = Literal["cases", "rounds"]


@dataclass(frozen=True, slots=True)
class LengthChoice:
    """The chosen length (1: summation) and why.

    ``errors`` are mean sizes of the relative error by length, and ``standard_errors`` their standard errors.
    ``left_out`` says what was predicted without being used to choose: other cases, or rounds where there is one case;
    ``cross_validated_error`` is the mean error of what the rule picks when it does not see what it predicts. The
    shortest length within one standard error of the smallest error is chosen: longer chains cost more runs.
    """

    length: int
    errors: Mapping[int, float]
    standard_errors: Mapping[int, float]
    cross_validated_error: float
    left_out: HeldOutUnit


def select_best_length(models: Sequence[CaseModel]) -> LengthChoice | None:
    """Return the best length for these cases, None where no application was measured or only isolated kernels were.

    The chain of all kernels is no candidate: it is the loop itself.
    """
    known = [model for model in models if model.application is not None]
    lengths = _candidate_lengths(known)
    if len(lengths) < 2:
        return None
    if len(known) > 1:
        errors = np.array([[_prediction_error(one, length) for length in lengths] for one in known])
        return _choose_length(errors, lengths, "cases")
    errors = _errors_over_rounds(known[0].case, lengths)
    return _choose_length(errors, lengths, "rounds") if len(errors) > 1 else None


def errors_where_summation_fails(models: Sequence[CaseModel]) -> dict[int, float]:
    """Return the mean error by length over the cases in which summation is wrong beyond noise, or nothing."""
    failing = [model for model in models if model.summation_fails]
    return {
        length: float(np.mean([_prediction_error(one, length) for one in failing]))
        for length in _candidate_lengths(failing)
    }


def _candidate_lengths(models: Sequence[CaseModel]) -> tuple[int, ...]:
    if not models:
        return ()
    shared = set.intersection(*({prediction.length for prediction in model.predictions} for model in models))
    return tuple(sorted(length for length in shared if length < models[0].case.size))


def _prediction_error(model: CaseModel, length: int) -> float:
    found = next(prediction.error for prediction in model.predictions if prediction.length == length)
    return abs(found.value) if found else float("nan")


def _choose_length(errors: FloatArray, lengths: tuple[int, ...], left_out: HeldOutUnit) -> LengthChoice:
    """Choose by errors (cases or rounds, lengths)."""
    means = errors.mean(axis=0)
    doubts = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    unseen = [errors[row, _pick_length(np.delete(errors, row, axis=0))] for row in range(len(errors))]
    return LengthChoice(
        lengths[_pick_length(errors)],
        dict(zip(lengths, map(float, means), strict=True)),
        dict(zip(lengths, map(float, doubts), strict=True)),
        float(np.mean(unseen)),
        left_out,
    )


def _pick_length(errors: FloatArray) -> int:
    """Return the first length within one standard error of the best; of one row simply the best.

    The doubt is that of the difference between the two lengths, which were measured together.
    """
    best = int(np.argmin(errors.mean(axis=0)))
    if len(errors) < 2:
        return best
    for column in range(best):
        difference = errors[:, column] - errors[:, best]
        if difference.mean() <= difference.std(ddof=1) / np.sqrt(len(errors)):
            return column
    return best


def _errors_over_rounds(case: CouplingCase, lengths: tuple[int, ...]) -> FloatArray:
    """Return (rounds, lengths): the error against a round's application, predicted from the other rounds."""
    actual = case.application[SECONDS]
    rows = [row for row in range(len(actual)) if np.isfinite(actual[row])]
    errors = [[_error_without_round(case, row, length) for length in lengths] for row in rows if len(rows) > 1]
    return np.abs(np.array(errors)) if errors else np.empty((0, len(lengths)))


def _error_without_round(case: CouplingCase, row: int, length: int) -> float:
    def median_without(series: FloatArray) -> float:
        kept = np.delete(series, row) if row < len(series) > 1 else series
        return float(np.nanmedian(kept))

    times = case.samples[SECONDS]
    alone = np.array([median_without(times[(index,)]) for index in range(case.size)])
    coefficient = np.ones(case.size)
    if length > 1:
        member = algebra.build_membership(case.size, length)
        together = np.array([median_without(times[chain]) for chain in algebra.chain_windows(case.size, length)])
        coefficient = algebra.compute_coefficients(algebra.compute_couplings(alone, together, member), together, member)
    once = case.once.get(SECONDS)
    rest = median_without(once) if once is not None and len(once) else 0.0
    total = rest + case.loop_count * float(algebra.predict_value(coefficient, alone))
    return float(algebra.relative_error(total, float(case.application[SECONDS][row])))
