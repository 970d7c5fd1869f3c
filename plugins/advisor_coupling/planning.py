"""What to measure next: the chains whose doubt moves the prediction most.

The source leaves open which couplings must be obtained and which can be reused. Here a chain that was not measured is
estimated. What a chain loses beyond its kernels, e_S = P_S - sum of P_k, is taken to be what its two ends lose without
what they share, e_ABC = e_AB + e_BC - e_B, and besides the share of its time by which measured chains of its length
lose more than that. How far such estimates are wrong where they can be checked is their doubt; how far the doubt moves
the prediction decides the order. Own method, not the source's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_coupling import algebra, intervals
from advisor_coupling.cases import SECONDS, Chain, CouplingCase

if TYPE_CHECKING:
    from advisor_coupling.model import CaseModel

#: How far a chain is off, as a share of its kernels' time, while too little is measured to tell.
_UNKNOWN: Final = 0.10
#: Digits of a doubt that decide which chain comes first: beyond them is rounding, in which versions of Python differ.
_DIGITS: Final = 9
#: So many checks of the estimate are asked for before its own errors are believed.
_CHECKS: Final = 3
#: Chains that are proposed for measuring.
_SHOWN_CHAINS: Final = 5


@dataclass(frozen=True, slots=True)
class NextChain:
    """A chain to measure, or to measure again: ``seconds`` is how far its doubt moves the predicted run time."""

    case: CouplingCase
    chain: Chain
    seconds: float
    again: bool


def compute_medians(case: CouplingCase) -> dict[Chain, float]:
    """Return the median of every chain that was measured."""
    return {
        chain: float(np.nanmedian(series))
        for chain, series in case.samples.get(SECONDS, {}).items()
        if np.isfinite(series).any()
    }


def estimate_excess(chain: Chain, known: Mapping[Chain, float]) -> float:
    """Return P_S minus the sum of its kernels, estimated where it is not ``known``."""
    if chain in known or len(chain) == 1:
        return _measured_excess(chain, known)
    alike = [other for other in known if len(other) == len(chain) and _sum_kernels(other, known) > 0]
    missed = sum(_measured_excess(other, known) - _excess_from_shorter(other, known) for other in alike)
    whole = sum(_sum_kernels(other, known) for other in alike)
    return _excess_from_shorter(chain, known) + (missed / whole * _sum_kernels(chain, known) if whole else 0.0)


def _sum_kernels(chain: Chain, known: Mapping[Chain, float]) -> float:
    return sum(known[(index,)] for index in chain)


def _measured_excess(chain: Chain, known: Mapping[Chain, float]) -> float:
    return known[chain] - _sum_kernels(chain, known)


def _excess_from_shorter(chain: Chain, known: Mapping[Chain, float]) -> float:
    """Return what the two ends of a chain lose without what they share; nothing for a pair."""
    if len(chain) <= 2:
        return 0.0
    first, last, inner = chain[:-1], chain[1:], chain[1:-1]
    parts = [
        _measured_excess(one, known) if one in known else _excess_from_shorter(one, known)
        for one in (first, last, inner)
    ]
    return parts[0] + parts[1] - parts[2]


def compute_estimate_error(known: Mapping[Chain, float]) -> float:
    """Return how far estimates of chains are wrong, as a share of their kernels' time: root mean square."""
    errors = []
    for chain, value in known.items():
        if len(chain) < 2 or any((index,) not in known for index in chain):
            continue
        plain = _sum_kernels(chain, known)
        others = {other: seconds for other, seconds in known.items() if other != chain}
        errors.append((value - plain - estimate_excess(chain, others)) / plain)
    if len(errors) < _CHECKS:
        return max([_UNKNOWN, *map(abs, errors)])
    return float(np.sqrt(np.mean(np.square(errors))))


def predict_partial(case: CouplingCase, length: int, known: Mapping[Chain, float]) -> float:
    """Return seconds per run predicted from chains of ``length``, those not ``known`` estimated."""
    member = algebra.build_membership(case.size, length)
    alone = np.array([known[(index,)] for index in range(case.size)])
    plain = algebra.compute_expected(alone, member)
    lost = np.array([estimate_excess(chain, known) for chain in algebra.chain_windows(case.size, length)])
    coefficient = algebra.compute_coefficients((plain + lost) / plain, plain + lost, member)
    return once_s(case) + case.loop_count * float(algebra.predict_value(coefficient, alone))


def once_s(case: CouplingCase) -> float:
    """Return the seconds outside the loop."""
    once = case.once.get(SECONDS)
    return float(np.nanmedian(once)) if once is not None and len(once) else 0.0


def select_next_chains(model: CaseModel, length: int) -> tuple[NextChain, ...]:
    """Return the chains of that length that are worth measuring (again), the most useful first."""
    case, known = model.case, compute_medians(model.case)
    if any((index,) not in known for index in range(case.size)):
        return ()
    unsure = compute_estimate_error(known)
    found = [_rate_chain(model, chain, length, known, unsure) for chain in algebra.chain_windows(case.size, length)]
    return tuple(sorted(found, key=lambda one: -float(f"{one.seconds:.{_DIGITS}g}"))[:_SHOWN_CHAINS])


def _rate_chain(model: CaseModel, chain: Chain, length: int, known: Mapping[Chain, float], unsure: float) -> NextChain:
    case, again = model.case, chain in known
    plain = _sum_kernels(chain, known)
    step = unsure * plain if not again else _standard_error(model, chain)
    now = known[chain] if again else plain + estimate_excess(chain, known)
    moved = predict_partial(case, length, {**known, chain: now + step})
    return NextChain(case, chain, abs(moved - predict_partial(case, length, {**known, chain: now})), again)


def _standard_error(model: CaseModel, chain: Chain) -> float:
    """Return the standard error of a measured chain's seconds, from the interval of its excess."""
    lost = next(coupling.excess for coupling in model.couplings if coupling.chain == chain)
    if not lost.has_interval:
        return _UNKNOWN * model.alone[chain[0]].value
    return (lost.high - lost.low) / 2 / NormalDist().inv_cdf(1 - (1 - intervals.LEVEL) / 2) / model.case.loop_count


def loop_s(case: CouplingCase) -> float:
    """Return the plain sum of the kernels over a run, seconds."""
    known = compute_medians(case)
    return case.loop_count * sum(known[(index,)] for index in range(case.size))
