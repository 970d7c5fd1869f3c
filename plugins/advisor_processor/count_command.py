"""``gapwatch count``: operations of the source by loop, as numbers of a run and as expressions in N (M, MA)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model import units
from advisor.model.errors import InputError, UsageError
from advisor.model.reports import Cell, Column, Report, Table, Text
from advisor_processor.operations_document import build_document, write_operations
from advisor_processor.source import instrumented_run, model

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandServices
    from advisor_processor.source.model import LoopCount, SourceModel

READER: Final = "count"
_UNITS: Final = ("fp_add", "fp_mul", "fp_fma", "fp_div", "load", "store")


def run_count(args: Namespace, services: CommandServices) -> Report:
    """Return the counts; raises ``InputError`` and ``UsageError`` with what is missing or what failed."""
    if not args.command:
        raise UsageError("say what to run after --, for example: gapwatch count solver.c -- ./solver 100")
    with services.show_progress("building and running a copy with counters"):
        counted = instrumented_run.count_executions(args.source, args.command, args.build, args.root)
        found = model.build_model(counted)
    said = [problem for source in counted.sources for problem in source.problems]
    if args.write:
        _write(args.program or Path(args.command[0]).name, found, said, args.write)
    problems = [Text(problem) for problem in said]
    return Report(f"{' '.join(args.command)}", (*problems, *_build_parts(found)))


def write_counts(
    sources: Sequence[Path], command: Sequence[str], build: str, root: Path, program: str, target: Path
) -> tuple[str, ...]:
    """Count the operations of a program's sources in a copy of ``root`` and write them to ``target``.

    Returns what could not be understood of the sources. Raises ``InputError`` and ``UsageError``.
    """
    counted = instrumented_run.count_executions(sources, command, build, root)
    said = tuple(problem for source in counted.sources for problem in source.problems)
    _write(program, model.build_model(counted), said, target)
    return said


def _write(program: str, found: SourceModel, notes: Sequence[str], target: Path) -> None:
    try:
        write_operations(build_document(program, READER, found.ranks, model.iterate_rows(found), notes), target)
    except OSError as error:
        raise InputError(target, error.strerror or "can't be written") from error


def count_operations(
    sources: Sequence[Path], command: Sequence[str], build: str | None = None, root: Path | None = None
) -> dict[str, object]:
    """Return parameters, loops and blocks of a program that was run with counters (docs/plugins/processor.md).

    The service ``count_operations``; raises ``InputError`` and ``UsageError``.
    """
    return model.to_plain(model.build_model(instrumented_run.count_executions(sources, command, build, root)))


def _build_parts(found: SourceModel) -> Iterator[Text | Table]:
    values = ", ".join(f"{name} = {value:,}" for name, value in found.parameters.items())
    yield Text(f"On {units.format_count(found.ranks, 'rank')}, with {values or 'no parameters'}.")
    rows = tuple(_build_loop_row(loop) for loop in found.loops)
    columns = ("loop", "iterations", "as expression", "agrees", "an iteration does", "flops")
    yield Table("Loops, inner ones apart", tuple(map(Column, columns)), rows)
    branches = [block for block in found.blocks if block.ratio is not None]
    if branches:
        yield Table(
            "Branches",
            (Column("place"), Column("function"), Column("taken", "share"), Column("times")),
            tuple(
                (f"{one.source.file}:{one.block.line}", one.block.function, one.ratio, sum(one.executions))
                for one in branches
            ),
        )
    totals = {unit: sum(loop.totals.get(unit, 0) for loop in found.loops) for unit in _UNITS}
    yield Table("All loops", (Column("operation"), Column("times")), tuple(totals.items()))


def _build_loop_row(one: LoopCount) -> tuple[Cell, ...]:
    """Return a loop: what one iteration does where nothing is conditional, else its mean over the iterations."""
    iterations = sum(one.iterations)
    totals = one.totals
    flops = sum(totals.get(unit, 0) * (2 if unit == "fp_fma" else 1) for unit in _UNITS if unit.startswith("fp_"))
    agrees = None if one.exact is None else "yes" if one.exact else "no"
    each = ", ".join(
        f"{_format_mean(totals[unit], iterations)} {unit}" for unit in _UNITS if totals.get(unit) and iterations
    )
    return (one.loop.name, iterations, one.expression, agrees, each or None, flops)


def _format_mean(total: int, iterations: int) -> str:
    return str(total // iterations) if total % iterations == 0 else f"{total / iterations:.3g}"
