"""Where to measure next: the run that would narrow a prediction most for what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling import engine, forecasts, terms
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_scaling.engine import FittedModels
    from advisor_scaling.study import ScalingStudy

#: A run may cost that many times the processor seconds of the dearest one so far.
DEARER: Final = 16.0


@dataclass(frozen=True, slots=True)
class NextRun:
    """A run at ``point`` (m,) that takes ``seconds``; ``narrowed`` (0 to 1) is what it leaves of the standard error."""

    point: tuple[float, ...]
    seconds: float
    narrowed: float


def rank_next_runs(
    study: ScalingStudy, fits: FittedModels, series: int, target: Sequence[float]
) -> tuple[NextRun, ...]:
    """Return runs that were not made yet, the most useful for the prediction at ``target`` (m,) first.

    Useful is what is expected to be left of the variance of the prediction, both within each sum of terms and between
    them, when the run has given the value that one of them says (each in turn, weighted by its probability).
    """
    candidates = _candidate_points(study, target)
    if not len(candidates):
        return ()
    mean, error = forecasts.compute_sums(fits, candidates)
    value = forecasts.compute_forecast(fits, candidates).value[series]
    allowed = (
        _processor_seconds(study, candidates, value)
        <= DEARER * _processor_seconds(study, study.points, fits.averaged.mean[series]).max()
    )
    after = _variance_after(fits, series, candidates, np.asarray(target, dtype=float)[None, :], mean, error)
    runs = [
        NextRun(tuple(candidates[at].tolist()), float(value[at]), float(np.sqrt(after[at])))
        for at in np.flatnonzero(allowed)
    ]  # fmt: skip
    return tuple(sorted(runs, key=lambda run: run.narrowed))


def _candidate_points(study: ScalingStudy, target: Sequence[float]) -> FloatArray:
    """Return points beyond, between and at measured values (c, m), those measured already left out."""
    axes = []
    for axis, name in enumerate(study.parameters):
        known = np.unique(study.points[:, axis])
        step = known[-1] / known[-2]
        more = {known[-1] * step, known[-1] * step**2, known[0] / step, float(np.sqrt(known[-1] * target[axis]))}
        whole = {float(max(np.rint(value), 1.0)) for value in more} if (known == np.rint(known)).all() else more
        if PROCESSORS.fullmatch(name):
            whole = {2.0 ** round(np.log2(value)) for value in whole} if (np.log2(known) % 1 == 0).all() else whole
        axes.append(sorted({*known.tolist(), *whole}))
    measured = {tuple(point) for point in study.points.tolist()}
    return np.array([point for point in product(*axes) if point not in measured])


def _processor_seconds(study: ScalingStudy, points: FloatArray, seconds: FloatArray) -> FloatArray:
    """Return processor seconds (c,)."""
    many = [axis for axis, name in enumerate(study.parameters) if PROCESSORS.fullmatch(name)]
    return np.asarray(seconds * np.prod(points[:, many], axis=1))


def _variance_after(
    fits: FittedModels, series: int, candidates: FloatArray, target: FloatArray, mean: FloatArray, error: FloatArray
) -> FloatArray:  # fmt: skip
    """Return the expected variance at the target after a run at each candidate (c,), as a share of today's."""
    shares = fits.candidates.probability[series]
    said, doubt = (each[series, :, 0] for each in forecasts.compute_sums(fits, target))
    today = _mixture_variance(shares, said, doubt**2)
    at, spread = mean[series], error[series]
    noise = (fits.candidates.sigma[series, :, None] * at) ** 2
    share_of_run = _compute_covariance(fits, series, candidates, target) ** 2 / np.maximum(spread**2 + noise, 1e-300)
    within = np.maximum(doubt[:, None] ** 2 - share_of_run, 0.0)
    width = np.sqrt(spread**2 + noise)
    apart = (at[None, :, :] - at[:, None, :]) / np.maximum(width[None, :, :], 1e-300)
    likely = shares[None, :, None] * np.exp(-0.5 * apart**2) / np.maximum(width[None, :, :], 1e-300)
    weights = likely / np.maximum(likely.sum(axis=1, keepdims=True), 1e-300)
    center = (weights * said[None, :, None]).sum(axis=1)
    variance = (weights * (within[None] + (said[None, :, None] - center[:, None, :]) ** 2)).sum(axis=1)
    return np.asarray((shares[:, None] * variance).sum(axis=0) / max(today, 1e-300))


def _mixture_variance(shares: FloatArray, mean: FloatArray, variance: FloatArray) -> float:
    center = float((shares * mean).sum())
    return float((shares * (variance + (mean - center) ** 2)).sum())


def _compute_covariance(fits: FittedModels, series: int, points: FloatArray, target: FloatArray) -> FloatArray:
    """Return the covariance of what each sum says at ``points`` and at the target: (s, c)."""
    used = fits.candidates.terms[series] >= 0
    picked = forecasts.factors_of_sums(fits)[series]
    here = engine.compute_compounds(terms.build_tables(fits.libraries, points), picked) * used[..., None]
    there = engine.compute_compounds(terms.build_tables(fits.libraries, target), picked)[..., 0] * used
    return np.asarray(np.einsum("stc,stu,su->sc", here, fits.candidates.covariance[series], there))


def format_command(study: ScalingStudy, run: NextRun) -> str:
    """Return the command line that makes the run and notes its parameters beside what it records."""
    values = dict(zip(study.parameters, run.point, strict=True))
    ranks = next((value for name, value in values.items() if PROCESSORS.fullmatch(name)), None)
    plain = {name: value for name, value in values.items() if not PROCESSORS.fullmatch(name)}
    folder = "run-" + "-".join(f"{name}{value:g}" for name, value in values.items())
    stated = [f"--parameter {_quote_word(f'{name}={value:g}')}" for name, value in plain.items()]
    launch = f"mpirun -n {ranks:g} ./PROGRAM" if ranks else "./PROGRAM"
    return " ".join(["gapwatch stamp", _quote_word(folder), *stated, "--", launch])


def _quote_word(text: str) -> str:
    """Return the text as one word of a shell: names of parameters come from profiles."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "=._-+") else "_" for sign in text)
