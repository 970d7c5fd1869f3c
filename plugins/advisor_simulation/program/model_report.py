"""What ``gapwatch model -- COMMAND`` shows: the model, what it was compared with, and what it lacks."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model import units
from advisor.model.errors import AdvisorError, UsageError
from advisor.model.reports import Code, Column, Report, Table, Text
from advisor.support.child_process import run_child
from advisor.support.documents.yaml_nodes import LARGEST
from advisor_simulation.mds.coherence import KINDS
from advisor_simulation.mds.report import describe_missing_inputs
from advisor_simulation.model.checks import read_model
from advisor_simulation.program.model_check import (
    compare_loads,
    compare_messages,
    compare_misses,
    compare_references,
    compute_error,
    find_false_sharing,
    simulate_plain,
)
from advisor_simulation.program.program_model import fold_program, trace_program, write_program_model

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from advisor.extension.commands import CommandServices
    from advisor.model.reports import Cell, Part
    from advisor.trace.events import Trace
    from advisor_simulation.mds.log import SimulationLog
    from advisor_simulation.model.records import Model
    from advisor_simulation.program.model_check import Comparison, SharedLines
    from advisor_simulation.program.program_model import FoldedProgram, TracedProgram

#: A recording of the program takes as long as the program.
_RECORDING_S: Final = 3600.0
#: Longer models are saved, not shown.
_LONGEST: Final = 50_000


def build_report(
    command: Sequence[str], variables: Mapping[str, str], program: Path, args: Namespace, services: CommandServices
) -> tuple[Report, str]:
    """Return the report on a program that a command runs with some ``variables``, and its model as text."""
    cache = services.user_folder("cache")
    with tempfile.TemporaryDirectory(prefix="gapwatch-") as scratch:
        folder = Path(scratch)
        traced = trace_program(command, program, cache, folder, args.limit, args.source, variables)
        folded = fold_program(traced, cache)
        target = args.save or folder / f"{program.name}.yaml"
        trace = _record_messages(command, args, services, folder) if traced.ranked else None
        text = write_program_model(traced, folded, target, trace)
        if len(text) > LARGEST:
            raise UsageError(
                f"the model of {program.name} has {len(folded.phases):,} phases that differ and would take "
                f"{len(text):,} bytes, a document at most {LARGEST:,}: run fewer steps or a smaller problem"
            )
        place = folder / "model.yaml" if args.save is None else target.parent / f".{target.name}.checked"
        place.write_text(text, encoding="utf-8")
        try:
            model = read_model(place)
            names, log = simulate_plain(model, place.parent, folded.processors)
            parts: list[Part] = [_describe_program(traced.image.path.name, folded.processors, log)]
            rows = [compare_references(names, log, traced, folded), *compare_loads(log, folded)]
            if trace is not None:
                rows += compare_messages(log, trace, folded.processors)
            if not args.unchecked:
                parts += _compare_with_valgrind(rows, model, place.parent, traced, folded, command, cache)
            parts.append(_comparison_table(rows))
            text = text.replace("unit: cycle", f"error: {min(compute_error(rows), 1.0):.3g}\nunit: cycle", 1)
        finally:
            if args.save is not None:
                place.unlink(missing_ok=True)
        parts += _describe_false_sharing(find_false_sharing(names, log, traced, folded))
        parts += [_sharing_table(names, log), *describe_missing_inputs(model), _show_model(text, args.save)]
    return Report(f"A model of {program.name}", tuple(parts)), text


def _show_model(text: str, saved: Path | None) -> Part:
    if len(text) <= _LONGEST:
        return Code("The model", "yaml", text)
    where = f"is in {saved}" if saved else "is not shown; --save FILE writes it"
    return Text(f"The model, {text.count(chr(10)):,} lines, {where}.")


def _record_messages(command: Sequence[str], args: Namespace, services: CommandServices, folder: Path) -> Trace | None:
    """Return a recording of the command: the one that is named, else one that is made now; None where that fails."""
    if args.run:
        return services.read_trace(args.run)
    recording = folder / "recording"
    words = [
        sys.executable,
        "-m",
        "gapwatch",
        "run",
        "--profile",
        str(recording),
        "-o",
        str(folder / "advice.txt"),
        "--",
    ]
    run_child([*words, *command], _RECORDING_S)
    try:
        return services.read_trace(recording)
    except AdvisorError:
        return None


def _describe_program(name: str, processors: int, log: SimulationLog) -> Text:
    references = units.format_count(log.references, "reference")
    return Text(f"{name} on {units.format_count(processors, 'processor')}: {references} to arrays.")


def _compare_with_valgrind(
    rows: list[Comparison],
    model: Model,
    place: Path,
    traced: TracedProgram,
    folded: FoldedProgram,
    command: Sequence[str],
    cache: Path,
) -> list[Text]:
    try:
        with tempfile.TemporaryDirectory(prefix="gapwatch-") as scratch:
            found = compare_misses(model, place, traced, folded, command, Path(scratch), cache)
    except AdvisorError as error:
        return [Text(f"Misses were not compared: {error}.")]
    rows += found
    if not found:
        return [Text("Misses were not compared: valgrind lets threads share a cache, and the model needs all of them.")]
    return []


def _comparison_table(rows: Sequence[Comparison]) -> Table:
    columns = (Column("quantity"), Column("model"), Column("measured"), Column("error", "share"))
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (row.name, round(row.modelled), round(row.measured), row.error) for row in rows
    )
    return Table(
        "The model beside the program: misses by array in a first cache of 32 KiB, instructions", columns, cells
    )


def _describe_false_sharing(found: Sequence[SharedLines]) -> list[Text]:
    return [
        Text(
            f"False sharing in {one.array}: {one.transactions:,} of {one.references:,} references fetch a line only "
            "because another processor writes beside them. Give each processor lines of its own (A-6, G-12)."
        )
        for one in found
    ]


def _sharing_table(names: Sequence[str], log: SimulationLog) -> Table:
    columns = (Column("array"), *(Column(kind) for kind in KINDS))
    cells: list[tuple[Cell, ...]] = []
    if log.transactions is not None:
        total = log.transactions.sum(axis=1)
        cells = [(name, *(int(count) for count in row)) for name, row in zip(names, total, strict=True) if row.any()]
    return Table("Transactions of infinite caches, by array", columns, tuple(cells))
