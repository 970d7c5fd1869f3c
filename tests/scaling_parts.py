"""Scaling studies of which every part is known exactly: gaps that follow laws of P, measured with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling import collect
from advisor_scaling.study import MeasuredSeries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from advisor.model.records import FloatArray
    from advisor_scaling.study import ScalingStudy

    Law = Callable[[FloatArray], FloatArray]

#: Numbers of ranks that people measure at.
RANKS: Final = ((1, 2, 4, 8, 16), (2, 4, 8, 16, 32), (4, 8, 12, 16, 24, 32), (1, 2, 3, 4, 6, 8))
#: Laws of each gap over P and the computation of a rank (a share of that of one rank), by what causes them.
LAWS: Final[Mapping[str, tuple[Callable[[FloatArray, FloatArray], FloatArray], ...]]] = {
    "P": (lambda p, work: 1 - 1 / p,),
    "C'": (
        lambda p, work: np.log2(p), lambda p, work: np.log2(p) ** 2, lambda p, work: p**0.5, lambda p, work: p - 1.0,
        lambda p, work: p ** (-2 / 3),
    ),
    "O": (lambda p, work: np.ones_like(p), lambda p, work: p),
    "L": (lambda p, work: work * (1 - 1 / p), lambda p, work: work * np.log2(p)),
    "M'": (lambda p, work: work * (1 - 1 / p),),
    "D": (lambda p, work: work * np.log2(p),),
    "S'": (lambda p, work: np.log2(p), lambda p, work: p**0.5),
    "W": (lambda p, work: p**0.5, lambda p, work: np.log2(p), lambda p, work: 1 - 1 / p),
    "X": (lambda p, work: np.ones_like(p), lambda p, work: 1 + p / 64),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KnownStudy:
    """A measured study, and the true seconds of each of its series at a ``target`` number of ranks."""

    study: ScalingStudy
    target: float
    truth: Mapping[str, float]


def make_study(seed: int, noise: float = 0.01, repeats: int = 3) -> KnownStudy:
    """Return a study of three to six gaps beside strongly or weakly scaling work, on two to eight times its ranks.

    Each part is off by ``noise`` of itself, and each gap by 0.15 times that of the run, which is their sum.
    """
    draw = np.random.default_rng(seed)
    total = draw.uniform(5.0, 50.0)
    weak = bool(draw.integers(2))
    gaps = _draw_gaps(draw, total, weak)
    ranks = RANKS[draw.integers(len(RANKS))]
    target = float(max(ranks) * draw.choice([2, 4, 8]))
    observations = []
    for p in ranks * repeats:
        true = _compute_parts(gaps, total, weak, float(p))
        run = sum(true.values())
        said = {
            name: seconds * (1 + noise * draw.standard_normal())
            + (0.15 * noise * run * draw.standard_normal() if seconds > 0 and name else 0.0)
            for name, seconds in true.items()
        }
        values = {MeasuredSeries(name, "gap"): seconds for name, seconds in said.items() if name}
        observations.append(({"P": float(p)}, {collect.RUN: sum(said.values()), **values}))
    study = collect.build_study("known", observations, (), collect.NOISE_SHARE)
    there = _compute_parts(gaps, total, weak, target)
    whole = sum(there.values())
    named = {one.name: there[one.name] for one in study.series if one.kind == "gap"}
    return KnownStudy(
        study, target, {**named, collect.RUN.name: whole, collect.REST.name: whole - sum(named.values())}
    )  # fmt: skip


def _draw_gaps(draw: np.random.Generator, total: float, weak: bool) -> dict[str, tuple[float, int]]:
    """Return factor and law of each gap: at eight ranks each is 0.2 to 15 % of the computation."""
    chosen = sorted(draw.choice(len(LAWS), draw.integers(3, 7), replace=False).tolist())
    found = {}
    for name in (tuple(LAWS)[at] for at in chosen):
        law = int(draw.integers(len(LAWS[name])))
        size = np.exp(draw.uniform(np.log(0.002), np.log(0.15))) * total / (1.0 if weak else 8.0)
        eight = np.array([8.0])
        found[name] = (float(size / LAWS[name][law](eight, _share_of_work(eight, weak))[0]), law)
    return found


def _share_of_work(p: FloatArray, weak: bool) -> FloatArray:
    return np.ones_like(p) if weak else 1 / p


def _compute_parts(
    gaps: Mapping[str, tuple[float, int]], total: float, weak: bool, ranks: float
) -> dict[str, float]:  # fmt: skip
    """Return the true seconds of each gap, and those of the computation by an empty name."""
    p = np.array([ranks])
    work = _share_of_work(p, weak)
    parts = {name: float(factor * LAWS[name][law](p, work)[0]) for name, (factor, law) in gaps.items()}
    return {**parts, "": float(total * work[0])}
