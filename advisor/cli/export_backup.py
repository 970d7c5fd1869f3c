"""``gapwatch export`` and ``gapwatch backup``: the history for others, and a copy of it for bad days."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import history_location, output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from advisor.history.runs import RunStore


@dataclass(frozen=True, slots=True)
class HistoryCommand:
    """One of the two commands."""

    NAME: str
    HELP: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run_command: Callable[[argparse.Namespace], int]


def _add_export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", metavar="PROGRAM", nargs="?", help="Program to export (default: all)")
    parser.add_argument(
        "--format", dest="form", choices=("jsonl", "openmetrics"), default="jsonl",
        help="All advice as JSON Lines, or the newest run of each program as OpenMetrics (default: jsonl)",
    )  # fmt: skip
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="Write to FILE instead of standard output")
    history_location.add_state_argument(parser)


def _export_history(args: argparse.Namespace) -> int:
    """Write the history in a form for other programs; returns the exit code."""
    with history_location.open_runs(args) as runs:
        history_location.require_program(args.program, runs)
        text = _render_metrics(runs, args.program) if args.form == "openmetrics" else _render_lines(runs, args.program)
    output.write_output(text, args.output)
    return 0


def _render_lines(runs: RunStore, program: str | None) -> str:
    """Return one advice document a line."""
    from advisor.output.advice_document import build_advice_document

    entries = runs.list_entries(program)
    return "".join(f"{json.dumps(build_advice_document(runs.load_advice(entry.number)))}\n" for entry in entries)


def _render_metrics(runs: RunStore, program: str | None) -> str:
    """Return the newest run of each program."""
    from advisor.output.open_metrics import render_open_metrics

    programs = runs.list_programs() if program is None else (program,)
    newest = [entry for name in programs for entry in runs.list_entries(name, most=1)]
    return render_open_metrics([runs.load_advice(entry.number) for entry in newest])


def _add_backup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="Backup file (must not exist)")
    history_location.add_state_argument(parser)


def _backup_history(args: argparse.Namespace) -> int:
    """Write a complete copy of the history, also while the daemon runs; returns the exit code."""
    from advisor.history.database import copy_history

    copy_history(history_location.history_folder(args), args.file)
    return 0


export = HistoryCommand(
    "export", "export all advice as JSON Lines, or the newest as OpenMetrics", _add_export_arguments, _export_history
)
backup = HistoryCommand(
    "backup", "back up the history (safe while the daemon runs)", _add_backup_arguments, _backup_history
)
