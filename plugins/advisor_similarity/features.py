"""A profile as a vector, where no binary is at hand: where its time goes, whatever the run's length and names.

All components are shares of the run's processor time or of its wall time, so that a run twice as long, with the same
things in it, is the same point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.errors import InputError
from advisor.model import CAUSE_CATEGORIES, GAP_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.model import Advice, Causes, FloatArray, Gap, Phase, Profile

Features = dict[str, float]
#: How many regions are looked at by their rank, the heaviest first.
_REGIONS: Final = 8
_PARTS: Final = ("work_s", "transfer_s", "wait_s", "sync_s", "io_s", "os_s")


def features(profile: Profile, gaps: Sequence[Gap]) -> Features:
    """Return the features of a run, each 0 to 1; raises ``InputError`` for a run without times.

    ``gap X`` is a gap's share of the run. ``wait_s``, ``work_s`` … are shares of the processors' time in phases.
    ``region 1`` … are the shares of the work in the heaviest regions, without their names. ``coupling`` is the share
    of the work that stands in phases of several regions, which can exchange data through the caches. ``cause …``
    divides waiting and transfer by what they came from.
    """
    if not profile.timed or profile.actual_s <= 0:
        raise InputError(profile.program or profile.run, "it holds no times to compare")
    found = {f"gap {gap.name}": max(0.0, gap.seconds) / profile.actual_s for gap in gaps if gap.name in GAP_NAMES}
    return {**found, **_parts(profile), **_regions(profile), **_causes(profile.causes)}


def features_of(advice: Advice) -> Features:
    """Return the features of a run that advice was given on."""
    return features(advice.profile, advice.gaps)


def vectors(first: Mapping[str, float], *others: Mapping[str, float]) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names of all components and the vectors (1 + others, components), 0 where one has no such part."""
    names = tuple(sorted(set(first).union(*others)))
    return names, np.array([[entry.get(name, 0.0) for name in names] for entry in (first, *others)])


def _parts(profile: Profile) -> Features:
    totals = {part: _total(profile.phases, part) for part in _PARTS if profile.has(part)}
    wall = _total(profile.phases, "wall_s") or sum(totals.values())
    return {part.removesuffix("_s"): total / wall for part, total in totals.items() if wall > 0 and total > 0}


def _total(phases: Sequence[Phase], measure: str) -> float:
    return float(sum(np.nansum(phase.arrays[measure]) for phase in phases if measure in phase.arrays))


def _regions(profile: Profile) -> Features:
    measure = "work_s" if profile.has("work_s") else "wall_s"
    if not profile.has(measure):
        return {}
    work = np.zeros(len(profile.regions))
    shared = 0.0
    for phase in profile.phases:
        seconds = np.nansum(phase.arrays[measure], axis=(1, 2))
        np.add.at(work, phase.regions, seconds)
        shared += float(seconds.sum() - seconds.max(initial=0.0))
    total = work.sum()
    if total <= 0:
        return {}
    heaviest = np.sort(work)[::-1][:_REGIONS] / total
    ranked = {f"region {number}": share for number, share in enumerate(heaviest.tolist(), 1) if share > 0}
    return ranked | ({"coupling": shared / float(total)} if shared > 0 else {})


def _causes(causes: Causes | None) -> Features:
    if causes is None or not len(causes.seconds):
        return {}
    total = float(np.nansum(causes.seconds))
    found: Features = {}
    for category, kind, seconds in zip(causes.category, causes.kind, causes.seconds, strict=True):
        if total > 0 and seconds > 0 and CAUSE_CATEGORIES[category] != "outside":
            name = f"cause {causes.kinds[kind]}"
            found[name] = found.get(name, 0.0) + float(seconds) / total
    return found
