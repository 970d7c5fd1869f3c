"""All functions of a run: what they executed and how fast their schedules can be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError
from advisor_processor.compiled import binary, executions
from advisor_processor.compiled.instructions import decode
from advisor_processor.compiled.schedule import FunctionSchedule, schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from advisor.analysis.machines import Machine
    from advisor_processor.compiled.binary import Binary, Function
    from advisor_processor.compiled.executions import Executions

#: Misses of valgrind's simulated caches, of which a function's count is made.
MISSES: Final = {"misses.L1": ("D1mr", "D1mw"), "misses.LL": ("DLmr", "DLmw"), "writes.LL": ("DLmw",)}


@dataclass(frozen=True, slots=True)
class Analysed:
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
class Run:
    """The functions of all processes, and what could not be looked at."""

    program: str
    ranks: int
    functions: tuple[Analysed, ...]
    missing: tuple[str, ...]


def analyse(path: Path, machine: Machine, binaries: Sequence[Path] = ()) -> Run:
    """Return what the run recorded at ``path`` executed; ``binaries`` replace files that are not where they were.

    Raises ``InputError`` where the recording is damaged, or none of its programs is there.
    """
    processes = executions.read_all(path)
    named = {file.name: file for file in binaries}
    functions: list[Analysed] = []
    missing: dict[str, None] = {}
    known: dict[str, Binary | None] = {}
    for process in processes:
        for name in filter(executions.is_work, process.objects):
            file = named.get(PurePath(name).name, Path(name))
            if name not in known:
                known[name] = _binary(file, missing)
            if (program := known[name]) is not None:
                functions += _functions(program, process, name, machine)
    if not functions:
        raise InputError(path, f"names no program that can be looked at: {'; '.join(missing) or 'nothing ran'}")
    return Run(processes[0].program, len(processes), tuple(functions), tuple(missing))


def static(file: Path, machine: Machine) -> Run:
    """Return the functions of a binary that hold loops, each of which went round an unknown number of times."""
    program = binary.read(file)
    found = (_static(program, function, machine) for function in program.functions)
    return Run(file.name, 1, tuple(one for one in found if one.schedule.loops), ())


def _static(program: Binary, function: Function, machine: Machine) -> Analysed:
    instructions = list(decode(program.code_of(function), function.begin))
    file, line = program.declared(function)
    return Analysed(function.name, file, line, 0, schedule(instructions, None, machine), {}, program)


def _binary(file: Path, missing: dict[str, None]) -> Binary | None:
    try:
        return binary.read(file)
    except InputError as error:
        missing[str(error)] = None
        return None


def _functions(program: Binary, process: Executions, name: str, machine: Machine) -> Iterator[Analysed]:
    executed = process.executed(name)
    counts = process.objects[name]
    addresses = sorted(executed)
    for function in program.functions:
        inside = _between(addresses, function)
        if not inside:
            continue
        mine = {address: executed[address] for address in inside}
        instructions = list(decode(program.code_of(function), function.begin))
        file, line = program.declared(function)
        misses = {
            miss: sum(counts[address][process.events.index(event)] for address in inside for event in events)
            for miss, events in MISSES.items()
            if set(events) <= set(process.events)
        }
        yield Analysed(
            function.name,
            file,
            line,
            process.rank,
            schedule(instructions, mine, machine),
            misses,
            program,
            process.last_cache_B,
        )


def _between(addresses: Sequence[int], function: Function) -> Sequence[int]:
    from bisect import bisect_left

    return addresses[bisect_left(addresses, function.begin) : bisect_left(addresses, function.end)]
