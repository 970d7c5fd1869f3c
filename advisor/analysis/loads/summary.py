"""One pass over the arrays of a profile: the inputs of bounds, gaps and facts.

The arrays may be larger than memory (mapped files). Each is read once, in blocks that fit into the cache; what is kept
has one value per region, processor or iteration of a phase, never one per sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.loads.arrays import PhaseArrays, RankThreads, find_rank_threads
from advisor.analysis.loads.phases import PhaseLoads, compute_phase_loads
from advisor.analysis.measures import Quantities, derive_quantities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.model.records import FloatArray, IntArray, Profile


@dataclass(frozen=True, slots=True)
class SecondsSpread:
    """Seconds by region, by processor and by iteration; the three sums are equal.

    ``regions`` holds the regions of all phases one after the other, ``iterations`` their iterations; ``rest`` (phases,)
    is what no region of the phase accounts for. ``outside`` names seconds in no phase; ``processors`` (Q,) holds
    them too, the others do not.
    """

    regions: FloatArray
    rest: FloatArray
    processors: FloatArray
    iterations: FloatArray
    outside: Mapping[str, float] = field(default_factory=dict)

    def add_scaled(self, other: SecondsSpread, factor: float = 1.0) -> SecondsSpread:
        """Return the sum of these seconds and ``factor`` times ``other``."""
        names = (*self.outside, *(name for name in other.outside if name not in self.outside))
        return SecondsSpread(
            self.regions + factor * other.regions,
            self.rest + factor * other.rest,
            self.processors + factor * other.processors,
            self.iterations + factor * other.iterations,
            {name: self.outside.get(name, 0.0) + factor * other.outside.get(name, 0.0) for name in names},
        )


@dataclass(frozen=True, slots=True)
class ProfileLoads:
    """The result of one pass over a profile.

    ``phases`` holds the totals of each phase. ``spreads`` lays out, by name, the bounds ``I``, ``IP``, ``IPC`` and
    ``IPCO``, what the processors that decide the instances spend on ``sync`` and ``wait``, and the imbalance:
    ``steady`` (the B_r of docs/concepts.md, which add up to L + M') and ``dynamic`` (the D_r). What is not known is
    absent. Phase p has the regions ``region_first[p]`` to ``region_first[p + 1]`` of a spread; iterations likewise.
    """

    quantities: Quantities
    team: RankThreads
    phases: tuple[PhaseLoads, ...]
    spreads: Mapping[str, SecondsSpread]
    region_first: IntArray
    iteration_first: IntArray

    @property
    def processors(self) -> int:
        """The number of processors, N."""
        return len(self.team.master)

    @property
    def parallel_work(self) -> FloatArray:
        """The load of each processor in all parallel phases together, seconds (Q,)."""
        total: FloatArray = np.zeros(self.processors)
        for phase in self.phases:
            if phase.has_work and phase.kind != "serial":
                total += phase.work
        return total

    @property
    def empty_spread(self) -> SecondsSpread:
        """A spread of no seconds."""
        return make_empty_spread(self.region_first, self.iteration_first, self.processors)

    def sum_by_phase(self, spread: SecondsSpread) -> FloatArray:
        """Return the seconds of ``spread`` in each phase (P,)."""
        if not len(self.phases):
            return np.zeros(0)
        padded = np.r_[spread.regions, 0.0]
        return np.add.reduceat(padded, self.region_first[:-1]) + spread.rest


def summarize_loads(profile: Profile) -> ProfileLoads:
    """Return the loads of ``profile``; memory beyond the profile grows with regions + processors + iterations only."""
    kinds = derive_quantities(profile)
    team = find_rank_threads(profile.processors)
    made_of = (kinds.computation, kinds.communication, kinds.work, kinds.sync, kinds.wait)
    measures = tuple(dict.fromkeys(name for quantity in made_of for name, _ in quantity.terms))
    region_first = _start_offsets([len(phase.regions) for phase in profile.phases])
    iteration_first = _start_offsets([phase.iterations for phase in profile.phases])
    found: list[PhaseLoads] = []
    spreads: dict[str, SecondsSpread] = {}
    for number, phase in enumerate(profile.phases):
        part = compute_phase_loads(PhaseArrays(phase, profile.regions, team, measures), phase.kind, kinds)
        found.append(part.loads)
        for name, layout in part.layouts.items():
            if name not in spreads:
                spreads[name] = make_empty_spread(region_first, iteration_first, len(team.master))
            spread = spreads[name]
            spread.regions[region_first[number] : region_first[number + 1]] = layout.regions
            spread.iterations[iteration_first[number] : iteration_first[number + 1]] = layout.iterations
            spread.processors[:] += layout.processors
    return ProfileLoads(kinds, team, tuple(found), spreads, region_first, iteration_first)


def make_empty_spread(region_first: IntArray, iteration_first: IntArray, processors: int) -> SecondsSpread:
    """Return a spread of zeros over these phases."""
    return SecondsSpread(
        np.zeros(int(region_first[-1])),
        np.zeros(len(region_first) - 1),
        np.zeros(processors),
        np.zeros(int(iteration_first[-1])),
    )


def _start_offsets(lengths: list[int]) -> IntArray:
    return np.cumsum([0, *lengths], dtype=np.int64)
