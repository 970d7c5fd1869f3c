"""``gapwatch history``: the runs that were seen, and what became of the advice on them."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from advisor.cli import history_places, output, reports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.history.items import Item
    from advisor.history.runs import Entry
    from advisor.model.reports import Report, Table

NAME = "history"
HELP = "list the runs of a program and what became of each item of advice"
_MOST = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument("program", metavar="PROGRAM", nargs="?", help="one program (default: all of them)")
    parser.add_argument("--most", metavar="N", type=_most, default=_MOST, help=f"runs to list (default: {_MOST})")
    history_places.add_state(parser)
    output.add_options(parser, reports.FORMS)


def _most(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"expected a number of runs, found {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """List runs and items; returns the exit code."""
    return reports.show(_report(args), args)


def _report(args: argparse.Namespace) -> Report:
    from advisor.history.database import read
    from advisor.history.items import Items
    from advisor.history.runs import Runs
    from advisor.model.reports import Report, Text

    with closing(read(history_places.state(args))) as connection:
        runs = Runs(connection)
        history_places.known(args.program, runs)
        entries = runs.entries(args.program, args.most)
        parts: list[Text | Table] = [_runs(entries)]
        left = runs.count(args.program) - len(entries)
        if left:
            older = "1 older run is" if left == 1 else f"{left} older runs are"
            parts.append(Text(f"{older} not listed; --most {left + len(entries)} lists all"))
        programs = (args.program,) if args.program else runs.programs()
        parts += [
            _items(items, f"Advice on {program}" if len(programs) > 1 else "Advice")
            for program in programs
            if (items := Items(connection).of(program))
        ]
    return Report("", tuple(parts))


def _runs(entries: tuple[Entry, ...]) -> Table:
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


def _items(items: Sequence[Item], title: str) -> Table:
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
    if any(_note(item) for item in items):
        columns.append(Column("note"))
        rows = [(*row, _note(item)) for row, item in zip(rows, items, strict=True)]
    return Table(title, tuple(columns), tuple(rows))


def _note(item: Item) -> str | None:
    """Return until when an item is suppressed, and the reason that was given for what was last said of it."""
    until = f"until {item.until}" if item.until else None
    return ": ".join(part for part in (until, item.reason) if part) or None
