"""The longest chain of dependences carried from one iteration of a loop to the next.

Time of the schedule with as many units as one likes (the S of Hung and Davidson, section 3.2.1): every instruction
starts when its operands are there. Followed are registers, flags, and memory that a store and a load name by the same
registers, moved along by constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.analysis.machines.records import FunctionalUnit, Machine
    from advisor_processor.compiled.instructions import Instruction, MemoryOperand

#: So many iterations are followed; the second half tells the pace.
ROUNDS: Final = 48
_INTEGER_CYCLES: Final = 1.0


@dataclass(frozen=True, slots=True)
class _MemoryFlow:
    """Instruction ``reader`` loads what ``writer`` stored ``distance`` iterations before."""

    writer: int
    distance: int


def compute_chain_cycles(body: Sequence[Instruction], machine: Machine) -> float:
    """Return the cycles per iteration that dependences from iteration to iteration take at least."""
    if not body:
        return 0.0
    flows = _find_memory_flows(body)
    times: dict[str, tuple[float, str | None]] = {}
    stored: list[list[float]] = [[] for _ in body]
    ends: list[float] = []
    for turn in range(ROUNDS):
        latest = 0.0
        for number, one in enumerate(body):
            ready = _compute_ready_cycle(one, number, turn, times, (flows, stored), machine)
            for register in one.writes:
                times[register] = (ready, one.unit) if not one.copy else (ready, _find_source_unit(one, times))
            if one.store is not None:
                stored[number].append(ready)
            latest = max(latest, ready)
        ends.append(latest)
    half = ROUNDS // 2
    return max((ends[-1] - ends[half - 1]) / (ROUNDS - half), 0.0)


def _compute_ready_cycle(
    one: Instruction,
    number: int,
    turn: int,
    times: Mapping[str, tuple[float, str | None]],
    memory: tuple[Mapping[int, _MemoryFlow], Sequence[Sequence[float]]],
    machine: Machine,
) -> float:
    """Return when the result of an instruction is there."""
    ready = 0.0
    for register in one.data:
        since, unit = times.get(register, (0.0, None))
        ready = max(ready, since + _result_latency(machine, one, unit))
    if one.load is not None:
        loaded = max((times.get(name, (0.0, None))[0] for name in one.load.registers), default=0.0)
        loaded += _unit_latency(_find_unit(machine, "load"))
        flows, stored = memory
        flow = flows.get(number)
        if flow and 0 <= turn - flow.distance < len(stored[flow.writer]):
            loaded = max(
                loaded, stored[flow.writer][turn - flow.distance] + _unit_latency(_find_unit(machine, "store"))
            )
        ready = max(ready, loaded + _result_latency(machine, one, None))
    if one.store is not None:
        return ready
    return ready


def _find_source_unit(one: Instruction, times: Mapping[str, tuple[float, str | None]]) -> str | None:
    """Return the unit whose result a copy passes on."""
    return next((times[name][1] for name in one.data if name in times), None)


def _result_latency(machine: Machine, one: Instruction, source: str | None) -> float:
    """Return the cycles from an operand, computed by the unit ``source``, to the result."""
    if one.copy or (one.unit is None and (one.load is not None or one.store is not None)):
        return 0.0
    if one.unit is None or one.unit == "int":
        return _INTEGER_CYCLES
    unit = _find_unit(machine, one.unit)
    if unit is not None and source == one.unit and unit.chained_latency:
        return float(unit.chained_latency)
    return _unit_latency(unit)


def _unit_latency(unit: FunctionalUnit | None) -> float:
    return float(unit.latency) if unit is not None and unit.latency else 0.0


def _find_unit(machine: Machine, name: str) -> FunctionalUnit | None:
    return {str(key): unit for key, unit in machine.units.items()}.get(name)


def find_strides(body: Sequence[Instruction]) -> dict[str, int]:
    """Return by how much each register moves per iteration, 0 for those that do not; others are left out."""
    written: dict[str, int] = {}
    for one in body:
        for register in one.writes:
            written[register] = written.get(register, 0) + 1
    named = {name for one in body for place in (one.load, one.store) if place for name in place.registers}
    found = {name: 0 for name in named if name not in written}
    for one in body:
        if one.step and written.get(one.step[0]) == 1:
            found[one.step[0]] = one.step[1]
    return found


def find_variable_strides(body: Sequence[Instruction]) -> frozenset[str]:
    """Return the registers that each iteration moves by another one that does not change: by a stride of a variable."""
    written = [register for one in body for register in one.writes]
    return frozenset(
        register
        for one in body
        if one.mnemonic == "add" and one.step is None and one.load is None and one.store is None
        for register in one.writes - {"flags"}
        if written.count(register) == 1 and not (one.data - {register}) & set(written) and len(one.data) == 2
    )


def _find_memory_flows(body: Sequence[Instruction]) -> dict[int, _MemoryFlow]:
    """Return for each load that reads what a store of the loop wrote where that comes from: the latest such store."""
    moves = find_strides(body)
    found: dict[int, _MemoryFlow] = {}
    for reader, one in enumerate(body):
        if one.load is None or not one.load.registers <= moves.keys():
            continue
        for writer, other in enumerate(body):
            flow = _match_memory_flow(body, (writer, other.store), (reader, one.load), moves)
            if flow and (reader not in found or _is_later(flow, found[reader])):
                found[reader] = flow
    return found


def _is_later(flow: _MemoryFlow, other: _MemoryFlow) -> bool:
    return (flow.distance, -flow.writer) < (other.distance, -other.writer)


def _match_memory_flow(
    body: Sequence[Instruction],
    writer: tuple[int, MemoryOperand | None],
    reader: tuple[int, MemoryOperand],
    moves: Mapping[str, int],
) -> _MemoryFlow | None:
    store, load = writer[1], reader[1]
    if store is None or store.size != load.size:
        return None
    if (store.base, store.index, store.scale) != (load.base, load.index, load.scale):
        return None
    apart = _compute_offset(body, writer[0], store, moves) - _compute_offset(body, reader[0], load, moves)
    stride = moves.get(load.base, 0) + load.scale * moves.get(load.index, 0)
    if stride == 0:
        return _MemoryFlow(writer[0], 0 if writer[0] < reader[0] else 1) if apart == 0 else None
    distance, rest = divmod(apart, stride)
    if rest or distance < 0 or (distance == 0 and writer[0] >= reader[0]):
        return None
    return _MemoryFlow(writer[0], distance)


def _compute_offset(body: Sequence[Instruction], number: int, place: MemoryOperand, moves: Mapping[str, int]) -> int:
    """Return the displacement of a place from where its registers stand when the iteration begins."""
    moved = {one.step[0]: moves[one.step[0]] for one in body[:number] if one.step and one.step[0] in moves}
    return place.displacement + moved.get(place.base, 0) + place.scale * moved.get(place.index, 0)
