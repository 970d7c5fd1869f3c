"""The commands that plugins bring: listed without loading the plugins, run with what they may ask for."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from advisor.cli import output, report_output, user_folders
from advisor.cli.commands import COMMANDS
from advisor.model.errors import GateCrossed, UsageError
from advisor.support.descriptors import has_input

if TYPE_CHECKING:
    from advisor.extension.host import PluginHost
    from advisor.model.reports import Report
#: Help does not wait longer for plugins to say what they bring (seconds).
_PATIENCE = 5.0


def list_plugin_commands() -> list[tuple[str, str]]:
    """Return name and help of the plugins' commands; of those that list none as far as they are found in time."""
    from advisor.extension import command_list

    listed, told, others = command_list.read_listed_commands()
    found = {command.name: command.help for command in listed}
    if others or user_folders.plugin_folders():
        found = dict(_ask_other_plugins(told)) | found
    return [(name, found[name]) for name in sorted(found) if name not in COMMANDS]


def _ask_other_plugins(told: Sequence[str]) -> list[tuple[str, str]]:
    """Return name and help of the commands of other plugins than those that ``told`` theirs; none where it takes long.

    A child process looks: where no list is kept it loads these plugins, and help must not pay for that in memory, nor
    end with a plugin that ends the process.
    """
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        _send_command_list(sending, told)
    os.close(sending)
    try:
        return [(str(name), str(words)) for name, words in json.loads(_receive_bytes(receiving))]
    except ValueError:
        return []
    finally:
        os.close(receiving)
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _send_command_list(sending: int, told: Sequence[str]) -> None:
    """Write the list as JSON and end: what plugins print while they load goes nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        from advisor.extension import command_list

        commands = [
            (command.name, command.help) for command in command_list.list_commands(user_folders.plugin_folders(), told)
        ]
        with os.fdopen(sending, "w", encoding="ascii") as stream:
            json.dump(commands, stream)
    finally:
        os._exit(0)


def _receive_bytes(receiving: int) -> bytes:
    parts = []
    while has_input(receiving, _PATIENCE):
        parts.append(os.read(receiving, 65536))
        if not parts[-1]:
            break
    return b"".join(parts)


def run_plugin_command(name: str, arguments: Sequence[str]) -> int:
    """Run the plugin's command of that name; ``UsageError`` if there is none, ``GateCrossed`` if its report failed."""
    from advisor.cli import parsers
    from advisor.cli.services import HostServices

    host = user_folders.load_host()
    commands = {command.name: command for command in host.collect_commands(tuple(COMMANDS))}
    if name not in commands:
        raise UsageError(_describe_unknown(name, [*COMMANDS, *commands]))
    args = parsers.parse_plugin_arguments(commands[name], arguments)
    report = host.run_command(commands[name], args, HostServices(host))
    output.write_messages(*host.problems)
    code = report_output.show_report(report, args)
    if report.failed:
        raise GateCrossed(report.failed)
    return code


def build_plugin_report(host: PluginHost, name: str, arguments: Sequence[str]) -> Report:
    """Return the report of a plugin's command; ``UsageError`` where there is none, or its arguments are wrong."""
    from advisor.cli import parsers
    from advisor.cli.services import HostServices

    commands = {command.name: command for command in host.collect_commands(tuple(COMMANDS))}
    if name not in commands:
        raise UsageError(f"no plugin brings a command {name!r}; there are {', '.join(commands)}")
    args = parsers.parse_plugin_arguments(commands[name], arguments)
    return host.run_command(commands[name], args, HostServices(host))


def _describe_unknown(name: str, known: Sequence[str]) -> str:
    from advisor.support.documents import scalars

    near = scalars.find_nearest(name, known)
    hint = f"; did you mean {near}?" if near else ""
    return f"no command {name!r}{hint} (gapwatch --help lists them)"
