"""The commands of plugins from Python: ``gapwatch.report("whatif", path, "--action", "A-29")``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from advisor.cli import parsers, user_folders
from advisor.cli.commands import COMMANDS
from advisor.cli.services import HostServices
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from advisor.model.reports import Report


def report(command: str, *arguments: str | os.PathLike[str]) -> Report:
    """Run the command of a plugin with its arguments and return its report: tables, bars, series and text.

    ``advisor.output.report_text.build_report_document`` makes plain data of it. Raises ``UsageError`` where no plugin
    brings the command or its arguments are wrong, and what the command raises.
    """
    host = user_folders.load_host()
    commands = {one.name: one for one in host.collect_commands(tuple(COMMANDS))}
    if command not in commands:
        raise UsageError(f"no plugin brings a command {command!r}; there are {', '.join(commands)}")
    args = parsers.parse_plugin_arguments(commands[command], [os.fspath(word) for word in arguments])
    return host.run_command(commands[command], args, HostServices(host))
