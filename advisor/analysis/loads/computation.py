"""What processors compute in a phase, by region and iteration, for shares of it that are in code of a kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.loads.arrays import find_rank_threads
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray, Phase, Profile

#: Measures that hold computation, the best first, and what each of them holds besides.
_MEASURES: Final[Mapping[str, tuple[str, ...]]] = {
    "cpu_s": (),
    "work_s": ("transfer_s", "io_s"),
    "wall_s": ("transfer_s", "io_s", "wait_s", "sync_s"),
}

#: Code that more threads don't make faster: a text is read from its beginning, and memory and numbers of a shared
#: generator come from one place.
_SEQUENTIAL: Final = ("code.text_s", "code.allocation_s", "code.random_s")


def find_sequential_shares(profile: Profile) -> FloatArray:
    """Return the part of each region (R, Q) that threads can't share: text, memory, random numbers, files."""
    found = np.zeros((len(profile.regions), len(profile.processors)))
    everything = profile.counts.get("code.all_s")
    for name in _SEQUENTIAL:
        if everything is not None and name in profile.counts:
            mine = profile.counts[name]
            found += np.divide(mine, everything, out=np.zeros(mine.shape), where=everything > 0)
    io = [classify_region(region.name)[1] == Role.IO for region in profile.regions]
    found[np.array(io, dtype=bool)] = 1.0
    return np.minimum(found, 1.0)


def find_sequential_regions(profile: Profile) -> frozenset[str]:
    """Return the names of the regions whose larger part threads can't share."""
    shares = find_sequential_shares(profile).max(axis=1, initial=0.0)
    return frozenset(region.name for region, share in zip(profile.regions, shares.tolist(), strict=True) if share > 0.5)


def compute_alone(profile: Profile, number: int) -> tuple[FloatArray, FloatArray]:
    """Return what the first thread of each rank computes outside of parallel regions in a phase, seconds (Q, I).

    The second array is the part of it that threads can't share. Both stand in the rows of all threads of the rank.
    """
    phase, team = profile.phases[number], find_rank_threads(profile.processors)
    nothing = np.zeros((len(profile.processors), phase.iterations))
    known = find_computing_measures(phase.arrays)
    rows = np.flatnonzero([not profile.regions[r].threaded for r in phase.regions.tolist()])
    if known is None or not len(rows):
        return nothing, nothing
    shares = find_sequential_shares(profile)[phase.regions[rows]]
    parts = _share_seconds(phase, known, rows, np.ones_like(shares))
    whole, sequential = parts.sum(axis=0), (parts * shares[:, :, None]).sum(axis=0)
    return whole[team.master], sequential[team.master]


def cores_per_processor(profile: Profile) -> float:
    """Return how many cores there are for each processor, 1 at most: more threads than cores share no work faster."""
    return min(profile.cores / len(profile.processors), 1.0) if profile.cores else 1.0


def find_computing_measures(arrays: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return the measure that holds what a phase computed and those to subtract from it; None without any."""
    base = next((name for name in _MEASURES if name in arrays), None)
    return None if base is None else (base, tuple(name for name in _MEASURES[base] if name in arrays))


def compute_imbalance_factor(profile: Profile, shares: FloatArray, phases: Collection[int]) -> float:
    """Return how many times longer a share of the computation takes on the slowest processors than on average.

    ``shares`` (R, Q) are parts of one of what each region computes on each processor. The slowest one is that of each
    instance of a phase. The other threads of a rank wait for what its first thread computes outside of parallel
    regions, so that counts for each of them. 1 where it is not known, or nothing is computed.
    """
    team = find_rank_threads(profile.processors)
    longest = mean = 0.0
    for number in phases:
        phase = profile.phases[number]
        known = find_computing_measures(phase.arrays)
        if known is None:
            return 1.0
        rows = np.flatnonzero(shares[phase.regions].any(axis=1))
        shared = np.array([not profile.regions[r].threaded for r in phase.regions[rows].tolist()], dtype=bool)
        parts = _share_seconds(phase, known, rows, shares[phase.regions[rows]])
        together, own = parts[shared].sum(axis=0), parts[~shared].sum(axis=0)
        mean += float((own + together).sum()) / len(profile.processors)
        longest += float((own + together[team.master]).max(axis=0, initial=0.0).sum())
    return max(longest / mean, 1.0) if mean > 0 else 1.0


def _share_seconds(
    phase: Phase, measures: tuple[str, tuple[str, ...]], rows: IntArray, shares: FloatArray
) -> FloatArray:
    """Return the seconds of some regions' shares (rows, Q, I)."""
    base, others = measures
    computed = phase.arrays[base][rows] - sum((phase.arrays[name][rows] for name in others), 0.0)
    found: FloatArray = np.maximum(computed, 0.0) * shares[:, :, None]
    return found


def compute_region_seconds(profile: Profile) -> FloatArray | None:
    """Return the computation of each region on each processor (R, Q) in seconds, None where it is not known."""
    total = np.zeros((len(profile.regions), len(profile.processors)))
    for phase in profile.phases:
        known = find_computing_measures(phase.arrays)
        if known is None:
            return None
        base, others = known
        own = phase.arrays[base].sum(axis=2) - sum((phase.arrays[name].sum(axis=2) for name in others), 0.0)
        np.add.at(total, phase.regions, np.maximum(own, 0.0))
    return total
