"""A profile as a vector, where no binary is at hand: where its time goes, whatever the run's length and names.

All components are shares of the run's processor time or of its wall time, so that a run twice as long, with the same
things in it, is the same point. The first word of a component's name is its group. Of runs in the daemon's history only
the group ``gap`` is known; two runs are compared by the groups that both have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from advisor.model.errors import InputError
from advisor.model.records import CAUSE_CATEGORIES, GAP_NAMES, Advice, Causes, FloatArray, Gap, Phase, Profile
from advisor_similarity import measures

Features = dict[str, float]
#: How many regions are looked at by their rank, the heaviest first.
_REGIONS: Final = 8
_PARTS: Final = ("work_s", "transfer_s", "wait_s", "sync_s", "io_s", "os_s")


def compute_features(profile: Profile, gaps: Sequence[Gap]) -> Features:
    """Return the features of a run, each 0 to 1; raises ``InputError`` for a run without times.

    ``gap X`` is a gap's share of the run. ``time work``, ``time wait`` … are shares of the processors' time in phases.
    ``region 1`` … are the shares of the work in the heaviest regions, without their names. ``region coupling`` is the
    share of the work that stands in phases of several regions, which can exchange data through the caches.
    ``cause …`` divides waiting and transfer by what they came from.
    """
    if not profile.has_run_time or profile.actual_s <= 0:
        raise InputError(profile.program or profile.run, "it has no times to compare")
    found = {f"gap {gap.name}": max(0.0, gap.seconds) / profile.actual_s for gap in gaps if gap.name in GAP_NAMES}
    return {**found, **_time_features(profile), **_region_features(profile), **_cause_features(profile.causes)}


def advice_features(advice: Advice) -> Features:
    """Return the features of a run that advice was given on."""
    return compute_features(advice.profile, advice.gaps)


def feature_groups(found: Mapping[str, float]) -> frozenset[str]:
    """Return the groups of components that are known of a run."""
    return frozenset(name.split(" ", 1)[0] for name in found)


def select_common(found: Mapping[str, float], other: Mapping[str, float]) -> Features:
    """Return those of the features ``found`` whose group is known of the ``other`` run, too."""
    known = feature_groups(other)
    return {name: value for name, value in found.items() if name.split(" ", 1)[0] in known}


def compute_distances(this: Mapping[str, float], others: Sequence[Mapping[str, float]]) -> FloatArray:
    """Return how far other runs (n,) are: expression (9) of the features, 0 identical to 1 orthogonal.

    Each is compared by the groups that are known of both; 1 where there is none.
    """
    names = sorted(set(this).union(*others))
    column = {group: number for number, group in enumerate(sorted(feature_groups(dict.fromkeys(names, 0.0))))}
    of_name = [column[name.split(" ", 1)[0]] for name in names]
    table = np.array([[entry.get(name, 0.0) for name in names] for entry in (this, *others)]).reshape(-1, len(names))
    known = np.array([[group in feature_groups(entry) for group in column] for entry in (this, *others)])
    both = known[1:] & known[0]
    found = measures.compute_distance(table[0] * both[:, of_name], table[1:] * both[:, of_name])
    return np.where(both.any(axis=1), found, 1.0)


def _time_features(profile: Profile) -> Features:
    totals = {part: _sum_measure(profile.phases, part) for part in _PARTS if profile.has_measure(part)}
    wall = _sum_measure(profile.phases, "wall_s") or sum(totals.values())
    return {f"time {part.removesuffix('_s')}": total / wall for part, total in totals.items() if wall > 0 and total > 0}


def _sum_measure(phases: Sequence[Phase], measure: str) -> float:
    return float(sum(np.nansum(phase.arrays[measure]) for phase in phases if measure in phase.arrays))


def _region_features(profile: Profile) -> Features:
    held = [name for name in ("work_s", "wall_s") if any(name in phase.arrays for phase in profile.phases)]
    if not held:
        return {}
    measure = held[0]
    work = np.zeros(len(profile.regions))
    shared = 0.0
    for phase in profile.phases:
        if measure not in phase.arrays:
            continue
        seconds = np.nansum(phase.arrays[measure], axis=(1, 2))
        np.add.at(work, phase.regions, seconds)
        shared += float(seconds.sum() - seconds.max(initial=0.0))
    total = work.sum()
    if total <= 0:
        return {}
    heaviest = np.sort(work)[::-1][:_REGIONS] / total
    ranked = {f"region {number}": share for number, share in enumerate(heaviest.tolist(), 1) if share > 0}
    return ranked | ({"region coupling": shared / float(total)} if shared > 0 else {})


def _cause_features(causes: Causes | None) -> Features:
    if causes is None or not len(causes.seconds):
        return {}
    total = float(np.nansum(causes.seconds))
    found: Features = {}
    for category, kind, seconds in zip(causes.category, causes.kind, causes.seconds, strict=True):
        if total > 0 and seconds > 0 and CAUSE_CATEGORIES[category] != "outside":
            name = f"cause {causes.kinds[kind]}"
            found[name] = found.get(name, 0.0) + float(seconds) / total
    return found
