"""The loads of one phase: totals, the processors that decide its instances, and its imbalance."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.loads.arrays import Layout, PhaseArrays
from advisor.support.grouping import sums

if TYPE_CHECKING:
    from advisor.analysis.loads.arrays import Plane
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
    def known(self) -> bool:
        """Whether the work of the processors is known."""
        return bool(len(self.work))


@dataclass(frozen=True, slots=True)
class Part:
    """What one phase contributes: its loads, and seconds laid out by name (``loads.Loads`` says which)."""

    loads: PhaseLoads
    layouts: dict[str, Layout]


def read_phase(arrays: PhaseArrays, kind: PhaseKind, kinds: Quantities) -> Part:
    """Return the loads of a phase; what needs a quantity that is not known is left out."""
    reader = _Reader(arrays, kind, kinds)
    for part in arrays.parts():
        reader.read(part)
    return reader.result()


class _Reader:
    """Takes in the blocks of one phase, one after the other."""

    def __init__(self, arrays: PhaseArrays, kind: PhaseKind, kinds: Quantities) -> None:
        self.arrays, self.kind, self.kinds = arrays, kind, kinds
        self.averages = {"IP": kinds.computation, "IPC": kinds.communication, "IPCO": kinds.work}
        self.deciding = {"sync": kinds.sync, "wait": kinds.wait}
        self.picked: dict[str, Layout] = defaultdict(arrays.layout)
        self.decider = np.zeros(arrays.iterations, dtype=np.int64)
        self.peak = np.zeros(arrays.iterations)

    def read(self, part: slice) -> None:
        """Take in the iterations of ``part``."""
        planes = self.arrays.read(part)
        if self.kind == "serial":
            for name, quantity in self.averages.items():
                if quantity.known:
                    self._pick(name, quantity, self._load(quantity, planes).argmax(axis=0), part)
        if self.kinds.work.known:
            self._decide(self._load(self.kinds.work, planes), part)

    def _load(self, quantity: Quantity, planes: dict[str, Plane]) -> FloatArray:
        return self.arrays.plane(quantity.terms, planes).load(self.arrays.team)

    def _pick(self, name: str, quantity: Quantity, who: IntArray, part: slice) -> None:
        if quantity.known and quantity.terms:
            self.arrays.pick(quantity.terms, who, part, self.picked[name])

    def _decide(self, load: FloatArray, part: slice) -> None:
        """Note who decides each instance, and what that processor spent."""
        who = load.argmax(axis=0)
        self.decider[part] = who
        self.peak[part] = load[who, np.arange(load.shape[1])]
        if self.kind == "whole":
            return
        for name, quantity in self.deciding.items():
            self._pick(name, quantity, who, part)
        if self.kind == "parallel" and self.arrays.iterations > 1 and self.arrays.regions > 1:
            self._pick("IPCO", self.kinds.work, who, part)

    def result(self) -> Part:
        """Return the loads and layouts of the whole phase."""
        layouts = self._averages()
        work = self.kinds.work
        if not work.known:
            nothing = np.zeros(0)
            return Part(PhaseLoads(self.kind, nothing, -1, nothing, nothing.astype(np.int64), nothing), layouts)
        each = self.arrays.load_of_each(work.terms)
        slowest = int(each.argmax())
        layouts |= self._of_deciders(slowest)
        mean = self.arrays.loads(work.terms).iterations / self.arrays.processors
        steady_s = dynamic_s = 0.0
        if self.kind != "serial":
            of_slowest = self._of_one(work, slowest)
            layouts["steady"] = self._steady(each, of_slowest)
            layouts["dynamic"] = self._dynamic(of_slowest, mean)
            steady_s, dynamic_s = (float(layouts[name].iterations.sum()) for name in ("steady", "dynamic"))
        loads = PhaseLoads(self.kind, each, slowest, self.peak, self.decider, mean, steady_s, dynamic_s)
        return Part(loads, layouts)

    def _averages(self) -> dict[str, Layout]:
        """Return what the bounds I to IPCO are made of: means over the processors, in serial phases the maximum."""
        arrays, share = self.arrays, 1 / self.arrays.processors
        found = {}
        if self.kinds.computation.known:
            found["I"] = arrays.spent(self.kinds.computation.terms).scaled(share)
        for name, quantity in self.averages.items():
            if quantity.known:
                serial = self.kind == "serial"
                found[name] = self.picked[name] if serial else arrays.loads(quantity.terms).scaled(share)
        return found

    def _of_deciders(self, slowest: int) -> dict[str, Layout]:
        """Return what the deciding processors synchronized and waited; without phases that is one processor."""
        known = {name: quantity for name, quantity in self.deciding.items() if quantity.known}
        if self.kind == "whole":
            return {name: self._of_one(quantity, slowest) for name, quantity in known.items()}
        return {name: self.picked[name] for name in known}

    def _of_one(self, quantity: Quantity, processor: int) -> Layout:
        """Return the load of one processor in all iterations."""
        layout = self.arrays.layout()
        for part in self.arrays.parts() if quantity.terms else ():
            who = np.full(part.stop - part.start, processor)
            self.arrays.pick(quantity.terms, who, part, layout)
        return layout

    def _steady(self, each: FloatArray, of_slowest: Layout) -> Layout:
        """Return B_r: what the slowest processor has more than the mean, over all iterations.

        Regions and processors share it in proportion to their excess over the mean; iterations by
        ``B_r,i = w[r, q*, i] - mean_q w[r, q, i]`` (docs/concepts.md).
        """
        mean = self.arrays.loads(self.kinds.work.terms).scaled(1 / self.arrays.processors)
        iterations = of_slowest.iterations - mean.iterations
        total = float(iterations.sum())
        return Layout(
            apportion(total, of_slowest.regions - mean.regions),
            iterations,
            apportion(total, each - each.mean()),
        )

    def _dynamic(self, of_slowest: Layout, mean: FloatArray) -> Layout:
        """Return D_r: what the deciding processors have more than the slowest of all iterations.

        Regions share it in proportion to what the deciding processors have more there, processors in proportion to
        their excess over the mean in the iterations that they decide.
        """
        iterations = self.peak - of_slowest.iterations
        if self.kind == "whole" or len(iterations) == 1:
            return self.arrays.layout()
        total = float(iterations.sum())
        regions = self.picked["IPCO"].regions - of_slowest.regions
        excess = sums(self.decider, self.peak - mean, self.arrays.processors)
        return Layout(apportion(total, regions), iterations, apportion(total, excess))


def apportion(total: float, weights: FloatArray) -> FloatArray:
    """Return ``total`` shared out in proportion to the positive ``weights``; equally if there are none."""
    positive = np.maximum(weights, 0.0)
    everything = positive.sum()
    if everything <= 0.0:
        return np.full(len(weights), total / len(weights))
    shared: FloatArray = positive / everything * total
    return shared
