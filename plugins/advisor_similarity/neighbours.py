"""The known workloads nearest to one, in what they differ, and what an action won there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from advisor.advice.ranking import history_gain, similar_program_gain
from advisor.model.errors import UsageError
from advisor.model.records import Finding, FloatArray, Gap, Profile
from advisor_similarity import features, measures
from advisor_similarity.features import compute_features
from advisor_similarity.library import LibraryEntry, collect_centroids, collect_fine_vectors
from advisor_similarity.steps import COARSE, FINE_NAMES

#: What an entry must hold to be compared.
_HELD: Final = {"profile": "profile", "matrix": "matrix"}
_DIFFERENCES: Final = 3
PLUGIN: Final = "similarity"
#: Workloads farther away than this teach nothing; a choice, as no labelled set of profiles is at hand to fit it on.
NEAR: Final = 0.2
_COUNT: Final = 5


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A known workload, how far it is away (0 identical, 1 orthogonal), and its most different components.

    Each difference is a component with its value here and there; of a mix, its share of all operations.
    """

    entry: LibraryEntry
    distance: float
    differences: tuple[tuple[str, float, float], ...]


def find_nearest(
    this: LibraryEntry, known: Sequence[LibraryEntry], by: str, count: int | None = None
) -> list[Neighbour]:
    """Return the nearest of ``known``, nearest first, without those that lack what is compared.

    ``mix`` compares the proportions of finer classes, ``centroid`` takes expression (9) of the paper's five components,
    ``tanimoto`` its Table 12's measure of them, ``matrix`` Bradley and Larson's parallelism matrices, ``profile`` the
    features of profiles. Raises ``UsageError`` where ``this`` itself lacks it.
    """
    comparable = [entry for entry in known if has_measure(entry, by)]
    if not has_measure(this, by):
        raise UsageError(f"{this.name} has no {_HELD.get(by, 'centroid')} to compare by {by}")
    if not comparable:
        return []
    distances = compute_distances(this, comparable, by)
    order = np.argsort(distances, kind="stable")[:count]
    return [
        Neighbour(comparable[at], float(distances[at]), _find_differences(this, comparable[at], by)) for at in order
    ]


def has_measure(entry: LibraryEntry, by: str) -> bool:
    """Return whether a workload can be compared so."""
    return bool(getattr(entry, _HELD.get(by, "centroid")))


def compute_distances(this: LibraryEntry, known: Sequence[LibraryEntry], by: str) -> FloatArray:
    """Return the distances (n,) of one workload to others that all have what is compared."""
    if by == "profile":
        return features.compute_distances(this.profile, [entry.profile for entry in known])
    if by == "matrix":
        return measures.matrix_distances(this.matrix, [entry.matrix for entry in known])
    if by == "mix":
        return measures.shape_distance(collect_fine_vectors((this,)), collect_fine_vectors(known))
    measure = measures.tanimoto_distance if by == "tanimoto" else measures.compute_distance
    return measure(collect_centroids((this,)), collect_centroids(known))


def compute_pairwise_distances(entries: Sequence[LibraryEntry], by: str) -> FloatArray:
    """Return the distances of all pairs (n, n)."""
    return np.array([compute_distances(entry, entries, by) for entry in entries])


def _select_components(entry: LibraryEntry, by: str) -> Mapping[str, float]:
    if by == "profile":
        return entry.profile
    if by == "matrix":
        return {_format_cell(place): share for place, share in entry.matrix}
    if by == "mix":
        total = sum(entry.fine.values()) or 1.0
        return {name: entry.fine.get(name, 0.0) / total for name in FINE_NAMES[:-1]}
    return dict(zip(COARSE, entry.centroid, strict=True))


def _format_cell(place: Sequence[int]) -> str:
    """Name a parallel instruction, such as ``2 int + 1 mem``."""
    return " + ".join(f"{count} {name}" for count, name in zip(place, COARSE, strict=True) if count) or "nothing"


def _find_differences(this: LibraryEntry, other: LibraryEntry, by: str) -> tuple[tuple[str, float, float], ...]:
    here, there = _select_components(this, by), _select_components(other, by)
    if by == "profile":
        here, there = features.select_common(here, there), features.select_common(there, here)
    apart = {name: abs(here.get(name, 0.0) - there.get(name, 0.0)) for name in (*here, *there)}
    names = sorted((name for name in apart if apart[name] > 0), key=lambda name: -apart[name])
    return tuple((name, here.get(name, 0.0), there.get(name, 0.0)) for name in names[:_DIFFERENCES])


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
