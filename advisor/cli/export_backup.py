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


@dataclass(frozen=True, slots=True)
class HistoryCommand:
    """One of the two commands."""

    NAME: str
    HELP: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run_command: Callable[[argparse.Namespace], int]


def _add_export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", metavar="PROGRAM", nargs="?", help="Program to export (default: all)")
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="Write to FILE instead of standard output")
    history_location.add_state_argument(parser)


def _export_history(args: argparse.Namespace) -> int:
    """Write one advice document a line; returns the exit code."""
    from advisor.output.advice_document import build_advice_document

    with history_location.open_runs(args) as runs:
        history_location.require_program(args.program, runs)
        lines = [
            json.dumps(build_advice_document(runs.load_advice(entry.number)))
            for entry in runs.list_entries(args.program)
        ]
    output.write_output("".join(f"{line}\n" for line in lines), args.output)
    return 0


def _add_backup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="Backup file (must not exist)")
    history_location.add_state_argument(parser)


def _backup_history(args: argparse.Namespace) -> int:
    """Write a complete copy of the history, also while the daemon runs; returns the exit code."""
    from advisor.history.database import copy_history

    copy_history(history_location.history_folder(args), args.file)
    return 0


export = HistoryCommand("export", "export all advice as JSON Lines", _add_export_arguments, _export_history)
backup = HistoryCommand(
    "backup", "back up the history (safe while the daemon runs)", _add_backup_arguments, _backup_history
)
