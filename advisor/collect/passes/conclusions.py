"""What further passes showed: noise or structure, what running side by side costs, and why counts were left out."""

from __future__ import annotations

from typing import Final

import numpy as np

from advisor.analysis.bounds import compute_bounds
from advisor.analysis.disturbance import REPEATED
from advisor.analysis.gaps import attribute_gaps
from advisor.analysis.loads import summarize_loads
from advisor.model.records import FloatArray, Note, Profile
from advisor.model.units import format_seconds, format_share

#: Gaps of load, which noise makes as well.
_LOAD: Final = ("L", "M'", "D")
#: Less of a run is no imbalance worth speaking of.
_LITTLE: Final = 0.03
#: Imbalance that recurs by this share of itself, on the same processors, is structure.
_RECURS: Final = 0.5
#: Work is the same where it differs by less.
_SAME: Final = 0.12
_PENALTY: Final = 0.2


def compare_runs(first: Profile, second: Profile) -> tuple[Note, float | None]:
    """Return whether the imbalance of a run came back in a second one, and the seconds of it that did not.

    It comes back where the same processors had more to do. None where the runs can't be compared.
    """
    times = f"a second run took {format_seconds(second.actual_s)}, the first {format_seconds(first.actual_s)}"
    if len(first.processors) != len(second.processors):
        text = f"{times}, with another number of processors: they can't be compared"
        return Note(REPEATED, text, _PENALTY), None
    before_s, now_s = _imbalance(first), _imbalance(second)
    shares = before_s / first.actual_s, now_s / second.actual_s
    if max(shares) < _LITTLE:
        return Note(REPEATED, f"{times}; the load was balanced in both"), 0.0
    both = f"imbalance was {format_share(shares[0])} of the first and {format_share(shares[1])} of the second"
    alike = _correlation(_work(first), _work(second)) > _RECURS
    lost_s = max(before_s - now_s, 0.0) if alike else before_s
    if alike and lost_s <= (1 - _RECURS) * before_s:
        return Note(REPEATED, f"{times}; {both}, on the same processors: it is structure"), lost_s
    where = "" if alike else ", on other processors"
    return Note(REPEATED, f"{times}; {both}{where}: what did not come back is noise", _PENALTY), lost_s


def compare_with_single(many: Profile, one: Profile) -> Note:
    """Return what the computation of one processor says about that of many: what side by side costs.

    Where neither the sum of the work nor the work of each is that of one processor alone, nothing is compared.
    """
    work = _work(many)
    alone, total, each = float(_work(one).sum()), float(work.sum()), float(work.mean())
    count = len(work)
    head = f"on one processor the program computes {format_seconds(alone)} and takes {format_seconds(one.actual_s)}"
    if alone <= 0 or each <= 0:
        return Note("one processor", f"{head}: nothing to compare")
    if each / alone > 1 - _SAME and each / alone < _RECURS * count:
        grown = f"each of the {count} computes {format_seconds(each)}, so that work grows with their number"
        return Note("one processor", f"{head}; {grown}, and side by side it costs {each / alone - 1:+.0%}")
    if total / alone > 1 - _SAME:
        speed = one.actual_s / many.actual_s
        text = f"{head}; {count} together compute {format_seconds(total)}, {total / alone - 1:+.0%}"
        return Note(
            "one processor",
            f"{text}: caches, memory and doubled work; {speed:.2g} times as fast, {speed / count:.0%} efficient",
        )
    text = f"{head}, the {count} together only {format_seconds(total)}: it does other work, and is not compared"
    return Note("one processor", text)


def _imbalance(run: Profile) -> float:
    summary = summarize_loads(run)
    levels = compute_bounds(run, None, summary)
    gaps = attribute_gaps(run, levels, summary, None)
    return sum(max(gap.seconds, 0.0) for gap in gaps if set(gap.members) <= set(_LOAD))


def _work(run: Profile) -> FloatArray:
    """Return the seconds that each processor computed."""
    work = np.zeros(len(run.processors))
    for phase in run.phases:
        if "cpu_s" in phase.arrays:
            work += phase.arrays["cpu_s"].sum(axis=(0, 2))
    return work


def _correlation(one: FloatArray, other: FloatArray) -> float:
    """Return how alike the loads of two runs are spread over the processors, 1 for the same pattern."""
    first, second = one - one.mean(), other - other.mean()
    length = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / length if length > 0 else 0.0
