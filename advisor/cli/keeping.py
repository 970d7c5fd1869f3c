"""``gapwatch export`` and ``gapwatch backup``: the history for others, and a copy of it for bad days."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import history_places, output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Command:
    """One of the two commands."""

    NAME: str
    HELP: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _configure_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", metavar="PROGRAM", nargs="?", help="one program (default: all of them)")
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="write there instead of standard output")
    history_places.add_state(parser)


def _export(args: argparse.Namespace) -> int:
    """Write one advice document a line; returns the exit code."""
    from advisor.output.document import document

    with history_places.open_runs(args) as runs:
        history_places.known(args.program, runs)
        lines = [json.dumps(document(runs.advice(entry.number))) for entry in runs.entries(args.program)]
    output.emit("".join(f"{line}\n" for line in lines), args.output)
    return 0


def _configure_backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="the copy, which must not exist yet")
    history_places.add_state(parser)


def _backup(args: argparse.Namespace) -> int:
    """Write a complete copy of the history, also while the daemon runs; returns the exit code."""
    from advisor.history.database import copy

    copy(history_places.state(args), args.file)
    return 0


export = Command("export", "write the advice on every run, one document a line", _configure_export, _export)
backup = Command("backup", "copy the history, also while it is in use", _configure_backup, _backup)
