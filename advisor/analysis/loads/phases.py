"""The loads of phases, and of a whole profile in one pass: the inputs of bounds, gaps and facts.

The arrays may be larger than memory (mapped files). Each is read once, in blocks that fit into the cache; what is kept
has one value per region, processor or iteration of a phase, never one per sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.loads.arrays import BlockPlane, PhaseArrays, RankThreads, SecondsLayout, find_rank_threads
from advisor.analysis.measures import Quantities, Quantity, derive_quantities
from advisor.support.grouping import sum_by_group

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray, PhaseKind, Profile


@dataclass(frozen=True, slots=True)
class PhaseLoads:
    """The loads of one phase in seconds; without values where the work of the processors is not known.

    ``work`` (Q,) is the load of each processor over all iterations, ``slowest`` the processor of the largest (the first
    of equals). ``peak`` (I,) is the largest load in each iteration, ``decider`` (I,) the processor that has it,
    ``mean`` (I,) the mean over the processors. ``steady_s`` is B_r and ``dynamic_s`` D_r of docs/concepts.md; they are
    zero in serial phases.
    """

    kind: PhaseKind
    work: FloatArray
    slowest: int
    peak: FloatArray
    decider: IntArray
    mean: FloatArray
    steady_s: float = 0.0
    dynamic_s: float = 0.0

    @property
    def has_work(self) -> bool:
        """Whether the work of the processors is known."""
        return bool(len(self.work))


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """The contribution of one phase: its loads, and seconds by name (``loads.Loads`` says which)."""

    loads: PhaseLoads
    layouts: dict[str, SecondsLayout]


def compute_phase_loads(arrays: PhaseArrays, kind: PhaseKind, kinds: Quantities) -> PhaseSummary:
    """Return the loads of a phase; what needs a quantity that is not known is left out."""
    reader = _PhaseAccumulator(arrays, kind, kinds)
    for part in arrays.split_iterations():
        reader.add_block(part)
    return reader.build_summary()


class _PhaseAccumulator:
    """Takes in the blocks of one phase, one after the other."""

    def __init__(self, arrays: PhaseArrays, kind: PhaseKind, kinds: Quantities) -> None:
        self.arrays, self.kind, self.kinds = arrays, kind, kinds
        self.averages = {"IP": kinds.computation, "IPC": kinds.communication, "IPCO": kinds.work}
        self.deciding = {"sync": kinds.sync, "wait": kinds.wait}
        self.picked: dict[str, SecondsLayout] = defaultdict(arrays.make_layout)
        self.decider = np.zeros(arrays.iterations, dtype=np.int64)
        self.peak = np.zeros(arrays.iterations)

    def add_block(self, part: slice) -> None:
        """Take in the iterations of ``part``."""
        planes = self.arrays.sum_block(part)
        if self.kind == "serial":
            for name, quantity in self.averages.items():
                if quantity.is_known:
                    self._add_picked_load(name, quantity, self._processor_loads(quantity, planes).argmax(axis=0), part)
        if self.kinds.work.is_known:
            self._record_deciders(self._processor_loads(self.kinds.work, planes), part)

    def _processor_loads(self, quantity: Quantity, planes: dict[str, BlockPlane]) -> FloatArray:
        return self.arrays.sum_planes(quantity.terms, planes).processor_loads(self.arrays.team)

    def _add_picked_load(self, name: str, quantity: Quantity, who: IntArray, part: slice) -> None:
        if quantity.is_known and quantity.terms:
            self.arrays.add_processor_loads(quantity.terms, who, part, self.picked[name])

    def _record_deciders(self, load: FloatArray, part: slice) -> None:
        """Note who decides each instance, and what that processor spent."""
        who = load.argmax(axis=0)
        self.decider[part] = who
        self.peak[part] = load[who, np.arange(load.shape[1])]
        if self.kind == "whole":
            return
        for name, quantity in self.deciding.items():
            self._add_picked_load(name, quantity, who, part)
        if self.kind == "parallel" and self.arrays.iterations > 1 and self.arrays.regions > 1:
            self._add_picked_load("IPCO", self.kinds.work, who, part)

    def build_summary(self) -> PhaseSummary:
        """Return the loads and layouts of the whole phase."""
        layouts = self._average_layouts()
        work = self.kinds.work
        if not work.is_known:
            nothing = np.zeros(0)
            return PhaseSummary(PhaseLoads(self.kind, nothing, -1, nothing, nothing.astype(np.int64), nothing), layouts)
        each = self.arrays.processor_loads(work.terms)
        slowest = int(each.argmax())
        layouts |= self._decider_layouts(slowest)
        mean = self.arrays.sum_loads(work.terms).iterations / self.arrays.processors
        steady_s = dynamic_s = 0.0
        if self.kind != "serial":
            of_slowest = self._processor_layout(work, slowest)
            layouts["steady"] = self._steady_imbalance(each, of_slowest, layouts["IPCO"])
            layouts["dynamic"] = self._dynamic_imbalance(of_slowest, mean)
            steady_s, dynamic_s = (float(layouts[name].iterations.sum()) for name in ("steady", "dynamic"))
        loads = PhaseLoads(self.kind, each, slowest, self.peak, self.decider, mean, steady_s, dynamic_s)
        return PhaseSummary(loads, layouts)

    def _average_layouts(self) -> dict[str, SecondsLayout]:
        """Return the seconds behind the bounds I to IPCO: means over the processors, in serial phases the maximum."""
        arrays, share = self.arrays, 1 / self.arrays.processors
        found = {}
        if self.kinds.computation.is_known:
            found["I"] = arrays.sum_spent(self.kinds.computation.terms).scale_by(share)
        for name, quantity in self.averages.items():
            if quantity.is_known:
                serial = self.kind == "serial"
                found[name] = self.picked[name] if serial else arrays.sum_loads(quantity.terms).scale_by(share)
        return found

    def _decider_layouts(self, slowest: int) -> dict[str, SecondsLayout]:
        """Return what the deciding processors synchronized and waited; without phases that is one processor."""
        known = {name: quantity for name, quantity in self.deciding.items() if quantity.is_known}
        if self.kind == "whole":
            return {name: self._processor_layout(quantity, slowest) for name, quantity in known.items()}
        return {name: self.picked[name] for name in known}

    def _processor_layout(self, quantity: Quantity, processor: int) -> SecondsLayout:
        """Return the load of one processor in all iterations."""
        layout = self.arrays.make_layout()
        for part in self.arrays.split_iterations() if quantity.terms else ():
            who = np.full(part.stop - part.start, processor)
            self.arrays.add_processor_loads(quantity.terms, who, part, layout)
        return layout

    def _steady_imbalance(self, each: FloatArray, of_slowest: SecondsLayout, mean: SecondsLayout) -> SecondsLayout:
        """Return B_r: what the slowest processor has more than the ``mean``, over all iterations.

        Regions and processors share it in proportion to their excess over the mean; iterations by
        ``B_r,i = w[r, q*, i] - mean_q w[r, q, i]`` (docs/concepts.md).
        """
        iterations = of_slowest.iterations - mean.iterations
        total = float(iterations.sum())
        return SecondsLayout(
            apportion_seconds(total, of_slowest.regions - mean.regions),
            iterations,
            apportion_seconds(total, each - each.mean()),
        )

    def _dynamic_imbalance(self, of_slowest: SecondsLayout, mean: FloatArray) -> SecondsLayout:
        """Return D_r: what the deciding processors have more than the slowest of all iterations.

        Regions share it in proportion to what the deciding processors have more there, processors in proportion to
        their excess over the mean in the iterations that they decide.
        """
        iterations = self.peak - of_slowest.iterations
        if self.kind == "whole" or len(iterations) == 1:
            return self.arrays.make_layout()
        total = float(iterations.sum())
        regions = self.picked["IPCO"].regions - of_slowest.regions
        excess = sum_by_group(self.decider, self.peak - mean, self.arrays.processors)
        return SecondsLayout(apportion_seconds(total, regions), iterations, apportion_seconds(total, excess))


def apportion_seconds(total: float, weights: FloatArray) -> FloatArray:
    """Return ``total`` shared out in proportion to the positive ``weights``; equally if there are none."""
    if len(weights) == 1:
        return np.array([total])
    positive = np.maximum(weights, 0.0)
    everything = positive.sum()
    if everything <= 0.0:
        return np.full(len(weights), total / len(weights))
    shared: FloatArray = positive / everything * total
    return shared


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
