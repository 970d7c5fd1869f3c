"""``gapwatch config``: what the daemon would do, whether its configuration file is sound, and what a site sets up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import output, report_output, subcommands, user_folders

if TYPE_CHECKING:
    import argparse

    from advisor.daemon.config import DaemonConfig

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    commands = subcommands.add_command_group(parser)
    show = subcommands.add_command(commands, "show", "show all settings and the file's search path")
    check = subcommands.add_command(commands, "check", "validate a configuration file")
    unit = subcommands.add_command(commands, "systemd", "write a systemd user unit that runs the daemon")
    subcommands.add_command(commands, "database", "write the SQL that makes or upgrades a history on PostgreSQL")
    for each in (show, check, unit):
        each.add_argument(
            "--config", metavar="FILE", type=Path, help="Configuration file (default: the user's gapwatch.toml)"
        )
    check.add_argument("file", metavar="FILE", nargs="?", type=Path, help="Same as --config FILE")
    output.add_output_arguments(show)


def find_config_file(args: argparse.Namespace) -> Path | None:
    """Return the configuration file that is named or the user's own; None where there is none."""
    from advisor.daemon.config import NAME as FILE_NAME

    own = user_folders.config_folder() / FILE_NAME
    return args.config or getattr(args, "file", None) or (own if own.is_file() else None)


def read_config(args: argparse.Namespace) -> DaemonConfig:
    """Return the configuration of the file, else the defaults; raises ``UsageError`` with all mistakes."""
    from advisor.daemon import config

    path = find_config_file(args)
    if path is None:
        return config.DaemonConfig()
    if not args.config:
        user_folders.refuse_foreign_config(path)
    return config.read_config(path)


def run_command(args: argparse.Namespace) -> int:
    """Show or check the configuration, or write the unit or the statements; returns the exit code."""
    from advisor.daemon import config
    from advisor.model.reports import Column, Report, Table, Text

    if args.what == "database":
        from advisor.history.postgres_schema import render_roles, render_schema

        output.write_output(render_schema() + render_roles())
        return 0
    found = read_config(args)
    if args.what == "systemd":
        # the unit of a service of the user: ready when the daemon is, and started again when it hangs
        settings = find_config_file(args) if args.config else None
        command = [sys.executable, "-P", "-m", "gapwatch", "watch", "--format", "lines"]
        command += [] if settings is None else ["--config", str(settings.absolute())]
        output.write_output(_UNIT.format(command=" ".join(map(_quote_word, command))))
        return 0
    if args.what == "check":
        output.write_output(f"{find_config_file(args) or 'no configuration file; the defaults'}: fine\n")
        return 0
    rows = tuple((name, value or None) for name, value in config.format_settings(found).items())
    where = Text(f"read from {find_config_file(args) or 'no file: these are the defaults'}")
    return report_output.show_report(Report("", (where, Table("", (Column("setting"), Column("value")), rows))), args)


def _quote_word(text: str) -> str:
    """Return a word as systemd reads it back."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != text or " " in text else text
