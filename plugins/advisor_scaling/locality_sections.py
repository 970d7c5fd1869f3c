"""What ``gapwatch scale`` says about locality and about T(P, L, BW), where the runs tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.reports import Column, Table, Text
from advisor_scaling import locality
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from advisor.model.records import FloatArray
    from advisor.model.reports import Part
    from advisor_scaling.locality import TermEstimate
    from advisor_scaling.study import ScalingStudy

#: Series of a study: CPU time of all processors together, and of the one that computes longest.
TOTAL: Final = "CPU time, all processors"
LONGEST: Final = "CPU time, longest"
_FEWEST: Final = 3


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
    scatter = locality.repeat_error(each.values[0])
    found = locality.fit_network_model(p, latency, bandwidth, seconds, dict.fromkeys(p.tolist(), 1.0), scatter)
    off = np.abs(found(p, latency, bandwidth) / seconds - 1.0)
    parts: list[Part] = [
        _build_term_table("T = alpha0 + alpha1/P + (beta0 + beta1 P) L + (gamma0 + gamma1 P)/BW", found.terms),
        Text(f"The largest error at the points it was fitted to is {off.max():.2%}, half of them are within "
             f"{np.median(off):.2%}."),
    ]  # fmt: skip
    return [*parts, *([Text(locality.LOCALITY_NEEDED)] if found.needs_locality else [])]


def _build_term_table(title: str, terms: Iterable[TermEstimate]) -> Table:
    heads = (Column("term"), Column("estimate"), Column("standard error"), Column("significant"))
    rows = tuple((term.name, term.value, term.error, "yes" if term.is_significant else "N.S.") for term in terms)
    return Table(title, heads, rows)


def _build_factor_parts(each: ScalingStudy, axis: int) -> list[Part]:
    names = [series.name for series in each.series]
    if TOTAL not in names or LONGEST not in names:
        return []
    total, longest = (np.nanmedian(each.values[names.index(name)], axis=1) for name in (TOTAL, LONGEST))
    where = _largest_problem(each.points, axis)
    if where.sum() < _FEWEST:
        return []
    p = each.points[where, axis].tolist()
    factors = locality.compute_locality_factors(dict(zip(p, total[where].tolist(), strict=True)))
    order = np.argsort(each.points[where, axis])
    scatter = locality.repeat_error(each.values[names.index(LONGEST)][where])[order]
    path = locality.fit_critical_path(dict(zip(p, longest[where].tolist(), strict=True)), factors, scatter)
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
    return [*parts, *([Text(locality.LOCALITY_NEEDED)] if path.needs_locality else [])]


def _largest_problem(points: FloatArray, axis: int) -> FloatArray:
    """Return the points (n,) of the largest problem, all that differ in nothing but the number of processors."""
    others = np.delete(points, axis, axis=1)
    return np.asarray((others == others.max(axis=0)).all(axis=1))
