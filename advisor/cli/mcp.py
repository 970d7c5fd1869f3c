"""``gapwatch mcp``: serve a coding agent over standard input and output."""

from __future__ import annotations

import argparse
import shlex
from functools import partial
from pathlib import Path

from advisor.cli import history_location, option_types, user_folders

NAME = "mcp"

_LONGEST_S = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "--root", metavar="DIR", type=Path, action="append", default=[],
        help="Directory that the agent may read and run commands in; repeatable (default: the current directory)",
    )  # fmt: skip
    parser.add_argument(
        "--allow", metavar="'WORDS'", type=_parse_prefix, action="append", default=[],
        help="Prefix of commands that may be measured, such as './app' or 'mpirun -n 4 ./app'; repeatable "
        "(default: none)",
    )  # fmt: skip
    parser.add_argument(
        "--budget", metavar="TIME", type=option_types.parse_budget, default=_LONGEST_S,
        help="Time limit per measurement (default: 600 s)",
    )  # fmt: skip
    parser.add_argument("--machine", metavar="NAME|FILE", help="Machine model (see gapwatch machines list)")
    user_folders.add_rules_argument(parser)
    history_location.add_state_argument(parser)


def _parse_prefix(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error
    if not words or not words[0]:
        raise argparse.ArgumentTypeError("expected the first words of a command, got none")
    return words


def run_command(args: argparse.Namespace) -> int:
    """Serve until the client ends; returns the exit code."""
    from advisor.agents.server import serve_stdio
    from advisor.agents.workplace import Workplace
    from advisor.cli.next_commands import fill_commands
    from advisor.cli.plugin_commands import build_plugin_report
    from advisor.model.errors import UsageError
    from advisor.pipeline import Options

    roots = tuple(root.expanduser().resolve() for root in args.root or [Path()])
    missing = [str(root) for root in roots if not root.is_dir()]
    if missing:
        raise UsageError(f"no such directory: {', '.join(missing)}")
    host = user_folders.load_host()
    options = Options(user_folders.resolve_machine(args.machine), (*user_folders.rule_files(), *args.rules))
    serve_stdio(
        Workplace(
            roots, tuple(args.allow), history_location.locate_history(args), host, options,
            partial(build_plugin_report, host), fill_commands, args.budget,
        )
    )  # fmt: skip
    return 0
