"""Which chain length predicts best, found by leaving out what is predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from advisor_coupling import algebra
from advisor_coupling.cases import SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.model.records import FloatArray
    from advisor_coupling.cases import Case
    from advisor_coupling.model import CaseModel

Held = Literal["cases", "rounds"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen length (1: summation) and why.

    ``errors`` are mean sizes of the relative error by length, and ``doubts`` their standard errors. ``left_out`` says
    what was predicted without being used to choose: other cases, or rounds where there is one case; ``honest`` is the
    mean error of what the rule picks when it does not see what it predicts. The shortest length within one standard
    error of the smallest error is chosen: longer chains cost more runs.
    """

    length: int
    errors: Mapping[int, float]
    doubts: Mapping[int, float]
    honest: float
    left_out: Held


def best_length(models: Sequence[CaseModel]) -> Choice | None:
    """Return the best length for these cases, None where no application was measured or only isolated kernels were.

    The chain of all kernels is no candidate: it is the loop itself.
    """
    known = [one for one in models if one.application is not None]
    lengths = _candidates(known)
    if len(lengths) < 2:
        return None
    if len(known) > 1:
        errors = np.array([[_error(one, length) for length in lengths] for one in known])
        return _choice(errors, lengths, "cases")
    errors = _over_rounds(known[0].case, lengths)
    return _choice(errors, lengths, "rounds") if len(errors) > 1 else None


def where_summation_fails(models: Sequence[CaseModel]) -> dict[int, float]:
    """Return the mean error by length over the cases in which summation is wrong beyond noise, or nothing."""
    failing = [one for one in models if one.summation_fails]
    return {length: float(np.mean([_error(one, length) for one in failing])) for length in _candidates(failing)}


def _candidates(models: Sequence[CaseModel]) -> tuple[int, ...]:
    if not models:
        return ()
    shared = set.intersection(*({one.length for one in model.predictions} for model in models))
    return tuple(sorted(length for length in shared if length < models[0].case.size))


def _error(model: CaseModel, length: int) -> float:
    found = next(one.error for one in model.predictions if one.length == length)
    return abs(found.value) if found else float("nan")


def _choice(errors: FloatArray, lengths: tuple[int, ...], left_out: Held) -> Choice:
    """Choose by errors (cases or rounds, lengths)."""
    means = errors.mean(axis=0)
    doubts = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    unseen = [errors[row, _pick(np.delete(errors, row, axis=0))] for row in range(len(errors))]
    return Choice(
        lengths[_pick(errors)],
        dict(zip(lengths, map(float, means), strict=True)),
        dict(zip(lengths, map(float, doubts), strict=True)),
        float(np.mean(unseen)),
        left_out,
    )


def _pick(errors: FloatArray) -> int:
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


def _over_rounds(case: Case, lengths: tuple[int, ...]) -> FloatArray:
    """Return (rounds, lengths): the error against a round's application, predicted from the other rounds."""
    actual = case.application[SECONDS]
    rows = [row for row in range(len(actual)) if np.isfinite(actual[row])]
    errors = [[_without(case, row, length) for length in lengths] for row in rows if len(rows) > 1]
    return np.abs(np.array(errors)) if errors else np.empty((0, len(lengths)))


def _without(case: Case, row: int, length: int) -> float:
    def middle(series: FloatArray) -> float:
        kept = np.delete(series, row) if row < len(series) > 1 else series
        return float(np.nanmedian(kept))

    times = case.samples[SECONDS]
    alone = np.array([middle(times[(index,)]) for index in range(case.size)])
    coefficient = np.ones(case.size)
    if length > 1:
        member = algebra.membership(case.size, length)
        together = np.array([middle(times[chain]) for chain in algebra.windows(case.size, length)])
        coefficient = algebra.coefficients(algebra.couplings(alone, together, member), together, member)
    once = case.once.get(SECONDS)
    rest = middle(once) if once is not None and len(once) else 0.0
    total = rest + case.loop_count * float(algebra.predicted(coefficient, alone))
    return float(algebra.relative_error(total, float(case.application[SECONDS][row])))
