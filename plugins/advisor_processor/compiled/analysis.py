"""All functions of a run: what they executed and how fast their schedules can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError
from advisor_processor.compiled import binary, executions
from advisor_processor.compiled.instructions import decode_instructions
from advisor_processor.compiled.schedule import FunctionSchedule, compute_schedule

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor.collect.binaries.elf_files import Symbol
    from advisor_processor.compiled.binary import Binary
    from advisor_processor.compiled.executions import Executions

#: Misses of valgrind's simulated caches, of which a function's count is made.
MISSES: Final = {"misses.L1": ("D1mr", "D1mw"), "misses.LL": ("DLmr", "DLmw"), "writes.LL": ("DLmw",)}


@dataclass(frozen=True, slots=True)
class FunctionAnalysis:
    """One function on one processor: where it stands, its schedule, and its misses where they were simulated."""

    name: str
    file: str | None
    line: int | None
    rank: int
    schedule: FunctionSchedule
    misses: Mapping[str, float]
    binary: Binary
    last_cache_B: float | None = None


@dataclass(frozen=True, slots=True)
class RunAnalysis:
    """The functions of all processes, and what could not be looked at."""

    program: str
    ranks: int
    functions: tuple[FunctionAnalysis, ...]
    missing: tuple[str, ...]


def analyse_run(path: Path, machine: Machine, binaries: Sequence[Path] = ()) -> RunAnalysis:
    """Return what the run recorded at ``path`` executed; ``binaries`` replace files that are not where they were.

    Raises ``InputError`` where the recording is damaged, or none of its programs is there.
    """
    processes = executions.read_executions(path)
    named = {file.name: file for file in binaries}
    functions: list[FunctionAnalysis] = []
    missing: dict[str, None] = {}
    known: dict[str, Binary | None] = {}
    for process in processes:
        for name in filter(executions.is_computing_object, process.objects):
            file = named.get(PurePath(name).name, Path(name))
            if name not in known:
                known[name] = _read_binary(file, missing)
            if (program := known[name]) is not None:
                functions += _analyse_functions(program, process, name, machine)
    if not functions:
        raise InputError(path, f"names no program that can be looked at: {'; '.join(missing) or 'nothing ran'}")
    return RunAnalysis(processes[0].program, len(processes), tuple(functions), tuple(missing))


def analyse_binary(file: Path, machine: Machine) -> RunAnalysis:
    """Return the functions of a binary that hold loops, with unknown trip counts."""
    program = binary.read_binary(file)
    found = (_analyse_function(program, function, machine) for function in program.image.functions)
    return RunAnalysis(file.name, 1, tuple(one for one in found if one.schedule.loops), ())


def _analyse_function(program: Binary, function: Symbol, machine: Machine) -> FunctionAnalysis:
    instructions = list(decode_instructions(program.image.read_code(function.begin, function.end), function.begin))
    file, line = program.find_declaration(function.begin)
    return FunctionAnalysis(function.name, file, line, 0, compute_schedule(instructions, None, machine), {}, program)


def _read_binary(file: Path, missing: dict[str, None]) -> Binary | None:
    try:
        return binary.read_binary(file)
    except InputError as error:
        missing[str(error)] = None
        return None


def _analyse_functions(program: Binary, process: Executions, name: str, machine: Machine) -> Iterator[FunctionAnalysis]:
    executed = process.instruction_counts(name)
    counts = process.objects[name]
    addresses = sorted(executed)
    for function in program.image.functions:
        inside = _select_addresses(addresses, function)
        if not inside:
            continue
        mine = {address: executed[address] for address in inside}
        instructions = list(decode_instructions(program.image.read_code(function.begin, function.end), function.begin))
        file, line = program.find_declaration(function.begin)
        misses = {
            miss: sum(counts[address][process.events.index(event)] for address in inside for event in events)
            for miss, events in MISSES.items()
            if set(events) <= set(process.events)
        }
        yield FunctionAnalysis(
            function.name,
            file,
            line,
            process.rank,
            compute_schedule(instructions, mine, machine),
            misses,
            program,
            process.last_cache_B,
        )


def _select_addresses(addresses: Sequence[int], function: Symbol) -> Sequence[int]:
    from bisect import bisect_left

    return addresses[bisect_left(addresses, function.begin) : bisect_left(addresses, function.end)]
