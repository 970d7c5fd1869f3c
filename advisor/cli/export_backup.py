"""``gapwatch export``, ``backup`` and ``restore``: the history for others, and a copy of it for bad days."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import history_location, output
from advisor.model.errors import StoreError, UsageError

if TYPE_CHECKING:
    import argparse

    from advisor.history.runs import RunStore


@dataclass(frozen=True, slots=True)
class HistoryCommand:
    """One of these commands."""

    NAME: str
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
        by_lines = args.form == "jsonl"
        text, problems = (_render_lines if by_lines else _render_metrics)(runs, args.program)
    output.write_output(text, args.output, private=by_lines)
    output.write_messages(*problems)
    return 2 if problems else 0


def _render_lines(runs: RunStore, program: str | None) -> tuple[str, list[str]]:
    """Return one advice document a line, and what is said of runs that are left out."""
    from advisor.history.dialect import StoreLost
    from advisor.output.advice_document import build_advice_document

    lines, problems = [], []
    for entry in runs.list_entries(program):
        try:
            lines.append(f"{json.dumps(build_advice_document(runs.load_advice(entry.number)))}\n")
        except StoreLost:
            raise
        except StoreError as error:
            problems.append(f"{error}; it is left out")
    return "".join(lines), problems


def _render_metrics(runs: RunStore, program: str | None) -> tuple[str, list[str]]:
    """Return the newest run of each program, and what is said of runs that are left out."""
    from advisor.output.open_metrics import render_open_metrics

    found, problems = runs.load_newest(runs.list_programs() if program is None else (program,))
    return render_open_metrics(found), problems


def _add_backup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="Backup file (must not exist)")
    history_location.add_state_argument(parser)


def _backup_history(args: argparse.Namespace) -> int:
    """Write a complete copy of the history, also while the daemon runs; returns the exit code."""
    from advisor.history.backups import copy_history

    copy_history(_require_folder(args), args.file)
    return 0


def _require_folder(args: argparse.Namespace) -> Path:
    """Return the directory of the history; raises ``UsageError`` for a server, which has means of its own."""
    place = history_location.locate_history(args)
    if not isinstance(place, Path):
        raise UsageError(f"{place} is on a server: back it up with pg_dump, restore it with pg_restore (docs/site.md)")
    return place


def _add_restore_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="Backup that 'gapwatch backup' wrote")
    history_location.add_state_argument(parser)


def _restore_history(args: argparse.Namespace) -> int:
    """Put a backup in the place of the history, which is kept under another name; returns the exit code."""
    from advisor.history.backups import restore_history

    folder = _require_folder(args)
    kept = restore_history(folder, args.file)
    before = f"; what was there before is {kept}" if kept is not None else ""
    output.write_output(
        f"the history in {folder} is now that of {args.file}{before}\n"
        "profiles that were read since the backup are read again by the next 'gapwatch watch'\n"
    )
    return 0


export = HistoryCommand("export", _add_export_arguments, _export_history)
backup = HistoryCommand("backup", _add_backup_arguments, _backup_history)
restore = HistoryCommand("restore", _add_restore_arguments, _restore_history)
