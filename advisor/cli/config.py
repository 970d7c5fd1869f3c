"""``gapwatch config``: what the daemon would do, and whether its configuration file is sound."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import output, places, reports, subcommands

if TYPE_CHECKING:
    import argparse

    from advisor.daemon.config import Config

NAME = "config"
_UNIT: Final = """\
[Unit]
Description=gapwatch: advice on every run of the programs that are built here

[Service]
Type=notify
NotifyAccess=main
WatchdogSec=120
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=10
TimeoutStopSec=10

[Install]
WantedBy=default.target
"""
HELP = "show the configuration of the daemon, check a file, or write a unit for systemd"


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    commands = subcommands.group(parser)
    show = subcommands.add(commands, "show", "show every setting and where the file is looked for")
    check = subcommands.add(commands, "check", "name every mistake in a configuration file")
    unit = subcommands.add(
        commands, "systemd", "write a unit that runs the daemon as a service of the user, for systemctl --user"
    )
    for each in (show, check, unit):
        each.add_argument("--config", metavar="FILE", type=Path, help="the file (default: the user's gapwatch.toml)")
    check.add_argument("file", metavar="FILE", nargs="?", type=Path, help="the same, shorter")
    output.add_options(show)


def file(args: argparse.Namespace) -> Path | None:
    """Return the configuration file that is named or the user's own; None where there is none."""
    from advisor.daemon.config import NAME as FILE_NAME

    own = places.config() / FILE_NAME
    return args.config or getattr(args, "file", None) or (own if own.is_file() else None)


def read(args: argparse.Namespace) -> Config:
    """Return the configuration of the file, else the defaults; raises ``UsageError`` with all mistakes."""
    from advisor.daemon import config

    path = file(args)
    return config.Config() if path is None else config.read(path)


def run(args: argparse.Namespace) -> int:
    """Show or check the configuration, or write the unit; returns the exit code."""
    from advisor.daemon import config
    from advisor.model.reports import Column, Report, Table, Text

    found = read(args)
    if args.what == "systemd":
        output.emit(_unit(file(args) if args.config else None))
        return 0
    if args.what == "check":
        output.emit(f"{file(args) or 'no configuration file; the defaults'}: fine\n")
        return 0
    rows = tuple((name, value or None) for name, value in config.shown(found).items())
    where = Text(f"read from {file(args) or 'no file: these are the defaults'}")
    return reports.show(Report("", (where, Table("", (Column("setting"), Column("value")), rows))), args)


def _unit(settings: Path | None) -> str:
    """Return the unit of a service of the user: ready when the daemon is, and started again when it hangs."""
    command = [sys.executable, "-P", "-m", "gapwatch", "watch", "--as", "lines"]
    command += [] if settings is None else ["--config", str(settings.absolute())]
    return _UNIT.format(command=" ".join(map(_word, command)))


def _word(text: str) -> str:
    """Return a word as systemd reads it back."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != text or " " in text else text
