"""``gapwatch history``: the runs that were seen, and what became of the advice on them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from advisor.cli import history_places, output, reports

if TYPE_CHECKING:
    from advisor.reports import Report, Table
    from advisor.store.items import Item
    from advisor.store.runs import Entry

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
    from advisor.errors import UsageError
    from advisor.reports import Report, Text
    from advisor.store.database import read
    from advisor.store.items import Items
    from advisor.store.runs import Runs

    connection = read(history_places.state(args))
    runs = Runs(connection)
    programs = runs.programs()
    if args.program is not None and args.program not in programs:
        raise UsageError(f"no run of {args.program!r} in the history; there are {', '.join(programs) or 'none'}")
    wanted = programs if args.program is None else (args.program,)
    items = [item for program in wanted for item in Items(connection).of(program)]
    parts: list[Text | Table] = [_runs(runs.entries(args.program, args.most))]
    if items:
        parts.append(_items(items))
    return Report("", tuple(parts))


def _runs(entries: tuple[Entry, ...]) -> Table:
    from advisor.reports import Column, Table

    columns = ("number", "program", "build", "started", "ranks", "run time", "grade", "verdict", "read by")
    rows = tuple(
        (e.number, e.program, e.build, e.started or e.added, e.ranks, e.actual_s, e.grade, e.verdict, e.reader)
        for e in entries
    )
    return Table("Runs", tuple(Column(name, "s" if name == "run time" else "") for name in columns), rows)


def _items(items: list[Item]) -> Table:
    from advisor.reports import Column, Table

    columns = (
        Column("item"), Column("action"), Column("title"), Column("at"), Column("state"), Column("since run"),
        Column("at most", "s"), Column("promised", "s"), Column("realised", "s"),
    )  # fmt: skip
    rows = tuple(
        (i.fingerprint[:12], i.action, i.title, i.region or i.phase, i.state, i.first_run, i.ceiling_s, i.promised_s,
         i.realised_s)
        for i in items
    )  # fmt: skip
    return Table("Advice", columns, rows)
