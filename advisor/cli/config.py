"""``gapwatch config``: what the daemon would do, and whether its configuration file is sound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import output, places, reports, subcommands

if TYPE_CHECKING:
    import argparse

    from advisor.watch.config import Config

NAME = "config"
HELP = "show the configuration of the daemon, or check a file"


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    commands = subcommands.group(parser)
    show = subcommands.add(commands, "show", "show every setting and where the file is looked for")
    check = subcommands.add(commands, "check", "name every mistake in a configuration file")
    for each in (show, check):
        each.add_argument("--config", metavar="FILE", type=Path, help="the file (default: the user's gapwatch.toml)")
    output.add_options(show)


def file(args: argparse.Namespace) -> Path | None:
    """Return the configuration file that is named or the user's own; None where there is none."""
    from advisor.watch.config import NAME as FILE_NAME

    own = places.config() / FILE_NAME
    return args.config or (own if own.is_file() else None)


def read(args: argparse.Namespace) -> Config:
    """Return the configuration of the file, else the defaults; raises ``UsageError`` with all mistakes."""
    from advisor.watch import config

    path = file(args)
    return config.Config() if path is None else config.read(path)


def run(args: argparse.Namespace) -> int:
    """Show or check the configuration; returns the exit code."""
    from advisor.reports import Column, Report, Table, Text
    from advisor.watch import config

    found = read(args)
    if args.what == "check":
        output.emit(f"{file(args) or 'no configuration file; the defaults'}: fine\n")
        return 0
    rows = tuple((name, value or None) for name, value in config.shown(found).items())
    where = Text(f"read from {file(args) or 'no file: these are the defaults'}")
    return reports.show(Report("", (where, Table("", (Column("setting"), Column("value")), rows))), args)
