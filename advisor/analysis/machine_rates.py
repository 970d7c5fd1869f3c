"""Peak rates of a machine, from which the bounds are computed.

They use the highest clock known, so that times computed from them stay lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.analysis.machines.records import Machine


def clock_hz(machine: Machine) -> float | None:
    """The highest clock known, in hertz: times computed from it stay lower bounds."""
    return machine.boost or machine.frequency


def peak_flops_per_s(machine: Machine, processors: int) -> float | None:
    """Peak double-precision operations per second of this many processors (cores); None if unknown."""
    clock = clock_hz(machine)
    if clock is None or machine.flops_per_cycle is None:
        return None
    return processors * machine.flops_per_cycle * clock


def unit_rates(machine: Machine) -> dict[str, float]:
    """Operations on 64-bit numbers per second and core by functional unit, for the units that are known."""
    clock = clock_hz(machine)
    if clock is None:
        return {}
    return {name: unit.operations_per_cycle * clock for name, unit in machine.units.items()}


def instruction_rates(machine: Machine) -> dict[str, float]:
    """Instructions per second and core by functional unit, whatever their width, for the units that are known."""
    clock = clock_hz(machine)
    if clock is None:
        return {}
    return {name: unit.instructions_per_cycle * clock for name, unit in machine.units.items()}


def busiest_unit(
    machine: Machine, operations: Mapping[str, float], rates: Mapping[str, float] | None = None
) -> tuple[str, float] | None:
    """The unit that limits one core on these operations, and the seconds it takes; None if no rate is known.

    This is the time of the bounds MA and MAC (Hung and Davidson, section 3.2.1): no dependences, any schedule, the
    busiest unit decides. ``rates`` are those of operations on 64-bit numbers if not given. Units that share pipes add
    up; a kind of operation without a known rate is left out, so that the time stays a lower bound.
    """
    rates = unit_rates(machine) if rates is None else rates
    busy: dict[str, float] = {}
    for name, count in operations.items():
        if name in rates:
            pipes = next(unit.pipes or name for key, unit in machine.units.items() if key == name)
            busy[pipes] = busy.get(pipes, 0.0) + count / rates[name]
    return max(busy.items(), key=lambda item: item[1]) if busy else None


def barrier_s(machine: Machine, processors: int) -> float | None:
    """The cost of a barrier over P processors by the model ``base + per_doubling * log2 P``; None if unknown."""
    cost = machine.synchronization
    if cost is None:
        return None
    return (cost.base or 0.0) + cost.per_doubling * math.log2(max(processors, 1))
