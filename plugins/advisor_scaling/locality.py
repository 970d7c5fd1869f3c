"""T(P, L, BW) with locality factor, and how sure each of its terms is.

G. Rodriguez, R. Badia, J. Labarta: Generation of Simple Analytical Models for Message Passing Applications, Euro-Par
2004: T = alpha'(P) LF(P) + beta'(P) L + gamma'(P) / BW, with alpha' = alpha0 + alpha1 / P (formulas 2 and 3) and beta',
gamma' linear in P (table 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.distributions import student_t_probability
from advisor.model.reports import Column, Part, Table, Text
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_scaling.study import ScalingStudy


#: A term is significant where chance alone would make it as large in fewer cases than this.
SIGNIFICANT: Final = 0.05
LOCALITY_NEEDED: Final = (
    "Without the locality factor, the line through the computation times is below zero at P = infinity: "
    "the total CPU time falls as P grows because each part fits better into the caches. The locality factor is needed."
)
#: Series of a study: CPU time of all processors together, and of the one that computes longest.
TOTAL: Final = "CPU time, all processors"
LONGEST: Final = "CPU time, longest"
_FEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class TermEstimate:
    """A term of a regression: value, standard error, and the probability that chance makes it as large."""

    name: str
    value: float
    error: float
    chance: float

    @property
    def is_significant(self) -> bool:
        """Whether the term is there at all; otherwise it is printed as N.S."""
        return self.chance < SIGNIFICANT


def fit_regression(
    columns: Mapping[str, FloatArray],
    y: FloatArray,
    weights: FloatArray | None = None,
    scatter: FloatArray | None = None,
) -> tuple[TermEstimate, ...]:
    """Return the least-squares estimate of each of ``columns`` (n,) for ``y`` (n,), with its error by Student's t.

    ``scatter`` (n,) is the standard error of each ``y`` by its repeats: no point counts as surer than that, however
    well the line meets it.
    """
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    design = np.stack(list(columns.values()), axis=1) * root[:, None]
    scale = np.abs(design).max(axis=0)
    inverse = np.linalg.pinv(design / scale)
    values = inverse @ (y * root)
    free = len(y) - design.shape[1]
    rest = y * root - (design / scale) @ values
    variance = float(rest @ rest) / free if free > 0 else np.nan
    least = np.zeros(len(y)) if scatter is None else np.nan_to_num(scatter) * root
    errors = np.sqrt((np.maximum(variance, least**2) * inverse**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = 2.0 * student_t_probability(-np.abs(values / errors), max(free, 1))
    chances = np.where(np.isnan(chances), np.where(free > 0, 0.0, 1.0), chances)
    return tuple(
        TermEstimate(name, float(value / size), float(error / size), float(chance))
        for name, value, error, size, chance in zip(columns, values, errors, scale, chances, strict=True)
    )


def compute_locality_factors(total_cpu: Mapping[float, float]) -> dict[float, float]:
    """Return LF(P) = total CPU time at P over that at the smallest P traced, the sum over all processors each."""
    reference = total_cpu[min(total_cpu)]
    return {p: seconds / reference for p, seconds in sorted(total_cpu.items())}


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """alpha'(P) = alpha0 + alpha1 / P with (``corrected``) and without locality factor (``plain``)."""

    corrected: tuple[TermEstimate, ...]
    plain: tuple[TermEstimate, ...]

    @property
    def needs_locality(self) -> bool:
        """Whether without the factor the intercept is negative, and with it is not or is closer to zero."""
        plain, corrected = self.plain[0].value, self.corrected[0].value
        return plain < 0.0 and corrected > plain


def fit_critical_path(
    alpha: Mapping[float, float], factors: Mapping[float, float], scatter: FloatArray | None = None
) -> CriticalPath:
    """Return the regressions of alpha_P / LF(P), and of alpha_P itself, on 1 / P; ``scatter`` by ascending P."""
    p = np.array(sorted(alpha))
    measured = np.array([alpha[each] for each in p])
    factor = np.array([factors[each] for each in p])
    columns = {"alpha0": np.ones(len(p)), "alpha1": 1.0 / p}
    corrected = fit_regression(columns, measured / factor, None, None if scatter is None else scatter / factor)
    return CriticalPath(corrected, fit_regression(columns, measured, None, scatter))


def repeat_error(values: FloatArray) -> FloatArray:
    """Return the standard error (n,) of the mean of repeats (n, repeats), NaN where there is one alone."""
    known = (~np.isnan(values)).sum(axis=1)
    apart = np.where(np.isnan(values), 0.0, values - np.nanmean(values, axis=1, keepdims=True))
    spread = np.sqrt((apart**2).sum(axis=1) / np.maximum(known - 1, 1))
    return np.where(known > 1, spread / np.sqrt(np.maximum(known, 1)), np.nan)


@dataclass(frozen=True, slots=True)
class NetworkModel:
    """The six terms of T(P, L, BW) (those without significance dropped, the others fitted again) and LF(P)."""

    terms: tuple[TermEstimate, ...]
    factors: Mapping[float, float]
    needs_locality: bool

    def term_value(self, name: str) -> float:
        """Return a term's estimate, 0 where it is not significant."""
        return next((term.value for term in self.terms if term.name == name and term.is_significant), 0.0)

    def __call__(self, p: FloatArray, latency: FloatArray, bandwidth: FloatArray) -> FloatArray:
        """Return T (n,) in the unit of the times that were fitted; LF between known P by its logarithm's line."""
        known = np.array(sorted(self.factors))
        factor = np.exp(np.interp(np.log(p), np.log(known), np.log([self.factors[each] for each in known])))
        alpha = (self.term_value("alpha0") + self.term_value("alpha1") / p) * factor
        beta = self.term_value("beta0") + self.term_value("beta1") * p
        return np.asarray(
            alpha + beta * latency + (self.term_value("gamma0") + self.term_value("gamma1") * p) / bandwidth
        )


def fit_network_model(
    p: FloatArray,
    latency: FloatArray,
    bandwidth: FloatArray,
    seconds: FloatArray,
    factors: Mapping[float, float],
    scatter: FloatArray | None = None,
) -> NetworkModel:
    """Return T(P, L, BW) fitted to times (n,) of runs replayed with latencies and bandwidths, or measured.

    Per P a line in L and 1 / BW gives alpha_P; alpha_P / LF(P) goes on 1 / P; beta and gamma on P. Terms that are not
    significant are left out and the others fitted again.
    """
    lf = np.array([factors[float(each)] for each in p])
    columns = {
        "alpha0": lf, "alpha1": lf / p, "beta0": latency, "beta1": latency * p, "gamma0": 1.0 / bandwidth,
        "gamma1": p / bandwidth,
    }  # fmt: skip
    kept = dict(columns)
    found = fit_regression(kept, seconds, 1.0 / seconds**2, scatter)
    dropped: list[TermEstimate] = []
    while any(not term.is_significant for term in found):
        worst = max(found, key=lambda term: term.chance)
        dropped.append(worst)
        del kept[worst.name]
        found = fit_regression(kept, seconds, 1.0 / seconds**2, scatter)
    by_name = {term.name: term for term in (*found, *dropped)}
    alpha = {each: _fit_alpha(p == each, latency, bandwidth, seconds) for each in sorted(set(p.tolist()))}
    path = fit_critical_path(alpha, factors) if len(alpha) > 2 else None
    return NetworkModel(tuple(by_name[name] for name in columns), dict(factors), bool(path and path.needs_locality))


def _fit_alpha(here: FloatArray, latency: FloatArray, bandwidth: FloatArray, seconds: FloatArray) -> float:
    """Return alpha_P, the time without any communication cost, of the runs at one P."""
    columns = {"alpha": np.ones(int(here.sum())), "beta": latency[here], "gamma": 1.0 / bandwidth[here]}
    return fit_regression(columns, seconds[here])[0].value


def build_locality_parts(each: ScalingStudy) -> list[Part]:
    """Return T(P, L, BW) where L and BW are parameters, else the locality factor where CPU times are known."""
    axis = next((at for at, name in enumerate(each.parameters) if PROCESSORS.fullmatch(name)), None)
    if axis is None:
        return []
    if {"L", "BW"} <= set(each.parameters) and len(each.parameters) == 3:
        return _build_network_parts(each, axis)
    return _build_factor_parts(each, axis)


def _build_network_parts(each: ScalingStudy, axis: int) -> list[Part]:
    p, latency, bandwidth = (
        each.points[:, at] for at in (axis, each.parameters.index("L"), each.parameters.index("BW"))
    )
    seconds = np.nanmedian(each.values[0], axis=1)
    scatter = repeat_error(each.values[0])
    found = fit_network_model(p, latency, bandwidth, seconds, dict.fromkeys(p.tolist(), 1.0), scatter)
    off = np.abs(found(p, latency, bandwidth) / seconds - 1.0)
    parts: list[Part] = [
        _build_term_table("T = alpha0 + alpha1/P + (beta0 + beta1 P) L + (gamma0 + gamma1 P)/BW", found.terms),
        Text(f"The largest error at the points it was fitted to is {off.max():.2%}, half of them are within "
             f"{np.median(off):.2%}."),
    ]  # fmt: skip
    return [*parts, *([Text(LOCALITY_NEEDED)] if found.needs_locality else [])]


def _build_term_table(title: str, terms: Iterable[TermEstimate]) -> Table:
    heads = (Column("term"), Column("estimate"), Column("standard error"), Column("significant"))
    rows = tuple((term.name, term.value, term.error, "yes" if term.is_significant else "N.S.") for term in terms)
    return Table(title, heads, rows)


def _build_factor_parts(each: ScalingStudy, axis: int) -> list[Part]:
    names = [series.name for series in each.series]
    if TOTAL not in names or LONGEST not in names:
        return []
    total, longest = (np.nanmedian(each.values[names.index(name)], axis=1) for name in (TOTAL, LONGEST))
    # the points (n,) of the largest problem, all that differ in nothing but the number of processors
    others = np.delete(each.points, axis, axis=1)
    where = np.asarray((others == others.max(axis=0)).all(axis=1))
    if where.sum() < _FEWEST:
        return []
    p = each.points[where, axis].tolist()
    factors = compute_locality_factors(dict(zip(p, total[where].tolist(), strict=True)))
    order = np.argsort(each.points[where, axis])
    scatter = repeat_error(each.values[names.index(LONGEST)][where])[order]
    path = fit_critical_path(dict(zip(p, longest[where].tolist(), strict=True)), factors, scatter)
    rows = tuple(
        (each_p, float(seconds), factors[each_p], float(seconds) / factors[each_p])
        for each_p, seconds in zip(p, longest[where], strict=True)
    )
    heads = (Column(each.parameters[axis]), Column("longest computation", "s"), Column("locality factor"),
             Column("corrected", "s"))  # fmt: skip
    parts: list[Part] = [
        Table("Locality: total CPU time against that of the fewest processors", heads, rows),
        _build_term_table("Longest computation = LF(P) (alpha0 + alpha1/P)", path.corrected),
    ]
    return [*parts, *([Text(LOCALITY_NEEDED)] if path.needs_locality else [])]
