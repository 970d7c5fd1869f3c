"""``gapwatch status``: what became of every file, and whether the daemon runs; answers whatever that is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.cli import history_location, output, report_output
from advisor.model.units import format_count

if TYPE_CHECKING:
    import argparse

    from advisor.history.dialect import HistoryConnection
    from advisor.history.location import HistoryLocation
    from advisor.history.runs import RunStore
    from advisor.model.reports import Report

NAME = "status"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    history_location.add_state_argument(parser)
    output.add_output_arguments(parser)


def run_command(args: argparse.Namespace) -> int:
    """Show the state of everything; returns the exit code."""
    return report_output.show_report(_build_report(args), args)


def _describe_runs(runs: RunStore) -> str:
    many, programs = runs.count_runs(), runs.list_programs()
    return f"{format_count(many, 'run')} of {history_location.format_programs(programs)}" if many else "no run yet"


def _build_report(args: argparse.Namespace) -> Report:
    from advisor.history.access import read_history

    place = history_location.locate_history(args)
    with read_history(place) as connection:
        return _describe_history(place, connection)


def _describe_history(place: HistoryLocation, connection: HistoryConnection) -> Report:
    from advisor.history.access import describe_writers
    from advisor.history.file_states import FileStates
    from advisor.history.remarks import RemarkStore
    from advisor.history.runs import RunStore
    from advisor.model.reports import Column, Report, Table, Text

    who = describe_writers(place, connection)
    counts = FileStates(connection).count_states()
    rows: list[tuple[str | int, ...]] = [(state, count) for state, count in counts.items()]
    rows.append(("total", sum(counts.values())))
    parts: list[Text | Table] = [
        Text(
            f"{who} is writing to the history in {place}" if who else f"no process is writing to the history in {place}"
        ),
        Table("Files", (Column("state"), Column("files")), tuple(rows)),
        Text(_describe_runs(RunStore(connection))),
    ]
    if ignored := FileStates(connection).count_ignored():
        parts.append(Table("Ignored", (Column("reason"), Column("files"), Column("latest")), tuple(ignored)))
    troubles = FileStates(connection).find_troubles()
    if troubles:
        parts.append(Table("Problems", (Column("file"), Column("state"), Column("reason")), tuple(troubles)))
    remarks = RemarkStore(connection)
    parts += [Text(f"daemon: {said}") for said in remarks.latest_remarks()]
    if faults := remarks.failed_plugins():
        columns = (Column("plugin"), Column("failures"), Column("last failure"))
        parts.append(Table("Failed plugins (disabled after three failures, until updated)", columns, faults))
    return Report("", tuple(parts))
