"""What advice learns from similar workloads: which they are, and what an action won there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.advice.ranking import history_gain, similar_program_gain
from advisor.model.records import Finding
from advisor_similarity.features import compute_features
from advisor_similarity.library import LibraryEntry
from advisor_similarity.neighbours import Neighbour, find_nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.records import Gap, Profile

PLUGIN: Final = "similarity"
#: Workloads farther away than this teach nothing; a choice, as no labelled set of profiles is at hand to fit it on.
NEAR: Final = 0.2
_COUNT: Final = 5


def build_findings(profile: Profile, gaps: Sequence[Gap], known: Sequence[LibraryEntry]) -> list[Finding]:
    """Return the nearest known profiles that hold experience, and what each action may win by it.

    ``similar``, subject the workload: its distance. ``expectation``, subject the action: the share of its ceiling that
    it won elsewhere (``share``; ``share_low`` and ``share_high`` are a 90 % prediction interval), how many times, and
    the mean distance of where. Programs never teach about themselves here: their own history does that already.
    A program that was observed on the oracle machine is compared by its operations, too, with those that were.
    """
    if not profile.has_run_time:
        return []
    this = LibraryEntry(profile.program, profile.program, profile=compute_features(profile, gaps))
    others = [entry for entry in known if entry.tried and entry.program != profile.program]
    near = _find_near(this, others, "profile") if this.profile else []
    observed = next((entry for entry in known if entry.program == profile.program and entry.centroid), None)
    if observed is not None:
        seen = {one.entry.name for one in near}
        near += [one for one in _find_near(observed, others, "mix") if one.entry.name not in seen]
    return [_similar_finding(one) for one in near] + _build_expectations(near)


def _find_near(this: LibraryEntry, others: Sequence[LibraryEntry], by: str) -> list[Neighbour]:
    return [one for one in find_nearest(this, others, by, _COUNT) if one.distance <= NEAR]


def _similar_finding(one: Neighbour) -> Finding:
    words = "; ".join(tried.description for tried in one.entry.tried)
    origin = f", from {one.entry.origin}" if one.entry.origin else ""
    text = f"behaves like {one.entry.name} (distance {one.distance:.2f}{origin}): there {words}"
    return Finding(PLUGIN, "similar", one.entry.name, text, {"distance": one.distance})


def _build_expectations(near: Sequence[Neighbour]) -> list[Finding]:
    shares: dict[str, list[tuple[float, float]]] = {}
    for one in near:
        for tried in one.entry.tried:
            if len(tried.actions) == 1:
                shares.setdefault(tried.actions[0], []).append((tried.of_ceiling, one.distance))
    return [_build_expectation(action, seen) for action, seen in sorted(shares.items())]


def _build_expectation(action: str, seen: Sequence[tuple[float, float]]) -> Finding:
    gain = history_gain.compute_gain([share for share, _ in seen], 1.0)
    share = min(gain.expected_s, 1.0)
    shares = dict(
        zip(similar_program_gain.MEASURES, (share, min(gain.low_s, share), min(gain.high_s, 1.0)), strict=True)
    )
    apart = sum(distance for _, distance in seen) / len(seen)
    times = "once" if len(seen) == 1 else f"{len(seen)} times"
    text = f"{action} won {share:.0%} of what it could at most, in similar programs, {times}"
    return Finding(
        PLUGIN, similar_program_gain.KIND, action, text, {**shares, "times": float(len(seen)), "distance": apart}
    )
