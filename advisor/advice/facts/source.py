"""The inputs of the facts of one site."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.advice.facts.event_rows import EventRows
    from advisor.advice.facts.fact_records import Value
    from advisor.analysis.loads import ProfileLoads
    from advisor.analysis.machines import Machine
    from advisor.model.recommendations import Need
    from advisor.model.records import FloatArray, Profile


@dataclass(frozen=True, slots=True)
class GapSpan:
    """The seconds of a gap at a site, as far as known: one value, or limits where levels of the hierarchy are missing.

    ``formula`` says how it is computed, ``need`` what would tell it exactly.
    """

    low: float
    high: float
    formula: str
    need: Need | None = None


#: The note of a profile that says that threads exist of which nothing was recorded.
UNOBSERVED: Final = "unobserved threads"


class MeasureTotals:
    """Sums of the arrays of a profile, each made once: arrays may be larger than memory."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[tuple[str, int], float | None] = {}

    def sum_measure(self, measure: str, phase: int) -> float | None:
        """Return the seconds of a measure in a phase; None where it lacks it."""
        if (measure, phase) not in self._known:
            array = self._profile.phases[phase].arrays.get(measure)
            self._known[measure, phase] = None if array is None else float(array.sum())
        return self._known[measure, phase]


@dataclass(frozen=True, slots=True)
class FactSource:
    """The inputs of the facts of one site.

    ``seconds`` (P,) are the durations of all phases; ``phases`` are those of the site, ``events`` what happens in them;
    ``family`` and ``family_events`` are the same for the site's family. For facts of the run the site is all phases.
    """

    profile: Profile
    loads: ProfileLoads
    totals: MeasureTotals
    machine: Machine | None
    seconds: FloatArray
    phases: tuple[int, ...]
    family: tuple[int, ...]
    events: EventRows | None
    family_events: EventRows | None

    @property
    def is_work_known(self) -> bool:
        """Whether the work of the processors is known."""
        return bool(self.phases) and all(self.loads.phases[p].has_work for p in self.phases)

    @property
    def work(self) -> FloatArray:
        """The load of each processor in the phases of the site (Q,)."""
        total: FloatArray = np.sum([self.loads.phases[p].work for p in self.phases], axis=0)
        return total

    @property
    def peaks(self) -> FloatArray:
        """The largest load in each iteration of each phase of the site."""
        return np.concatenate([self.loads.phases[p].peak for p in self.phases])

    def mean_computation(self, phase: int) -> FloatArray:
        """Return the mean computation of each instance of a phase; the mean load where that is not known."""
        spread = self.loads.spreads.get("I")
        first = self.loads.iteration_first
        known = self.loads.phases[phase].mean
        return known if spread is None else spread.iterations[first[phase] : first[phase + 1]]

    def sum_measure(self, measure: str) -> float | None:
        """Return the seconds of a measure in the phases of the site; None where one lacks it."""
        parts = [self.totals.sum_measure(measure, p) for p in self.phases]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


def compute_share(part: float | None, whole: float | None) -> float | None:
    """Return ``part / whole``; 0 of nothing is 0, and what is unknown stays so."""
    if part is None or whole is None:
        return None
    return part / whole if whole > 0 else 0.0


Compute = Callable[[FactSource], "Value | None"]
