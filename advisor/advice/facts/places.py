"""The sites at which rules are evaluated: long phases, and groups of similar short ones.

What is too small to matter is named here, once. A loop that does two hundred reductions in a row has two hundred phases
of which each is nothing; together, as one site, they are what the run spends its time on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.disturbance import undisturbed_seconds
from advisor.model import policy

if TYPE_CHECKING:
    from advisor.analysis.loads import ProfileLoads
    from advisor.model.records import FloatArray, Phase, Profile


_NUMBER: Final = re.compile(r" \(\d+\)$")


@dataclass(frozen=True, slots=True)
class Place:
    """One site: the phases (indices into ``Profile.phases``, in their order) that are evaluated as one.

    ``family`` are all phases of the same kind, closing call and name, in which events are counted per iteration: a
    loop with ten reductions in a row does ten per iteration, although each of them ends a phase. Without phases it
    is the whole run.
    """

    phases: tuple[int, ...]
    family: tuple[int, ...]
    name: str | None
    seconds: float


def family_name(name: str) -> str:
    """Return the name of a phase without the number that tells it from others of that name."""
    return _NUMBER.sub("", name)


def compute_durations(profile: Profile, loads: ProfileLoads) -> FloatArray:
    """Return the seconds that each phase takes (P,): from synchronization to synchronization, else its largest load.

    Where only CPU times are known, it takes at least those of the busiest processor.
    """
    found = [_compute_duration(phase, loads, p) for p, phase in enumerate(profile.phases)]
    return np.array(found, dtype=np.float64)


def _compute_duration(phase: Phase, loads: ProfileLoads, p: int) -> float:
    if phase.duration_s is not None:
        return float(phase.duration_s.sum())
    if loads.phases[p].has_work:
        return float(loads.phases[p].peak.sum())
    times = phase.arrays.get("wall_s", phase.arrays.get("cpu_s"))
    return float(times.sum(axis=(0, 2)).max(initial=0.0)) if times is not None else 0.0


def find_places(profile: Profile, seconds: FloatArray) -> tuple[Place, ...]:
    """Return the sites of ``profile``, the run itself not among them, in the order of their first phases.

    ``seconds`` are the durations of the phases.
    """
    families: dict[tuple[str, str | None, str], list[int]] = {}
    for p, phase in enumerate(profile.phases):
        families.setdefault((phase.kind, phase.closed_by, family_name(phase.name)), []).append(p)
    found = [place for family in families.values() for place in _places_of_family(profile, seconds, tuple(family))]
    found += _group_remaining(profile, seconds, {p for place in found for p in place.phases})
    return tuple(sorted(found, key=lambda place: place.phases))


def _group_remaining(profile: Profile, seconds: FloatArray, taken: set[int]) -> list[Place]:
    """Return the small phases of each kind that are alone with their names, as one where they matter together."""
    found = []
    for kind in dict.fromkeys(phase.kind for phase in profile.phases):
        left = tuple(p for p, phase in enumerate(profile.phases) if phase.kind == kind and p not in taken)
        together = float(seconds[list(left)].sum())
        if left and is_significant(together, undisturbed_seconds(profile), simulated=profile.is_simulated):
            found.append(Place(left, left, f"{len(left)} small phases", together))
    return found


def is_significant(seconds: float, actual_s: float, *, simulated: bool = False) -> bool:
    """Return whether ``seconds`` are enough of a run of ``actual_s``, without what others took, to be worth a word.

    In a ``simulated`` run no second is noise, so however few count that are enough of it.
    """
    return seconds >= max(policy.PLACE_SHARE * actual_s, 0.0 if simulated else policy.PLACE_SECONDS)


def _places_of_family(profile: Profile, seconds: FloatArray, family: tuple[int, ...]) -> list[Place]:
    """Return the large phases one by one and the small ones as one, where they matter together."""
    own_s = undisturbed_seconds(profile)
    large = [p for p in family if is_significant(float(seconds[p]), own_s, simulated=profile.is_simulated)]
    small = tuple(p for p in family if p not in large)
    found = [Place((p,), family, profile.phases[p].name, float(seconds[p])) for p in large]
    together = float(seconds[list(small)].sum())
    if small and is_significant(together, own_s, simulated=profile.is_simulated):
        name = family_name(profile.phases[small[0]].name)
        found.append(Place(small, family, f"{name} ({len(small)} phases)", together))
    return found
