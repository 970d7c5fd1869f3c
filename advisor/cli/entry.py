"""The command line: thin commands over the pipeline.

A process of its own leaves commands that ask plugins to a child (``supervision``) and outlives whatever these do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor import __version__
from advisor.cli.error_messages import run_guarded

if TYPE_CHECKING:
    import argparse

#: Commands that load no plugin here: the daemon and the program that ``run`` starts have children of their own.
_WITHOUT_PLUGINS = frozenset(
    (
        "run", "watch", "status", "history", "compare", "applied", "ack", "suppress", "stamp", "export", "backup",
        "restore", "config", "serve", "epilog",
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
        return run_guarded(lambda: supervision.run_supervised(task, offline=offline, confines=True))
    supervision.expect_parts()
    return run_guarded(lambda: _run_arguments(arguments))


def _find_result_places(args: argparse.Namespace) -> Iterator[Path]:
    """Yield where a command writes: the history, whose readers leave marks, and its result, or what is above that."""
    from advisor.cli.history_location import history_folder

    if hasattr(args, "state"):
        yield history_folder(args)
    for place in (getattr(args, name, None) for name in ("output", "folder", "profile")):
        if place is not None:
            target = Path(os.path.realpath(place))
            special = target.exists() and not target.is_file() and not target.is_dir()
            yield target if special else next(above for above in target.parents if above.is_dir())


def _run_arguments(arguments: list[str]) -> int:
    from advisor.cli import history_location, output, parsers, plugin_commands, supervision
    from advisor.cli.commands import COMMANDS

    if arguments and not arguments[0].startswith("-"):
        name, *rest = arguments
        if name not in COMMANDS:
            return plugin_commands.run_plugin_command(name, rest)
        parsed = parsers.build_command_parser(COMMANDS[name]).parse_args(rest)
        if getattr(parsed, "cluster", None) is None:  # workers are reached by the network
            supervision.confine_process(
                lambda: history_location.connect_history_early(parsed), lambda: _find_result_places(parsed)
            )
        return COMMANDS[name].run_command(parsed)
    wants_help = "--help" in arguments or "-h" in arguments
    parser = parsers.build_top_parser(plugin_commands.list_plugin_commands() if wants_help or not arguments else ())
    if parser.parse_args(arguments).version:
        output.write_output(f"gapwatch {__version__}\n")
        return 0
    parser.print_help()
    return 2
