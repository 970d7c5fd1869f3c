"""The bounds below the hierarchy's measured part: M, MA, MAC and MACS, from counted operations and a machine model.

All four are total time over N, serial parts included, as is I; what those cost is the gap P. Operations of the source
are operations on numbers, which the best code packs into vectors; compiled operations are instructions, each of which
takes its unit for a cycle whether it works on one number or on many: what is not vectorized counts in C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.machine_rates import busiest_unit, clock_hz, instruction_rates, peak_flops_per_s, unit_rates
from advisor.analysis.measures import missing_quantity
from advisor.model.records import Bound, FloatArray, Profile

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine

#: Floating-point operations in one operation of a functional unit.
FLOATING: Final = {"fp_add": 1.0, "fp_mul": 1.0, "fp_fma": 2.0, "fp_div": 1.0, "flops": 1.0}
#: Operations that nobody told apart by functional unit: they give M, and no MA.
_UNDIVIDED: Final = "flops"
#: The counts that each bound is computed from: a prefix of functional units, or a count of its own.
COUNTS: Final = {"M": "source_ops", "MA": "source_ops", "MAC": "compiled_ops", "MACS": "scheduled_cycles"}
#: Beside compiled operations, where they were told apart by width: the numbers of 64 bits that these work on.
NUMBERS: Final = "compiled_numbers"
#: Seconds of computation that did not wait for memory, where hardware counters told (top-down): MACS without a machine.
UNSTALLED: Final = "unstalled_s"
NOT_WAITING: Final = "issue slots that did not wait for memory, by hardware counters"
MODELLED: Final = "computed from counted operations and the machine model"


def compute_machine_bound(name: str, profile: Profile, machine: Machine | None) -> Bound:
    """Return M, MA, MAC or MACS in seconds; unavailable without counts or machine model.

    Formulas: Hung and Davidson, section 3.2.1.
    """
    if name_count(name, profile) == UNSTALLED:
        unstalled_s = float(profile.counts[UNSTALLED].sum()) / len(profile.processors)
        return Bound(name, unstalled_s, "estimated", NOT_WAITING)
    units = _unit_tables(profile, COUNTS[name])
    lacking = [] if units and (name == "M" or _UNDIVIDED not in units) else [COUNTS[name]]
    if machine is None:
        return _make_unavailable(name, profile, *lacking, "machine")
    if lacking:
        return _make_unavailable(name, profile, *lacking)
    seconds = _bound_seconds(name, profile, machine)
    if seconds is None:
        return _make_unavailable(name, profile, "clock" if name == "MACS" else "peak")
    return Bound(name, seconds, "modelled", MODELLED)


def name_count(name: str, profile: Profile) -> str:
    """Return the count behind a machine bound; for MACS the schedule, or hardware counters."""
    told = name == "MACS" and UNSTALLED in profile.counts and COUNTS[name] not in profile.counts
    return UNSTALLED if told else COUNTS[name]


def seconds_by_place(name: str, profile: Profile, machine: Machine | None, total: float) -> FloatArray:
    """Return the ``total`` seconds of a machine bound by region and processor (regions, processors).

    In proportion to the counts that decide the bound: of the busiest unit where ``machine`` tells which one it is.
    """
    counts, each = _unit_weights(name, profile, machine)
    units = _unit_tables(profile, counts)
    weights: FloatArray = np.zeros((len(profile.regions), len(profile.processors)))
    for unit, weight in each.items():
        weights += weight * units[unit]
    everything = weights.sum()
    return weights / everything * total if everything > 0 else weights


def sum_operations(profile: Profile, count: str) -> dict[str, float]:
    """Return what was counted of all regions and processors, by functional unit or under the count's own name."""
    return {unit: float(table.sum()) for unit, table in _unit_tables(profile, count).items()}


def _bound_seconds(name: str, profile: Profile, machine: Machine) -> float | None:
    count = len(profile.processors)
    if name == "M":
        peak = peak_flops_per_s(machine, count)
        operations = sum_operations(profile, COUNTS[name])
        floating = sum(FLOATING[unit] * number for unit, number in operations.items() if unit in FLOATING)
        return floating / peak if peak else None
    if name == "MACS":
        clock = clock_hz(machine)
        return sum_operations(profile, COUNTS[name])[COUNTS[name]] / count / clock if clock else None
    counts, rates = _deciding_counts(name, profile, machine)
    busiest = busiest_unit(machine, sum_operations(profile, counts), rates)
    return busiest[1] / count if busiest else None


def _deciding_counts(name: str, profile: Profile, machine: Machine) -> tuple[str, dict[str, float]]:
    """Return which counts decide MA or MAC, and what one core does of them per second.

    Compiled operations take a slot of their unit each, and as long as the numbers do that they work on.
    """
    if name == "MA":
        return COUNTS[name], unit_rates(machine)
    choices = ((COUNTS[name], instruction_rates(machine)), (NUMBERS, unit_rates(machine)))
    known = [(counts, rates) for counts, rates in choices if _unit_tables(profile, counts)]
    busy = [busiest_unit(machine, sum_operations(profile, counts), rates) for counts, rates in known]
    return max(zip(known, busy, strict=True), key=lambda each: each[1][1] if each[1] else 0.0)[0]


def _unit_weights(name: str, profile: Profile, machine: Machine | None) -> tuple[str, dict[str, float]]:
    """Return the counts that decide a bound, and how much one of each unit weighs in it."""
    units = _unit_tables(profile, name_count(name, profile))
    if name == "M":
        return COUNTS[name], {unit: FLOATING[unit] for unit in units if unit in FLOATING}
    if name == "MACS" or machine is None:
        return name_count(name, profile), dict.fromkeys(units, 1.0)
    counts, rates = _deciding_counts(name, profile, machine)
    totals = sum_operations(profile, counts)
    busiest = busiest_unit(machine, totals, rates)
    pipes: dict[str, str] = {str(unit): each.pipes or str(unit) for unit, each in machine.units.items()}
    chosen = [unit for unit in totals if unit in rates and busiest and pipes[unit] == busiest[0]]
    return counts, {unit: 1 / rates[unit] for unit in chosen}


def _unit_tables(profile: Profile, count: str) -> dict[str, FloatArray]:
    """Return the tables of a count by functional unit; one that has no units under its own name."""
    if count in profile.counts:
        return {count: profile.counts[count]}
    prefix = f"{count}."
    return {name.removeprefix(prefix): table for name, table in profile.counts.items() if name.startswith(prefix)}


def _make_unavailable(name: str, profile: Profile, *lacking: str) -> Bound:
    what = missing_quantity(profile, *lacking)
    return Bound(name, None, "unavailable", what.reason, what.collect)
