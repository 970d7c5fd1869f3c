"""The command line: thin commands over the pipeline.

A process of its own leaves commands that ask plugins to a child (``supervision``) and outlives whatever these do.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from advisor import __version__
from advisor.cli.error_messages import run_guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Commands that load no plugin here: the daemon and the program that ``run`` starts have children of their own.
_WITHOUT_PLUGINS = frozenset(
    (
        "run", "watch", "status", "history", "compare", "applied", "ack", "suppress", "stamp", "export", "backup",
        "restore", "config", "serve",
    )
)  # fmt: skip
#: Commands that read files of others and need no network.
_OFFLINE = ("advise", "demo", "explain", "report")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (by default the process's own) and return its exit code."""
    from advisor.cli import output, supervision

    output.prepare_streams()
    if argv is not None:
        return run_guarded(lambda: _run_arguments(list(argv)))
    arguments = sys.argv[1:]
    if arguments and arguments[0] not in _WITHOUT_PLUGINS and not arguments[0].startswith("-"):
        task = partial(run_guarded, lambda: _run_arguments(arguments))
        offline = arguments[0] in _OFFLINE
        return run_guarded(lambda: supervision.run_supervised(task, offline=offline))
    supervision.expect_parts()
    return run_guarded(lambda: _run_arguments(arguments))


def _run_arguments(arguments: list[str]) -> int:
    from advisor.cli import output, parsers, plugin_commands
    from advisor.cli.commands import COMMANDS

    if arguments and not arguments[0].startswith("-"):
        name, *rest = arguments
        if name not in COMMANDS:
            return plugin_commands.run_plugin_command(name, rest)
        return COMMANDS[name].run_command(parsers.build_command_parser(COMMANDS[name]).parse_args(rest))
    wants_help = "--help" in arguments or "-h" in arguments
    parser = parsers.build_top_parser(plugin_commands.list_plugin_commands() if wants_help or not arguments else ())
    if parser.parse_args(arguments).version:
        output.write_output(f"gapwatch {__version__}\n")
        return 0
    parser.print_help()
    return 2
