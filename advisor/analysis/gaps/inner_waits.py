"""Waiting inside the phases, apart from waiting for the end of each.

Where a message comes late, the ranks that need it wait in the middle of the phase and everybody else waits for them at
its end. What W costs is decided in the middle: the end only passes it on. So W belongs to the calls in the middle
wherever there is any waiting in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.model import policy
from advisor.model.records import CAUSE_CATEGORIES, FloatArray, Profile
from advisor.support.grouping import iterate_groups, sum_by_group

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.analysis.loads import ProfileLoads

#: Kinds of waiting in a call that may be the one that closes the phase.
CLOSING_KINDS = ("barrier", "collective", "thread barrier", "end of run")


def select_inner_waits(profile: Profile, loads: ProfileLoads, waiting_s: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which causes are waiting inside phases whose W, ``waiting_s`` (P,), they explain."""
    causes = profile.causes
    if causes is None or not profile.has_phases:
        return np.zeros(0 if causes is None else len(causes.seconds), dtype=bool)
    # Which causes are waiting in another call than the one that closes their phase
    numbers: dict[str | None, int] = {None: -1}
    name = np.array([numbers.setdefault(region.name, len(numbers)) for region in profile.regions] or [0])
    closes = np.array([kind in CLOSING_KINDS for kind in causes.kinds], dtype=bool)[causes.kind]
    # the name of the call that closes each phase, -1 where any may, and -2 for what is in no phase
    closing = np.array([*(numbers.get(phase.closed_by, -2) for phase in profile.phases), -2])[causes.phase]
    at_end = (closing == -1) | (closing == name[causes.call])
    waiting = (causes.category == CAUSE_CATEGORIES.index("wait")) & (causes.phase >= 0)
    inner: npt.NDArray[np.bool_] = waiting & ~(closes & at_end)
    total = sum_by_group(causes.phase[inner], causes.seconds[inner], len(loads.phases))
    explained = (total > 0) & (total >= policy.INNER_WAIT * waiting_s)
    return inner & explained[np.maximum(causes.phase, 0)]


def sum_by_region(
    profile: Profile, loads: ProfileLoads, chosen: npt.NDArray[np.bool_], waiting_s: FloatArray
) -> FloatArray:
    """Return W of the phases that the ``chosen`` causes explain, laid out as ``Spread.regions``.

    It stands at the function that calls, where one is known below the program itself, else at the call.
    """
    laid_out = np.zeros(int(loads.region_first[-1]))
    causes = profile.causes
    if causes is None:
        return laid_out
    # the region at which each cause is shown: its caller's, or its own if only the program itself called
    shown = np.array([region.name != profile.program for region in profile.regions], dtype=bool)
    named = (causes.caller >= 0) & shown[np.maximum(causes.caller, 0)]
    # one number for each region of a phase, so that all causes are looked up at once
    width = len(profile.regions) + 1
    known = [number * width + phase.regions for number, phase in enumerate(profile.phases)]
    inside = np.isin(causes.phase * width + causes.caller, np.concatenate(known or [causes.phase[:0]]))
    place = np.where(named & (inside | (causes.phase < 0)), causes.caller, causes.call)
    rows = np.flatnonzero(chosen)
    for number, group in iterate_groups(causes.phase[rows]):
        mine = rows[group]
        by_place = sum_by_group(place[mine], causes.seconds[mine], len(profile.regions))
        seconds = by_place[profile.phases[number].regions]
        part = slice(int(loads.region_first[number]), int(loads.region_first[number + 1]))
        if seconds.any():  # divided by their own sum, the smallest numbers have shares, too
            laid_out[part] = seconds / seconds.sum() * waiting_s[number]
    return laid_out
