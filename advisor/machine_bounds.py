"""The bounds below the hierarchy's measured part: M, MA, MAC and MACS, from counted operations and a machine model.

All four are total time over N, serial parts included, as is I; what those cost is the gap P. Operations of the source
are operations on numbers, which the best code packs into vectors; compiled operations are instructions, each of which
takes its unit for a cycle whether it works on one number or on many: what is not vectorized counts in C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.machines import busiest_unit, clock_hz, instruction_rates, peak_flops_per_s, unit_rates
from advisor.measures import missing
from advisor.model import Bound

if TYPE_CHECKING:
    from advisor.machines import Machine
    from advisor.model import FloatArray, Profile

#: Floating-point operations in one operation of a functional unit.
FLOATING: Final = {"fp_add": 1.0, "fp_mul": 1.0, "fp_fma": 2.0, "fp_div": 1.0}
#: The counts that each bound is computed from: a prefix of functional units, or a count of its own.
COUNTS: Final = {"M": "source_ops", "MA": "source_ops", "MAC": "compiled_ops", "MACS": "scheduled_cycles"}
MODELLED: Final = "computed from counted operations and the machine model"


def machine_bound(name: str, profile: Profile, machine: Machine | None) -> Bound:
    """Return M, MA, MAC or MACS in seconds; unavailable without counts or machine model.

    Formulas: Hung and Davidson, section 3.2.1.
    """
    lacking = [] if _units(profile, COUNTS[name]) else [COUNTS[name]]
    if machine is None:
        return _unavailable(name, profile, *lacking, "machine")
    if lacking:
        return _unavailable(name, profile, *lacking)
    seconds = _seconds(name, profile, machine)
    if seconds is None:
        return _unavailable(name, profile, "clock" if name == "MACS" else "peak")
    return Bound(name, seconds, "modelled", MODELLED)


def seconds_by_place(name: str, profile: Profile, machine: Machine | None, total: float) -> FloatArray:
    """Return the ``total`` seconds of a machine bound by region and processor (regions, processors).

    In proportion to the counts that decide the bound: of the busiest unit where ``machine`` tells which one it is.
    """
    units = _units(profile, COUNTS[name])
    weights: FloatArray = np.zeros((len(profile.regions), len(profile.processors)))
    for unit, weight in _weights(name, profile, machine).items():
        weights += weight * units[unit]
    everything = weights.sum()
    return weights / everything * total if everything > 0 else weights


def operations(profile: Profile, count: str) -> dict[str, float]:
    """Return what was counted of all regions and processors, by functional unit or under the count's own name."""
    return {unit: float(table.sum()) for unit, table in _units(profile, count).items()}


def _seconds(name: str, profile: Profile, machine: Machine) -> float | None:
    count = len(profile.processors)
    counted = operations(profile, COUNTS[name])
    if name == "M":
        peak = peak_flops_per_s(machine, count)
        floating = sum(FLOATING[unit] * number for unit, number in counted.items() if unit in FLOATING)
        return floating / peak if peak else None
    if name == "MACS":
        clock = clock_hz(machine)
        return counted[COUNTS[name]] / count / clock if clock else None
    busiest = busiest_unit(machine, counted, _rates(name, machine))
    return busiest[1] / count if busiest else None


def _rates(name: str, machine: Machine) -> dict[str, float]:
    """Return what one core does per second of each unit's operations as they are counted for a bound."""
    return instruction_rates(machine) if name == "MAC" else unit_rates(machine)


def _weights(name: str, profile: Profile, machine: Machine | None) -> dict[str, float]:
    """Return how much one operation of each unit weighs in a bound."""
    units = _units(profile, COUNTS[name])
    if name == "M":
        return {unit: FLOATING[unit] for unit in units if unit in FLOATING}
    if name == "MACS" or machine is None:
        return dict.fromkeys(units, 1.0)
    rates = _rates(name, machine)
    busiest = busiest_unit(machine, {unit: float(table.sum()) for unit, table in units.items()}, rates)
    pipes: dict[str, str] = {str(unit): each.pipes or str(unit) for unit, each in machine.units.items()}
    return {unit: 1 / rates[unit] for unit in units if unit in rates and busiest and pipes[unit] == busiest[0]}


def _units(profile: Profile, count: str) -> dict[str, FloatArray]:
    """Return the tables of a count by functional unit; one that has no units under its own name."""
    if count in profile.counts:
        return {count: profile.counts[count]}
    prefix = f"{count}."
    return {name.removeprefix(prefix): table for name, table in profile.counts.items() if name.startswith(prefix)}


def _unavailable(name: str, profile: Profile, *lacking: str) -> Bound:
    what = missing(profile, *lacking)
    return Bound(name, None, "unavailable", what.reason, what.collect)
