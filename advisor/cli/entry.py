"""The command line: thin commands over the pipeline.

``main`` is the one place where errors end: what we can explain becomes one message and exit code 2 (1 for a crossed
gate), what we can't becomes one line and exit code 3.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from advisor import __version__
from advisor.model.errors import AdvisorError, DocumentError, GateCrossed

if TYPE_CHECKING:
    from collections.abc import Sequence

DEBUG_VARIABLE = "GAPWATCH_DEBUG"
_INTERNAL = 3
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (by default the process's own) and return its exit code."""
    from advisor.cli import output

    output.prepare_streams()
    try:
        return _run_arguments(list(sys.argv[1:] if argv is None else argv))
    except SystemExit as end:  # argparse, after help
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        output.write_messages("interrupted")
        return _INTERRUPTED
    except Exception as error:
        return _report_error(error)


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


def _report_error(error: Exception) -> int:
    """Say what went wrong and return the exit code that goes with it."""
    from advisor.cli import output

    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        output.write_messages(*"".join(traceback.format_exception(error)).splitlines())
    if isinstance(error, DocumentError):
        output.write_messages(*map(str, error.problems))
        return error.exit_code
    if isinstance(error, GateCrossed):
        output.write_messages(f"gate crossed: {error}")
        return error.exit_code
    if isinstance(error, AdvisorError):
        output.write_messages(str(error), *getattr(error, "__notes__", ()))
        return error.exit_code
    if isinstance(error, OSError) and error.filename is not None:
        output.write_messages(f"{os.fsdecode(error.filename)}: {error.strerror}")
        return AdvisorError.exit_code
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    output.write_messages(f"internal error: {what} (set {DEBUG_VARIABLE}=1 for a traceback)")
    return _INTERNAL
