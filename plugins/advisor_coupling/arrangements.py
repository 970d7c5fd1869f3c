"""Which order of the kernels suits their data best, where the program leaves the order open.

The time of an order is composed from the pairs of neighbours in it (formula 3 of the source with chains of two); two
kernels in a loop have no order of their own, so a pair holds for both. A pair that was not measured is estimated from
the others, and how far such estimates are off widens the interval. Own method: the source leaves orders as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_coupling import intervals, planning
from advisor_coupling.cases import SECONDS, Chain, CouplingCase
from advisor_coupling.intervals import Estimate
from advisor_coupling.model import TOLERANCE

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: Of more kernels not all orders are tried.
MOST_KERNELS: Final = 8
#: Pairs that one order of a loop has at least; of fewer kernels there is only one order.
_FEWEST_KERNELS: Final = 4


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The order of the kernels that is predicted to be fastest: ``saved`` seconds a run against the present order.

    ``estimated`` are the pairs of neighbours in it that were not measured.
    """

    order: Chain
    saved: Estimate
    estimated: tuple[Chain, ...]


def find_best_order(case: CouplingCase, after: Mapping[str, Sequence[str]]) -> Arrangement | None:
    """Return the best order that runs each kernel ``after`` those named for it; None where none wins beyond noise."""
    if not _FEWEST_KERNELS <= case.size <= MOST_KERNELS:
        return None
    pairs = _draw_pairs(case)
    # P_k (draws + 1, kernels)
    rows = intervals.draw_rounds(intervals.count_rounds(case, SECONDS))
    alone = np.stack(
        [intervals.resample_medians(case.samples[SECONDS][index,], rows) for index in range(case.size)], axis=-1
    )
    present = tuple(range(case.size))
    orders = {_rotate(order): order for order in permutations(present) if _is_allowed(order, case.kernels, after)}
    if not orders:
        return None
    best = min(
        sorted(orders), key=lambda one: float(_compose_order(one, alone[:1], {k: v[:1] for k, v in pairs.items()})[0])
    )
    saved_pass = _compose_order(present, alone, pairs) - _compose_order(best, alone, pairs)
    repeats = intervals.count_fewest_repeats(case, SECONDS, tuple((index,) for index in present))
    saved = intervals.estimate_interval(case.loop_count * saved_pass, repeats)
    estimated = tuple(pair for pair in _neighbours(best) if case.chain_samples(SECONDS, _find_pair(case, pair)) is None)
    if estimated:
        known = planning.compute_medians(case)
        doubt = (
            planning.compute_estimate_error(known) * case.loop_count * float(alone[0][[*{*sum(estimated, ())}]].sum())
        )
        saved = Estimate(saved.value, saved.low - doubt, saved.high + doubt)
    whole = case.loop_count * float(alone[0].sum())
    return Arrangement(orders[best], saved, estimated) if saved.has_interval and saved.low > TOLERANCE * whole else None


def _is_allowed(order: Chain, kernels: Sequence[str], after: Mapping[str, Sequence[str]]) -> bool:
    place = {kernels[index]: number for number, index in enumerate(order)}
    return all(place[first] < place[name] for name, others in after.items() for first in others)


def _rotate(order: Chain) -> Chain:
    """Return the same loop begun with the first kernel."""
    start = order.index(0)
    return order[start:] + order[:start]


def _neighbours(order: Chain) -> list[Chain]:
    return [tuple(sorted((one, order[(place + 1) % len(order)]))) for place, one in enumerate(order)]


def _find_pair(case: CouplingCase, pair: Chain) -> Chain:
    """Return the chain under which a pair was measured: the last kernel is followed by the first."""
    return pair if case.chain_samples(SECONDS, pair) is not None else pair[::-1]


def _draw_pairs(case: CouplingCase) -> dict[Chain, FloatArray]:
    """Return P_ij (draws + 1,) of every pair; of those that were not measured an estimate, the same in all draws."""
    rows = intervals.draw_rounds(intervals.count_rounds(case, SECONDS))
    known = planning.compute_medians(case)
    found: dict[Chain, FloatArray] = {}
    for first in range(case.size):
        for second in range(first + 1, case.size):
            series = case.chain_samples(SECONDS, _find_pair(case, (first, second)))
            if series is not None:
                found[first, second] = intervals.resample_medians(series, rows)
            else:
                lost = planning.estimate_excess((first, second), known)
                found[first, second] = np.full(len(rows), known[(first,)] + known[(second,)] + lost)
    return found


def _compose_order(order: Chain, alone: FloatArray, pairs: Mapping[Chain, FloatArray]) -> FloatArray:
    """Return the seconds of one pass (draws,): the sum of a_k P_k with the couplings of both neighbours of a kernel."""
    together = np.stack([pairs[pair] for pair in _neighbours(order)], axis=-1)
    sums = np.stack([alone[:, pair].sum(axis=-1) for pair in map(list, _neighbours(order))], axis=-1)
    weighted = together / sums * together
    before = np.roll(np.arange(len(order)), 1)
    coefficient = (weighted + weighted[:, before]) / (together + together[:, before])
    return np.asarray((coefficient * alone[:, list(order)]).sum(axis=-1))
