"""An excerpt of a long run that changes are tried on: a hundred steps show what a thousand would gain.

Parts spread over the run, from one moment at which all processes synchronize to another, stand one behind the other.
Phases that come too seldom to be represented are left out. A gain in the excerpt counts as many times as the phases it
is about take longer in the run; so does its interval, which is that of fewer instances, and thus wider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.compiling import is_worth_compiling
from advisor.trace import segmentation
from advisor.trace.excerpts import extract_parts
from advisor.trace.profile import WORTH_COMPILING, WORTH_LOADING

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray, Profile
    from advisor.trace.events import Trace

#: Events of an excerpt, about, and at most: that of many ranks takes more for as many instances.
EVENTS: Final = 300_000
MOST_EVENTS: Final = 2_000_000
#: Parts at most, and at least: fewer tell too little of what changes during a run.
MOST_PARTS: Final = 24
LEAST_PARTS: Final = 5
#: Instances that a part has at least, so that most of what happens is not at its ends.
LEAST_STEPS: Final = 3
#: A phase that comes less often is not represented by some of its instances.
OFTEN: Final = 5
#: The phases that come often take this share of the run at least.
COVERED: Final = 0.5
#: Moments by which the clock of the first process is told from that of the run, and how many begins are tried.
_MOMENTS: Final = 64
_BEGINS: Final = 4096
#: An instance begins where the trace can be cut if that is not further away than this part of an instance.
_NEAR: Final = 0.01


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A shorter run: its ``profile`` and ``trace``.

    ``phase`` gives the number in the excerpt of each phase of the run that it has, ``seconds`` what these take in the
    run and in the excerpt (2, phases of the excerpt).
    """

    profile: Profile
    trace: Trace
    phase: Mapping[int, int]
    seconds: FloatArray

    def find_phases(self, phases: set[int]) -> set[int] | None:
        """Return the numbers in the excerpt of some phases of the run (none: all); None where it has none of them."""
        found = {self.phase[number] for number in phases if number in self.phase}
        return found if found or not phases else None

    def scale_gain(self, phases: set[int]) -> float:
        """Return how many times a gain in these phases of the excerpt (all, if none) is won in the run."""
        chosen = sorted(phases) or slice(None)
        whole, part = self.seconds[:, chosen].sum(axis=1)
        return float(whole / part)


def take_excerpt(profile: Profile, trace: Trace, events: int = EVENTS) -> Excerpt | None:
    """Return an excerpt of about ``events`` events; None where a run without threads can't be cut into enough parts."""
    instances = _list_instances(profile)
    if instances is None:
        return None
    often = (np.bincount(instances.phase) >= OFTEN)[instances.phase]
    if float(instances.duration_s[often].sum()) < COVERED * profile.actual_s:
        return None
    compiled = is_worth_compiling(len(trace.kind), loading=WORTH_LOADING, compiling=WORTH_COMPILING)
    cuts = segmentation.find_cut_points(trace, compiled=compiled)
    if cuts is None:
        return None
    at, place = _match_cuts(instances.start_s, trace.time_s[cuts[:, 0] - 1], float(trace.time_s[trace.first[0]]))
    if len(at) < 2:
        return None
    seldom = np.r_[0, np.cumsum(~often)]
    begin, end = _choose_parts((cuts[at] - trace.first[:-1]).sum(axis=1), seldom[place], events)
    if len(begin) < LEAST_PARTS:
        return None
    extracted = extract_parts(trace, cuts[at[begin]].T, cuts[at[end]].T)
    return None if extracted is None else _build_excerpt(profile, *extracted, instances, place[begin], place[end])


@dataclass(frozen=True, slots=True)
class _Instances:
    """The instances of all phases in the order of time: ``phase``, ``number`` within it, ``start_s``, and durations."""

    phase: IntArray
    number: IntArray
    start_s: FloatArray
    duration_s: FloatArray


def _list_instances(profile: Profile) -> _Instances | None:
    """Return all instances; None where their times are not known."""
    phases = profile.phases
    if not phases or any(phase.start_s is None or phase.duration_s is None for phase in phases):
        return None
    counts = [phase.iterations for phase in phases]
    starts = np.concatenate([phase.start_s for phase in phases if phase.start_s is not None])
    lasting = np.concatenate([phase.duration_s for phase in phases if phase.duration_s is not None])
    order = np.argsort(starts, kind="stable")
    number = np.concatenate([np.arange(count) for count in counts])
    return _Instances(np.repeat(np.arange(len(counts)), counts)[order], number[order], starts[order], lasting[order])


def _match_cuts(start_s: FloatArray, cut_s: FloatArray, first_s: float) -> tuple[IntArray, IntArray]:
    """Return which cuts lie at the beginning of an instance, and of which.

    ``cut_s`` are times of the first process, whose clock is that of the run, but begins at another moment: the one from
    which on the most cuts are where instances begin; of those that are equally good, the one nearest to ``first_s``.
    """
    near_s = _NEAR * float(np.median(np.diff(start_s)))
    moments = cut_s[np.unique(np.linspace(0, len(cut_s) - 1, _MOMENTS).round().astype(int))]
    begins = moments[len(moments) // 2] - start_s
    begins = begins[np.argsort(np.abs(begins - first_s))[:_BEGINS]]
    fitting = np.array([np.count_nonzero(_find_distance(start_s, moments - begin)[1] <= near_s) for begin in begins])
    place, distance = _find_distance(start_s, cut_s - begins[fitting.argmax()])
    at = np.flatnonzero((distance <= near_s) & np.r_[True, np.diff(place) > 0])
    return at, place[at]


def _find_distance(start_s: FloatArray, moment_s: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the start that is nearest to each moment, and how far that is, seconds."""
    right = np.clip(np.searchsorted(start_s, moment_s), 1, len(start_s) - 1)
    place = np.where(moment_s - start_s[right - 1] < start_s[right] - moment_s, right - 1, right)
    return place, np.abs(moment_s - start_s[place])


def _choose_parts(before: IntArray, seldom: IntArray, events: int) -> tuple[IntArray, IntArray]:
    """Return the cuts at which parts begin and end, evenly spread over the events; empty where steps are too long.

    ``before`` counts the events before each cut, ``seldom`` the instances of phases that come too seldom.
    """
    steps = len(before) - 1
    usual = (before[-1] - before[0]) / max(steps, 1)
    events = min(max(events, round(LEAST_PARTS * LEAST_STEPS * usual) + 1), MOST_EVENTS)
    parts = min(MOST_PARTS, int(events / (LEAST_STEPS * usual)), steps // LEAST_STEPS)
    middle = before[0] + (np.arange(parts) + 0.5) / max(parts, 1) * (before[-1] - before[0])
    begin, end = (np.searchsorted(before, middle + share * events / max(parts, 1)) for share in (-0.5, 0.5))
    begin, end = np.maximum(begin, np.r_[0, end[:-1]][: len(begin)]), np.minimum(end, steps)
    kept = (end > begin) & (seldom[end] == seldom[np.minimum(begin, steps)])
    return begin[kept], end[kept]


def _build_excerpt(
    profile: Profile, extracted: Trace, start_s: FloatArray, instances: _Instances, begin: IntArray, end: IntArray
) -> Excerpt:
    """Return the excerpt with the instances from ``begin`` to ``end`` (parts,), which starts at ``start_s`` there."""
    chosen = np.concatenate([np.arange(low, high) for low, high in zip(begin, end, strict=True)])
    moved = np.repeat(start_s - instances.start_s[begin], end - begin)
    phases, numbers = [], np.unique(instances.phase[chosen]).tolist()
    for number in numbers:
        mine = instances.phase[chosen] == number
        which, phase = instances.number[chosen[mine]], profile.phases[number]
        phases.append(
            replace(
                phase, arrays={name: array[:, :, which] for name, array in phase.arrays.items()},
                start_s=(instances.start_s[chosen] + moved)[mine], duration_s=instances.duration_s[chosen[mine]],
            )
        )  # fmt: skip
    seconds = np.array([
        [float(instances.duration_s[instances.phase == number].sum()) for number in numbers],
        [float(phase.duration_s.sum()) for phase in phases if phase.duration_s is not None],
    ])  # fmt: skip
    part = replace(profile, phases=tuple(phases), actual_s=float(extracted.time_s.max()))
    share = part.actual_s / profile.actual_s
    part = replace(part, counts={name: table * share for name, table in profile.counts.items()})
    return Excerpt(part, extracted, {number: place for place, number in enumerate(numbers)}, seconds)
