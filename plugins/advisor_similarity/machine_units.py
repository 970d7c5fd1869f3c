"""A workload held against the functional units of a machine: which of them it would wait for.

The centroid says which units a machine needs for a program (A. Meajil, T. El-Ghazawi and T. Sterling, section 1: the
operations of each type that can run side by side). What a real machine lacks of them, and what it has in vain, is own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_similarity.measures import shape_distance

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor.analysis.machines.records import FunctionalUnit
    from advisor_similarity.workload import Workload

#: The unit of a machine model that carries out each finer class. ``control`` needs none, nor do moves between
#: registers, which renaming does.
UNIT_OF: Final = {
    "int add": "int", "int logic": "int", "int shift": "int", "int multiply": "int", "int divide": "int",
    "int compare": "int", "int vector": "int", "load": "load", "store": "store",
    "fp add": "fp_add", "fp compare": "fp_add", "fp convert": "fp_add", "fp multiply": "fp_mul",
    "fp multiply-add": "fp_fma", "fp divide": "fp_div", "branch conditional": "branch", "branch jump": "branch",
    "branch call": "branch", "branch return": "branch",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnitDemand:
    """What a workload asks of the units that share pipes: ``demand`` operations a cycle of the oracle machine.

    ``supply`` is how many of the demanded ones the machine starts in a cycle, ``cycles`` how long they keep the pipes
    busy over the whole run.
    """

    units: tuple[str, ...]
    demand: float
    supply: float
    cycles: float


@dataclass(frozen=True, slots=True)
class UnitBalance:
    """The demands, the longest one first; ``distance`` of the demands' proportions from the supplies' (0 to 1).

    ``missing`` are units that the machine model does not state.
    """

    demands: tuple[UnitDemand, ...]
    distance: float
    missing: tuple[str, ...]

    @property
    def cycles(self) -> float:
        """Cycles that the busiest units take: a lower bound, were everything else free."""
        return self.demands[0].cycles


def balance_units(workload: Workload, machine: Machine) -> UnitBalance | None:
    """Return how a machine's units meet a workload; None where its model states none of those that are needed."""
    demanded: dict[str, float] = {}
    # a comparison and the branch on it may be fused to one operation of the branch unit
    fused = min(workload.fine.get("int compare", 0.0), workload.fine.get("branch conditional", 0.0))
    for kind, rate in workload.fine.items():
        kind_unit, needed = UNIT_OF.get(kind), rate - fused if kind == "int compare" else rate
        if kind_unit and needed > 0:
            demanded[kind_unit] = demanded.get(kind_unit, 0.0) + needed
    units: dict[str, FunctionalUnit] = {name: unit for name, unit in machine.units.items() if name in demanded}
    if not units:
        return None
    pipes: dict[str, list[str]] = {}
    for name, unit in units.items():
        pipes.setdefault(unit.pipes or name, []).append(name)
    demands = sorted(
        (_sum_demands(tuple(names), demanded, units, workload.cycles) for names in pipes.values()),
        key=lambda one: -one.cycles,
    )
    asked = np.array([[demand.demand for demand in demands]])
    given = np.array([[demand.supply for demand in demands]])
    missing = tuple(sorted(set(demanded) - set(units)))
    return UnitBalance(tuple(demands), float(shape_distance(asked, given)[0]), missing)


def _sum_demands(
    names: tuple[str, ...], rates: Mapping[str, float], units: Mapping[str, FunctionalUnit], cycles: int
) -> UnitDemand:
    """Return the demand on one set of pipes: each unit keeps them busy for as long as it takes to start its own."""
    busy = sum(rates[name] / units[name].instructions_per_cycle for name in names)
    demand = sum(rates[name] for name in names)
    return UnitDemand(names, demand, demand / busy, busy * cycles)
