"""``gapwatch plugins``: what was found and loaded, and why something was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.cli import output, places, reports

if TYPE_CHECKING:
    import argparse

    from advisor.extension.host import Host
    from advisor.model.reports import Report

NAME = "plugins"
HELP = "list plugins: where each comes from, what it does, why one failed"


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    output.add_options(parser)


def run(args: argparse.Namespace) -> int:
    """List the plugins; returns the exit code."""
    return reports.show(_report(places.load_host()), args)


def _report(host: Host) -> Report:
    from advisor.cli.commands import COMMANDS
    from advisor.model.reports import Column, Report, Table

    loading = {*host.problems}
    commands = tuple((command.name, command.plugin, command.help) for command in host.commands(tuple(COMMANDS)))
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
