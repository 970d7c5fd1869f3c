"""``gapwatch incore``: what the compiler emitted and how fast it can run: MAC, MACS and $ by function and loop."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.analysis import machine_rates
from advisor.model.errors import InputError, UsageError
from advisor.model.reports import Cell, Column, Report, Table, Text
from advisor.model.units import format_count, format_seconds
from advisor_processor import finite_cache
from advisor_processor.compiled import analysis, external_tools, remarks
from advisor_processor.operations_document import build_document, write_operations

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.analysis.machines import Machine
    from advisor.extension.commands import CommandServices
    from advisor_processor.compiled.analysis import FunctionAnalysis, RunAnalysis
    from advisor_processor.compiled.remarks import Remark
    from advisor_processor.compiled.schedule import LoopSchedule

READER: Final = "incore"
_ELF: Final = b"\x7fELF"
#: So many functions and loops are shown, and looked at by other tools, the longest first.
ROWS_SHOWN: Final = 20


def run_incore(args: Namespace, services: CommandServices) -> Report:
    """Return the analysis; raises ``InputError`` and ``UsageError`` with what is missing."""
    machine = services.load_machine(args.machine)
    if not machine.units or machine_rates.clock_hz(machine) is None:
        raise UsageError(
            f"the model {machine.name} knows no functional units or no clock: gapwatch machines probe measures them"
        )
    if args.osaca and shutil.which("osaca") is None:
        raise UsageError("--osaca: OSACA is not installed: pip install osaca")
    dynamic = not _is_program(args.path)
    with services.show_progress(f"analysing {args.path}"):
        if dynamic:
            found = analysis.analyse_run(args.path, machine, tuple(args.binary or ()))
        else:
            found = analysis.analyse_binary(args.path, machine)
    said = remarks.read_remarks(args.report or ())
    if args.write:
        if not dynamic:
            raise UsageError("only a run can be written: record it with valgrind --tool=callgrind --dump-instr=yes")
        try:
            write_operations(
                build_document(found.program, READER, found.ranks, _iterate_counts(found, said), found.missing),
                args.write,
            )
        except OSError as error:
            raise InputError(args.write, error.strerror or "can't be written") from error
    chosen = _select_functions(found, args.function, args.profile, services)
    parts = [Text(line) for line in _describe_run(found, machine, dynamic)]
    tables = [_build_function_table(chosen, machine)] if dynamic else []
    return Report(f"{found.program} on {machine.name}", (*parts, *tables, _build_loop_table(chosen, args.osaca, said)))


def write_counts(recording: Path, machine: Machine, target: Path) -> tuple[str, ...]:
    """Write the counts of what callgrind recorded; return what could not be looked at. Raises ``InputError``."""
    found = analysis.analyse_run(recording, machine)
    try:
        write_operations(build_document(found.program, READER, found.ranks, _iterate_counts(found, ())), target)
    except OSError as error:
        raise InputError(target, error.strerror or "can't be written") from error
    return found.missing


def _is_program(path: Path) -> bool:
    try:
        if path.is_dir():
            return False
        with path.open("rb") as stream:
            return stream.read(4) == _ELF
    except OSError as error:
        raise InputError(path, error.strerror or "may not be read") from error


def _iterate_counts(
    found: RunAnalysis, said: Sequence[Remark]
) -> Iterator[tuple[tuple[str, str | None, int | None], int, dict[str, float]]]:
    """Yield the counts of every function that ran."""
    for one in found.functions:
        schedule = one.schedule
        counts = {f"compiled_ops.{unit}": count for unit, count in schedule.operations.items() if unit != "branch"}
        numbers = {unit: count for unit, count in schedule.numbers.items() if unit not in ("branch", "int")}
        counts |= {f"compiled_numbers.{unit}": count for unit, count in numbers.items()}
        counts |= {"scheduled_cycles": schedule.macs_cycles, "vectorized_ops": schedule.vectorized}
        counts |= {"spilled_loads": schedule.spilled, "gathered_loads": schedule.gathered}
        counts |= {"strided_loads": schedule.strided, "chained_cycles": schedule.chained_cycles}
        if said:
            doubted = (
                loop for loop in schedule.loops if remarks.find_loop_remark(loop.loop, one.binary, said) == "overlap"
            )
            counts["doubted_cycles"] = sum(each.cycles for each in doubted)
        counts |= {name: count for name, count in one.misses.items() if name.startswith("misses")}
        yield (one.name, one.file, one.line), one.rank, counts


def _select_functions(
    found: RunAnalysis, name: str | None, profile: Path | None, services: CommandServices
) -> list[FunctionAnalysis]:
    """Return the functions to show, those of the profile with the most time first, else those with most cycles."""
    kept = [function for function in found.functions if not name or name in function.name]
    if name and not kept:
        raise UsageError(f"--function {name}: no function that ran or contains a loop has a matching name")
    if profile is None:
        return sorted(kept, key=lambda one: -one.schedule.macs_cycles)
    seconds: dict[str, float] = {}
    hot = services.read(profile)
    for phase in hot.phases:
        times = phase.arrays.get("cpu_s", phase.arrays.get("wall_s"))
        for place, region in enumerate(phase.regions if times is not None else ()):
            table = times if times is not None else None
            own = float(table[place].sum()) if table is not None else 0.0
            seconds[hot.regions[int(region)].name] = seconds.get(hot.regions[int(region)].name, 0.0) + own
    return sorted((one for one in kept if seconds.get(one.name)), key=lambda one: -seconds[one.name])


def _describe_run(found: RunAnalysis, machine: Machine, dynamic: bool) -> Iterator[str]:
    if dynamic:
        mac, macs = (
            sum(getattr(function.schedule, name) for function in found.functions) / found.ranks
            for name in ("mac_cycles", "macs_cycles")
        )
        clock = machine_rates.clock_hz(machine) or 1.0
        yield (
            f"{format_count(len(found.functions), 'function')} on {format_count(found.ranks, 'processor')}; at "
            f"{clock / 1e9:.3g} GHz their busiest units take {format_seconds(mac / clock)} and their schedules "
            f"{format_seconds(macs / clock)} per processor."
        )
        if any(function.misses for function in found.functions):
            yield f"With caches, {finite_cache.ASSUMPTION}."
    elif not found.functions:
        yield "No function contains a loop, or the executable is stripped: only functions with names are searched."
    else:
        yield "How often the loops ran is not known; record it with valgrind --tool=callgrind --dump-instr=yes."
    yield from found.missing


def _build_function_table(chosen: Sequence[FunctionAnalysis], machine: Machine) -> Table:
    clock = machine_rates.clock_hz(machine) or 1.0
    rows: list[tuple[Cell, ...]] = []
    for one in chosen[:ROWS_SHOWN]:
        schedule = one.schedule
        floating = sum(count for unit, count in schedule.operations.items() if unit.startswith("fp_"))
        access = max((schedule.busy.get(unit, 0.0) for unit in ("load", "store")), default=0.0)
        composed = finite_cache.compose_cache_times(schedule.macs_cycles, access, one.misses, machine, one.last_cache_B)
        rows.append(
            (
                one.name,
                _format_location(one.file, one.line),
                one.rank,
                int(schedule.instructions),
                schedule.vectorized / floating if floating else None,
                schedule.mac_cycles / clock,
                schedule.macs_cycles / clock,
                composed.roofline_s if composed else None,
                composed.ecm_s if composed else None,
            )
        )
    columns = ("function", "place", "rank", "instructions")
    return Table(
        "Functions" + _describe_limit(len(chosen)),
        (
            *map(Column, columns),
            Column("vectorized", "share"),
            Column("MAC", "s"),
            Column("MACS", "s"),
            Column("with $, roofline", "s"),
            Column("with $, ECM", "s"),
        ),
        tuple(rows),
    )


def _build_loop_table(chosen: Sequence[FunctionAnalysis], architecture: str | None, said: Sequence[Remark]) -> Table:
    found = [(one, loop) for one in chosen for loop in one.schedule.loops]
    ran = [(one, loop) for one, loop in found if loop.trips is None or loop.trips.iterations > 0]
    ran.sort(key=lambda pair: -pair[1].cycles)
    rows = tuple(_build_loop_row(one, loop, architecture, said) for one, loop in ran[:ROWS_SHOWN])
    names = ("loop", "function", "iterations", "throughput", "chain", "MACS", "bound by", "llvm-mca (may exceed)")
    extra = (("compiler",) if said else ()) + (("OSACA",) if architecture else ())
    columns = tuple(Column(name) for name in (*names, *extra))
    return Table("Loops, cycles per iteration" + _describe_limit(len(ran)), columns, rows)


def _describe_limit(count: int) -> str:
    return f", the {ROWS_SHOWN} longest of {count}" if count > ROWS_SHOWN else ""


def _build_loop_row(
    one: FunctionAnalysis, loop: LoopSchedule, architecture: str | None, said: Sequence[Remark]
) -> tuple[Cell, ...]:
    place = one.binary.find_line(loop.loop.begin) or (None, None)
    mca = external_tools.run_llvm_mca(loop.loop.body)
    row: tuple[Cell, ...] = (
        _format_location(*place),
        one.name,
        int(loop.trips.iterations) if loop.trips else None,
        round(loop.throughput, 2),
        round(loop.chain, 2),
        round(loop.cycles_per_iteration, 2),
        loop.bound_by,
        round(mca.cycles, 2) if mca else None,
    )
    if said:
        kind = remarks.find_loop_remark(loop.loop, one.binary, said)
        row = (*row, remarks.WORDS[kind] if kind else None)
    if not architecture:
        return row
    other = external_tools.run_osaca(loop.loop.body, architecture)
    return (*row, round(other.cycles, 2) if other else None)


def _format_location(file: str | None, line: int | None) -> str | None:
    return f"{file}:{line}" if file and line else file
