"""What each rank did of what Darshan recorded only as a sum over all ranks: an estimate.

A file that all ranks opened has one record. It holds sums over the ranks, and of the fastest and the slowest rank the
time and the bytes. All others are taken for equal, or for as busy as the heat map says, which has the bytes of each
rank but not of each file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

_ROUNDS: Final = 30
_NEXT_TO_ZERO: Final = 1e-100  # seconds or bytes
_FITTING_ROUNDS: Final = 300
_NEARLY: Final = 1e-4
#: The heat map is believed where its bytes are those of the records, but for this share.
_CLOSE: Final = 0.01


class RankExtreme(NamedTuple):
    """One rank of a shared file: its number, and its seconds or bytes."""

    rank: int
    value: float


def share_among_ranks(total: float, ranks: int, fastest: RankExtreme, slowest: RankExtreme) -> FloatArray:
    """Return the part of each rank (ranks,) in ``total``: two are known, the others share the rest equally."""
    known = {each.rank: each.value for each in (fastest, slowest) if 0 <= each.rank < ranks and each.value >= 0}
    rest = max(total - sum(known.values()), 0.0)
    found: FloatArray = np.full(ranks, rest / max(ranks - len(known), 1))
    for rank, value in known.items():
        found[rank] = value
    everything = float(found.sum())
    if everything <= _NEXT_TO_ZERO:
        found[:] = total / ranks
        return found
    found *= total / everything
    return found


def balance_shares(of_kind: FloatArray, of_rank: FloatArray, weights: FloatArray) -> FloatArray:
    """Return seconds (kinds, ranks) that add up to ``of_kind`` (kinds,) and nearly to ``of_rank`` (ranks,).

    ``weights`` (kinds, ranks) say where there can be some: proportional fitting (Deming and Stephan, 1940).
    """
    usable = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
    found: FloatArray = usable / usable.sum(axis=1, keepdims=True) * of_kind[:, None]
    for _ in range(_ROUNDS):
        found *= _compute_factor(of_rank, found.sum(axis=0))[None, :]
        found *= _compute_factor(of_kind, found.sum(axis=1))[:, None]
    lost = (found.sum(axis=1) <= _NEXT_TO_ZERO) & (of_kind > 0)
    found[lost] = (usable / usable.sum(axis=1, keepdims=True) * of_kind[:, None])[lost]
    return found


def _compute_factor(wanted: FloatArray, found: FloatArray) -> FloatArray:
    """Return what ``found`` has to be multiplied by; nothing can be made of zero, or of what is next to it."""
    factor: FloatArray = np.divide(wanted, found, out=np.zeros_like(found), where=found > _NEXT_TO_ZERO)
    return factor


def round_shares(total: int, weights: FloatArray) -> IntArray:
    """Return whole numbers (n,) that add up to ``total``, as near to ``weights`` as can be (largest remainders)."""
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    exact = total * (weights / weights.sum())
    found: IntArray = np.floor(exact).astype(np.int64)
    missing = total - int(found.sum())
    found[np.argsort(found - exact, kind="stable")[:missing]] += 1
    return found


def compute_remaining_heat(heat: FloatArray, known: FloatArray, shared: float) -> FloatArray | None:
    """Return the bytes of each rank (ranks,) in shared files: those of the heat map less the known ones.

    None where the heat map does not fit the ``shared`` bytes that the records hold.
    """
    left = np.maximum(heat - known, 0.0)
    return left if abs(left.sum() - shared) <= _CLOSE * shared else None


def limit_to_run(seconds: FloatArray, group: IntArray, rank: IntArray, room_s: FloatArray) -> FloatArray:
    """Return estimated seconds (rows,) with at most ``room_s`` (ranks,) on each rank and the same sum in each group.

    Files are shared out among the ranks one by one, and what one rank is thought to have had of each can be more in sum
    than the run took. Ranks above their room give way to the others of the same ``group`` (rows,) in turns, until all
    fit but for a ten-thousandth, which is cut off. Where there is no such solution the seconds stay as they are.
    """
    wanted = np.bincount(group, seconds)
    found = seconds.copy()
    for _ in range(_FITTING_ROUNDS):
        held = np.bincount(rank, found, len(room_s))
        cut = np.minimum(np.divide(room_s, held, out=np.ones_like(held), where=held > 0), 1.0)
        if cut.min() >= 1.0 - _NEARLY:
            return found * cut[rank]
        found *= cut[rank]
        left = np.bincount(group, found, len(wanted))
        found *= np.divide(wanted, left, out=np.zeros_like(wanted), where=left > 0)[group]
    return seconds
