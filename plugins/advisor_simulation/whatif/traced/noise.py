"""What of the seconds of equal computations is structure, and what is noise.

Seconds (ranks, passes) are a rank's share, times the size of the pass, times a rest. The rest is noise if it is small
and does not stay with a rank: balancing does not remove it. A few that are much longer than the others of their kind
are disturbances, and no work at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray

    Mask = npt.NDArray[np.bool_]

#: A rest of this relative standard deviation is what noise can be; real unevenness of this size can't be told from it.
NOISE: Final = 0.025
#: Up to this ratio of the scatter of differences to the scatter the rest of a rank follows a trend (von Neumann 1941).
TREND: Final = 0.4
#: Passes on each side that tell what a rank usually has then: a disturbance of two is outnumbered.
AROUND: Final = 2
#: A trend goes on for more than this part of the instances: noise may stay for a few.
LASTING: Final = 8
#: A rest is far out beyond so many standard deviations, and this share of the work.
FAR: Final = 5.0
LEAST_FAR: Final = 0.1
#: Where so large a part of the passes holds something far out, or so much is far out, that is how the program works.
REGULAR: Final = 0.6
OFTEN: Final = 0.05
#: A disturbance of a rank lasts for no more than this part of the passes, all of its disturbances together.
SHORT: Final = 0.25
#: The part of the passes in which as many ranks have as much more, up to this scatter, where that is how work wanders.
EACH_PASS: Final = 0.9
AS_MUCH: Final = 0.2
LEAST_MORE: Final = 0.02
#: Passes of an instance that differ in size by more than this factor are not alike.
UNLIKE: Final = 2.0
#: Instances from which on a rest can be told from the rank's share.
ENOUGH: Final = 4
#: A rank with less than this share of the mean work has nothing to do.
IDLE: Final = 0.005
#: One with less than this share does not tell how long a pass is.
LITTLE: Final = 0.05
_SCALE: Final = 1.4826
_WIDE: Final = 1.96


def count_positions(seconds: FloatArray, repeats: int) -> int:
    """Return how many passes (ranks, passes) each of ``repeats`` instances has, 1 where they are of like size."""
    passes = seconds.shape[1] // repeats
    if passes * repeats != seconds.shape[1] or repeats < ENOUGH:
        return 1
    usual = np.median(np.median(seconds, axis=0).reshape(repeats, passes), axis=0)
    return passes if usual.max() > UNLIKE * usual.min() else 1


def split_noise_by_position(seconds: FloatArray, repeats: int) -> tuple[FloatArray, float]:
    """Split noise as ``split_noise`` does, separately for each pass of an instance if their sizes differ.

    A long computation and a short one of the same region have their own shares, and their own noise.
    """
    passes = count_positions(seconds, repeats)
    if passes == 1:
        return split_noise(seconds, repeats)
    usual = np.median(np.median(seconds, axis=0).reshape(repeats, passes), axis=0)
    structure, squares, disturbed = seconds.copy(), 0.0, False
    for place, size in enumerate(usual.tolist()):
        structure[:, place::passes], noise = split_noise(seconds[:, place::passes], repeats)
        squares += (noise * size) ** 2
        disturbed |= noise < 0
    noise = float(np.sqrt(squares) / usual.sum())
    return structure, -noise if disturbed else noise


def split_noise(seconds: FloatArray, repeats: int) -> tuple[FloatArray, float]:
    """Return the structure of seconds (ranks, passes), and the relative standard deviation of the rest.

    That is negative where disturbances were taken out. The passes are those of so many instances, which decide whether
    a rest follows a trend.
    """
    working = seconds.sum(axis=1) > LITTLE * seconds.sum(axis=1).mean()
    work = seconds[working]
    if work.shape[0] < 2 or work.shape[1] < ENOUGH or not (np.median(work, axis=0) > 0).all():
        return seconds, 0.0
    usual = _find_usual(work)
    rest = np.divide(work, usual, out=np.ones_like(work), where=usual > 0)
    trends, running = _follow_trend(rest, repeats), _find_running_median(rest)
    fit = usual * np.where(trends, running, 1.0)
    away = (work - fit) / work.mean()
    handed = _find_handed_around(away)
    far = (np.abs(away) > _far_limit(away)) & ~handed
    structure = seconds.copy()
    if far.any() and (float(far.any(axis=0).mean()) >= REGULAR or float(far.mean()) > OFTEN):
        beyond = _find_extremes(away, far)
        structure[working] = np.where(beyond, fit, work)
        noise = float(away[~beyond].std())
        return structure, -noise if beyond.any() else noise
    noise = float(away[~(far | handed)].std())
    steady = np.where(far, fit, work)
    if noise <= NOISE and not handed.any():
        scale = np.where(far, 1.0, rest).mean(axis=1, keepdims=True)
        steady = np.where(trends, steady, usual * scale)
    structure[working] = steady
    return structure, -noise if far.any() else noise


def _find_usual(work: FloatArray) -> FloatArray:
    """Return what ranks usually need (ranks, passes): their shares times the sizes of the passes (median polish).

    A size is the median over ranks of like shares: where ranks are of two kinds, one that has more work now and then
    moves the median of all from kind to kind.
    """
    share = np.median(work, axis=1)[:, None]
    like = np.divide(work, share, out=work / work.mean(), where=share > 0)
    size = np.median(like, axis=0)
    found: FloatArray = np.median(work / size, axis=1)[:, None] * size
    return found


def _far_limit(away: FloatArray) -> float:
    """Return from which distance on something is far out: for normal noise ``FAR`` standard deviations.

    By the median, and by the 95th percentile: work that is spread evenly has a wide middle and no tail.
    """
    size = np.abs(away)
    middle, wide = FAR * _SCALE * float(np.median(size)), FAR * float(np.quantile(size, 0.95)) / _WIDE
    return max(min(middle, wide), LEAST_FAR)


def _find_extremes(away: FloatArray, far: Mask) -> Mask:
    """Return what is disturbance where it is usual that some have more: few that are more than twice as far as those.

    ``away`` (ranks, passes) is what lies above the usual, relative to the mean, ``far`` where it lies far above.
    """
    more = away[far & (away > 0)]
    if len(more) < ENOUGH:
        return np.zeros_like(far)
    usual = float(np.median(more))
    scatter = FAR * _SCALE * float(np.median(np.abs(more - usual)))
    found: Mask = far & (away > usual + max(usual, scatter, LEAST_FAR))
    few = found.any(axis=0).mean() < 1.0 - REGULAR and found.mean() <= OFTEN
    return found if few else np.zeros_like(far)


def _find_handed_around(away: FloatArray) -> Mask:
    """Return who has more than usual where in each pass as many ranks have as much more; nobody elsewhere.

    Noise hits now none and now some, now harder; what is more than twice as much is a disturbance beside it. ``away``
    (ranks, passes) is what lies above the usual, relative to the mean.
    """
    more = away > max(FAR * _SCALE * float(np.median(np.abs(away))), LEAST_MORE)
    more &= away <= 2.0 * float(np.median(away[more])) if more.any() else False
    counts = np.bincount(more.sum(axis=0))
    often = counts.argmax() > 0 and counts.max() >= EACH_PASS * more.shape[1]
    alike = often and away[more].std() <= AS_MUCH * away[more].mean()
    return more if alike else np.zeros_like(more)


def shrink_scatter(seconds: FloatArray, noise: float) -> FloatArray:
    """Return seconds (ranks, n) drawn towards the mean of each pass, as far as noise explains how ranks differ."""
    working = seconds.sum(axis=1) > IDLE * seconds.sum(axis=1).mean()
    if working.sum() < 2:
        return seconds
    center = seconds[working].mean(axis=0)
    between = seconds[working].var(axis=0, ddof=1)
    by_chance = (noise * center) ** 2
    kept = np.maximum(1.0 - np.divide(by_chance, between, out=np.ones_like(between), where=between > 0), 0.0)
    return np.where(working[:, None], center + kept * (seconds - center), seconds)


def _follow_trend(rest: FloatArray, repeats: int) -> Mask:
    """Return which ranks' rests (ranks, 1) change slowly between instances: that is work that grows or shrinks.

    But for what is far from a rank's running median: work that grows may be disturbed as well.
    """
    off = rest - _find_running_median(rest)
    quiet = np.where(np.abs(off) > _far_limit(off), rest - off, rest)
    each = quiet.reshape(len(rest), repeats, -1).mean(axis=2) if rest.shape[1] % repeats == 0 else quiet
    if each.shape[1] < ENOUGH:
        return np.zeros((len(rest), 1), dtype=bool)
    later = max(each.shape[1] // LASTING, 1)
    steps = ((each[:, later:] - each[:, :-later]) ** 2).mean(axis=1) / 2
    found: Mask = (steps < TREND * each.var(axis=1))[:, None] & ~_has_episodes(rest)
    return found


def _has_episodes(rest: FloatArray) -> Mask:
    """Return which ranks (ranks, 1) go on as before but for few passes far out: one disturbance may last for several.

    Work that grows, or wanders over the ranks, leaves more than noise in the other passes, or lasts longer.
    """
    far = np.abs(rest - 1.0) > _far_limit(rest - 1.0)
    left = np.where(far, 1.0, rest).std(axis=1, keepdims=True)
    found: Mask = far.any(axis=1, keepdims=True) & (far.mean(axis=1, keepdims=True) <= SHORT) & (left <= NOISE)
    return found


def _find_running_median(rest: FloatArray) -> FloatArray:
    """Return the median of each value and its neighbours in the row, ``AROUND`` on each side."""
    around = min(AROUND, rest.shape[1] - 1)
    padded = np.pad(rest, ((0, 0), (around, around)), mode="reflect")
    found: FloatArray = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * around + 1, axis=1), axis=2)
    return found
