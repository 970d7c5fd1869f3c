"""Codes side by side: ranks that compute a region of their own instead of the others', as coupled models do.

Who computes nothing of a region is not idle there, but busy in another. Work moves within a code; between codes only
ranks do, by whole ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.whatif.traced.rows import ReplayRows

#: A rank that computes this part of the mean or more, and nothing of the main region, runs a code of its own.
CODE: Final = 0.25


def find_main_regions(rows: ReplayRows, at: IntArray, region: int) -> IntArray:
    """Return by which region each rank (ranks,) counts its passes: ``region``, or what it has most of instead."""
    ranks, count = rows.program.ranks, len(rows.program.names) + 1
    code = (rows.region[at].astype(np.int64) + 1) * ranks + rows.line[at]
    each = np.bincount(code, rows.seconds[at], minlength=count * ranks).reshape(count, ranks)
    return np.where(each[region + 1] > 0, region, each.argmax(axis=0) - 1)


def find_codes(main: IntArray, seconds: FloatArray) -> IntArray:
    """Return which of several codes side by side each rank (ranks,) runs; -1 for none, or where all run the same one.

    Ranks whose ``main`` region is another one run another code if they compute to speak of.
    """
    each = seconds.sum(axis=1)
    codes = np.where(each >= CODE * each.mean(), main, -1)
    return codes if len(np.unique(codes[codes >= 0])) > 1 else np.full_like(codes, -1)


def share_by_ranks(codes: IntArray, seconds: FloatArray) -> FloatArray:
    """Return seconds (ranks, n) if work were even: the mean; of codes side by side, each on its best part of the ranks.

    ``codes`` is what ``find_codes`` returned.
    """
    even: FloatArray = np.broadcast_to(seconds.mean(axis=0), seconds.shape).copy()
    names = np.unique(codes[codes >= 0])
    work = np.array([seconds[codes == code].sum() for code in names])
    given = divide_ranks(work, int((codes >= 0).sum())) if len(names) else []
    for code, count in zip(names, given, strict=True):
        even[codes == code] = seconds[codes == code].sum(axis=0) / count
    return even


def divide_ranks(work: FloatArray, ranks: int) -> list[int]:
    """Return how many of the ranks each of several codes gets, so that the one that takes longest is done first.

    Each has one; each further rank goes to the code that takes longest then.
    """
    given = np.ones(len(work), dtype=np.int64)
    for _ in range(ranks - len(work)):
        given[np.argmax(work / given)] += 1
    found: list[int] = given.tolist()
    return found
