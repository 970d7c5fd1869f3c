"""``gapwatch history``: the runs that were seen, and what became of the advice on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.cli import history_location, option_types, output, report_output

if TYPE_CHECKING:
    import argparse

    from advisor.history.items import Item
    from advisor.history.runs import RunEntry
    from advisor.model.reports import Report, Table

NAME = "history"
_MOST = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument("program", metavar="PROGRAM", nargs="?", help="Program to list (default: all)")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=option_types.whole_number("a number of runs"),
        default=_MOST,
        help=f"Number of runs to list (default: {_MOST})",
    )
    history_location.add_state_argument(parser)
    output.add_output_arguments(parser, report_output.FORMS)


def run_command(args: argparse.Namespace) -> int:
    """List runs and items; returns the exit code."""
    return report_output.show_report(_build_report(args), args)


def _build_report(args: argparse.Namespace) -> Report:
    from advisor.history.access import read_history
    from advisor.history.items import ItemStore
    from advisor.history.runs import RunStore
    from advisor.model.reports import Report, Text

    with read_history(history_location.locate_history(args)) as connection:
        runs = RunStore(connection)
        history_location.require_program(args.program, runs)
        entries = runs.list_entries(args.program, args.limit)
        parts: list[Text | Table] = [_build_run_table(entries)]
        left = runs.count_runs(args.program) - len(entries)
        if left:
            older = "1 older run is" if left == 1 else f"{left} older runs are"
            parts.append(Text(f"{older} not listed (--limit {left + len(entries)} lists all)"))
        programs = (args.program,) if args.program else runs.list_programs()
        parts += [
            _build_item_table(items, f"Advice on {program}" if len(programs) > 1 else "Advice")
            for program in programs
            if (items := ItemStore(connection).items_of_program(program))
        ]
    return Report("", tuple(parts))


def _build_run_table(entries: tuple[RunEntry, ...]) -> Table:
    from advisor.model.reports import Column, Table

    columns = ("number", "program", "build", "started", "ranks", "run time", "grade", "verdict", "read by")
    rows = tuple(
        (
            e.number,
            e.program,
            e.build,
            e.started or f"read {e.added}",
            e.ranks,
            e.actual_s,
            e.grade,
            e.verdict,
            e.reader,
        )
        for e in entries
    )
    return Table("Runs", tuple(Column(name, "s" if name == "run time" else "") for name in columns), rows)


def _build_item_table(items: Sequence[Item], title: str) -> Table:
    """Return the table of items, with a column of notes where any has one."""
    from advisor.model.reports import Column, Table

    columns = [
        Column("item"), Column("action"), Column("title"), Column("at"), Column("state"), Column("since run"),
        Column("at most", "s"), Column("promised", "s"), Column("realised", "s"),
    ]  # fmt: skip
    rows: list[tuple[str | float | None, ...]] = [
        (i.fingerprint[:12], i.action, i.title, i.region or i.phase, i.state, i.first_run, i.ceiling_s, i.promised_s,
         i.realised_s)
        for i in items
    ]  # fmt: skip
    if any(_describe_suppression(item) for item in items):
        columns.append(Column("note"))
        rows = [(*row, _describe_suppression(item)) for row, item in zip(rows, items, strict=True)]
    return Table(title, tuple(columns), tuple(rows))


def _describe_suppression(item: Item) -> str | None:
    """Return until when an item is suppressed, and the reason that was given for what was last said of it."""
    until = f"until {item.until}" if item.until else None
    return ": ".join(part for part in (until, item.reason) if part) or None
