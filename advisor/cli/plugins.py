"""``gapwatch plugins``: what was found and loaded, and why something was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.cli import output, report_output, user_folders

if TYPE_CHECKING:
    import argparse

    from advisor.extension.host import PluginHost
    from advisor.model.reports import Report

NAME = "plugins"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    output.add_output_arguments(parser)


def run_command(args: argparse.Namespace) -> int:
    """List the plugins; returns the exit code."""
    return report_output.show_report(_build_report(user_folders.load_host()), args)


def _build_report(host: PluginHost) -> Report:
    from advisor.cli.commands import COMMANDS
    from advisor.model.reports import Column, Report, Table

    loading = {*host.problems}
    commands = tuple((command.name, command.plugin, command.help) for command in host.collect_commands(tuple(COMMANDS)))
    failed = tuple((problem,) for problem in host.problems if problem not in loading)
    plugins = tuple(
        (
            plugin.name,
            plugin.version or "",
            plugin.origin,
            ", ".join(hook.removeprefix("advisor_") for hook in plugin.hooks),
            plugin.problem or "",
        )
        for plugin in host.plugins
    )
    parts = [
        Table("Plugins", tuple(map(Column, ("name", "version", "from", "provides", "problem"))), plugins),
        Table("Commands", tuple(map(Column, ("name", "plugin", "what it does"))), commands),
    ]
    if failed:
        parts.append(Table("Problems", (Column("what happened"),), failed))
    return Report("", tuple(parts))
