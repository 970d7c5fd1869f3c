"""The loads of one phase: totals, the processors that decide its instances, and its imbalance."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.loads.arrays import PhaseArrays, SecondsLayout
from advisor.support.grouping import sum_by_group

if TYPE_CHECKING:
    from advisor.analysis.loads.arrays import BlockPlane
    from advisor.analysis.measures import Quantities, Quantity
    from advisor.model.records import FloatArray, IntArray, PhaseKind


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
            layouts["steady"] = self._steady_imbalance(each, of_slowest)
            layouts["dynamic"] = self._dynamic_imbalance(of_slowest, mean)
            steady_s, dynamic_s = (float(layouts[name].iterations.sum()) for name in ("steady", "dynamic"))
        loads = PhaseLoads(self.kind, each, slowest, self.peak, self.decider, mean, steady_s, dynamic_s)
        return PhaseSummary(loads, layouts)

    def _average_layouts(self) -> dict[str, SecondsLayout]:
        """Return what the bounds I to IPCO are made of: means over the processors, in serial phases the maximum."""
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

    def _steady_imbalance(self, each: FloatArray, of_slowest: SecondsLayout) -> SecondsLayout:
        """Return B_r: what the slowest processor has more than the mean, over all iterations.

        Regions and processors share it in proportion to their excess over the mean; iterations by
        ``B_r,i = w[r, q*, i] - mean_q w[r, q, i]`` (docs/concepts.md).
        """
        mean = self.arrays.sum_loads(self.kinds.work.terms).scale_by(1 / self.arrays.processors)
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
    positive = np.maximum(weights, 0.0)
    everything = positive.sum()
    if everything <= 0.0:
        return np.full(len(weights), total / len(weights))
    shared: FloatArray = positive / everything * total
    return shared
