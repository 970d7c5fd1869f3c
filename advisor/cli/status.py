"""``gapwatch status``: what became of every file, and whether the daemon runs; answers whatever that is doing."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from advisor.cli import history_places, output, reports

if TYPE_CHECKING:
    import argparse
    from pathlib import Path
    from sqlite3 import Connection

    from advisor.history.runs import Runs
    from advisor.model.reports import Report

NAME = "status"
HELP = "say whether the daemon runs, what became of every file, and what is in the way"


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    history_places.add_state(parser)
    output.add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Show the state of everything; returns the exit code."""
    return reports.show(_report(args), args)


def _runs(runs: Runs) -> str:
    many, programs = runs.count(), runs.programs()
    return f"{many} {'run' if many == 1 else 'runs'} of {', '.join(programs)}" if many else "no run yet"


def _report(args: argparse.Namespace) -> Report:
    from advisor.history.database import read

    folder = history_places.state(args)
    with closing(read(folder)) as connection:
        return _report_of(folder, connection)


def _report_of(folder: Path, connection: Connection) -> Report:
    from advisor.history.database import holder
    from advisor.history.ledger import Ledger
    from advisor.history.remarks import Remarks
    from advisor.history.runs import Runs
    from advisor.model.reports import Column, Report, Table, Text

    who = holder(folder)
    counts = Ledger(connection).counts()
    rows: list[tuple[str | int, ...]] = [(state, count) for state, count in counts.items()]
    rows.append(("all together", sum(counts.values())))
    parts: list[Text | Table] = [
        Text(f"{who} writes to the history in {folder}" if who else f"nobody writes to the history in {folder}"),
        Table("Files", (Column("state"), Column("files")), tuple(rows)),
        Text(_runs(Runs(connection))),
    ]
    if ignored := Ledger(connection).ignored():
        parts.append(Table("Ignored", (Column("why"), Column("files"), Column("the newest")), tuple(ignored)))
    troubles = Ledger(connection).troubles()
    if troubles:
        parts.append(Table("In the way", (Column("file"), Column("state"), Column("why")), tuple(troubles)))
    remarks = Remarks(connection)
    parts += [Text(f"the daemon says: {said}") for said in remarks.all()]
    if faults := remarks.plugins():
        columns = (Column("plugin"), Column("failed"), Column("the last time"))
        parts.append(Table("Plugins that failed (three times: left out until updated)", columns, faults))
    return Report("", tuple(parts))
