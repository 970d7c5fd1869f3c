"""The time that instructions keep the functional units busy, whatever their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from advisor.analysis.machines.records import FunctionalUnit, Machine
    from advisor_processor.compiled.instructions import Instruction

#: Comparisons that become one operation with the jump behind them.
_FUSED: Final = frozenset(("cmp", "test", "add", "sub", "inc", "dec", "and"))


def compute_busy_cycles(instructions: Iterable[tuple[Instruction, float]], machine: Machine) -> dict[str, float]:
    """Return for each unit the cycles that instructions, each with how often it runs, keep it busy.

    Units that share pipes add up; ``issue`` is the number of instructions that a core starts in a cycle. What the model
    does not know is left out, so that times stay lower bounds.
    """
    busy: dict[str, float] = {}
    slots = 0.0
    before: Instruction | None = None
    for one, count in instructions:
        for unit, times in _count_unit_uses(one).items():
            if (known := _find_unit(machine, unit)) is not None:
                pipes = known.pipes or unit
                busy[pipes] = busy.get(pipes, 0.0) + count * times / _issue_rate(known, one.bits)
        fused = before is not None and one.conditional and before.mnemonic in _FUSED
        slots += 0.0 if fused else count
        before = one
    if machine.issue:
        busy["issue"] = slots / machine.issue
    return busy


def count_unit_operations(instruction: Instruction) -> dict[str, int]:
    """Return how often an instruction occupies each kind of unit: what ``compiled_ops`` counts."""
    found = _count_unit_uses(instruction)
    if instruction.target is not None or instruction.conditional:
        found["branch"] = 1
    return found


def _count_unit_uses(one: Instruction) -> dict[str, int]:
    found = {one.unit: 1} if one.unit else {}
    if one.load is not None:
        found["load"] = one.elements
    if one.store is not None:
        found["store"] = 1
    return found


def _find_unit(machine: Machine, name: str) -> FunctionalUnit | None:
    units: Mapping[str, FunctionalUnit] = {str(key): unit for key, unit in machine.units.items()}
    return units.get(name)


def _issue_rate(unit: FunctionalUnit, bits: int) -> float:
    """Return how many instructions of a width start per cycle: narrow ones may be more than full ones.

    Full width is taken to be no worse per number than less: a divider works on two, four or eight numbers in turn.
    """
    if unit.width and bits >= unit.width:
        return float(unit.per_cycle)
    return min(unit.instructions_per_cycle, unit.operations_per_cycle / (bits / 64))
