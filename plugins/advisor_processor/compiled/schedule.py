"""MACS of a function: what its loops' dependences and its functional units leave no way around."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor_processor.compiled.chains import compute_chain_cycles, find_strides, find_variable_strides
from advisor_processor.compiled.loops import Loop, TripCounts, count_trips, find_innermost_loops, select_unconditional

if TYPE_CHECKING:
    from advisor.analysis.machines.records import FunctionalUnit, Machine
    from advisor_processor.compiled.instructions import Instruction, MemoryOperand

#: Comparisons that become one operation with the jump behind them.
_FUSED: Final = frozenset(("cmp", "test", "add", "sub", "inc", "dec", "and"))

#: Instructions that the largest cores of today hold at once: by so many a loop may overlap with what comes after it.
WINDOW: Final = 512


@dataclass(frozen=True, slots=True)
class LoopSchedule:
    """A loop with the cycles of one iteration by unit and by its chain of dependences, and how often it ran."""

    loop: Loop
    busy: Mapping[str, float]
    chain: float
    trips: TripCounts | None

    @property
    def throughput(self) -> float:
        """Cycles per iteration of the busiest unit."""
        return max(self.busy.values(), default=0.0)

    @property
    def cycles_per_iteration(self) -> float:
        """The larger of both: MACS of the loop."""
        return max(self.throughput, self.chain)

    @property
    def bound_by(self) -> str:
        """What decides: ``chain`` or the name of a unit."""
        if self.chain > self.throughput:
            return "chain"
        return max(self.busy, key=lambda unit: self.busy[unit], default="")

    @property
    def cycles(self) -> float:
        """Cycles of all iterations; each time the loop ends, its chain may overlap with what follows."""
        if self.trips is None:
            return 0.0
        overlapped = self.trips.entries * WINDOW / len(self.loop.body)
        return max(self.throughput * self.trips.iterations, self.chain * (self.trips.iterations - overlapped))


@dataclass(frozen=True, slots=True)
class FunctionSchedule:
    """A function: its operations by unit, its loops, and what bounds it by units (MAC) and by schedule (MACS)."""

    operations: Mapping[str, float]
    numbers: Mapping[str, float]
    vectorized: float
    spilled: float
    gathered: float
    strided: float
    instructions: float
    loops: tuple[LoopSchedule, ...]
    busy: Mapping[str, float]

    @property
    def mac_cycles(self) -> float:
        """Cycles of the busiest functional unit, without the limit of instructions per cycle."""
        return max((cycles for unit, cycles in self.busy.items() if unit != "issue"), default=0.0)

    @property
    def chained_cycles(self) -> float:
        """Cycles of the loops that a chain of dependences holds up."""
        return sum(loop.cycles for loop in self.loops if loop.bound_by == "chain")

    @property
    def macs_cycles(self) -> float:
        """Cycles of the schedule: those of the loops one after the other, or of the busiest unit in all."""
        return max(sum(loop.cycles for loop in self.loops), max(self.busy.values(), default=0.0))


def compute_schedule(
    instructions: Sequence[Instruction], executed: Mapping[int, float] | None, machine: Machine
) -> FunctionSchedule:
    """Return the schedule of a function; without ``executed`` (times each instruction ran) of one iteration each."""
    counted = [
        (instruction, executed.get(instruction.address, 0.0) if executed else 0.0) for instruction in instructions
    ]
    units: dict[str, float] = {}
    numbers: dict[str, float] = {}
    for one, count in counted:
        for unit, times in count_unit_operations(one).items():
            units[unit] = units.get(unit, 0.0) + count * times
            numbers[unit] = numbers.get(unit, 0.0) + count * times * one.bits / 64
    return FunctionSchedule(
        operations=units,
        numbers=numbers,
        vectorized=sum(count for one, count in counted if one.packed),
        spilled=_count_spilled_loads(instructions, executed),
        gathered=sum(count * one.elements for one, count in counted if one.elements > 1),
        strided=_count_strided_loads(instructions, executed),
        instructions=sum(count for _, count in counted),
        loops=tuple(compute_loop_schedule(loop, executed, machine) for loop in find_innermost_loops(instructions)),
        busy=compute_busy_cycles(counted, machine),
    )


def compute_loop_schedule(loop: Loop, executed: Mapping[int, float] | None, machine: Machine) -> LoopSchedule:
    """Return the limits of one loop: what runs in every iteration, and in its share of iterations what does not."""
    found = count_trips(loop, executed) if executed else None
    if executed and found and found.iterations:
        shares = [(one, executed.get(one.address, 0.0) / found.iterations) for one in loop.body]
    else:
        shares = [(one, 1.0) for one in loop.body]
    chain = compute_chain_cycles(select_unconditional(loop, executed if found and found.iterations else None), machine)
    return LoopSchedule(loop, compute_busy_cycles(shares, machine), chain, found)


def _count_spilled_loads(instructions: Sequence[Instruction], executed: Mapping[int, float] | None) -> float:
    """Return how often innermost loops loaded from the function's own frame: values that found no register."""
    if not executed:
        return 0.0
    bodies = [one for loop in find_innermost_loops(instructions) for one in loop.body]
    return sum(executed.get(body.address, 0.0) for body in bodies if body.load is not None and body.load.is_on_stack)


def _count_strided_loads(instructions: Sequence[Instruction], executed: Mapping[int, float] | None) -> float:
    """Return how often innermost loops loaded from places that lie further apart than what they load."""
    if not executed:
        return 0.0
    total = 0.0
    for loop in find_innermost_loops(instructions):
        moves, wandering = find_strides(loop.body), find_variable_strides(loop.body)
        for one in loop.body:
            if one.load is not None and _is_strided(one.load, loop, moves, wandering):
                total += executed.get(one.address, 0.0)
    return total


def _is_strided(place: MemoryOperand, loop: Loop, moves: Mapping[str, int], wandering: frozenset[str]) -> bool:
    """Return whether a load moves on by more than what the loop loads there in an iteration."""
    if place.registers & wandering:
        return True
    if not place.registers or not place.registers <= moves.keys():
        return False
    step = moves.get(place.base, 0) + place.scale * moves.get(place.index, 0)
    unrolled = sum(other.load is not None and _has_same_registers(place, other.load) for other in loop.body)
    return abs(step) > place.size * unrolled


def _has_same_registers(one: MemoryOperand, other: MemoryOperand) -> bool:
    """Return whether two places are named by the same registers: an unrolled loop loads neighbours one by one."""
    return (one.base, one.index, one.scale, one.size) == (other.base, other.index, other.scale, other.size)


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
