"""The one place where errors end: what we can explain becomes one message and exit code 2 (1 for a crossed gate), what
we can't becomes one line and exit code 3.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from advisor.cli.supervision import INTERNAL, INTERRUPTED
from advisor.model.errors import AdvisorError, DocumentError, GateCrossed

DEBUG_VARIABLE = "GAPWATCH_DEBUG"


def run_guarded(run: Callable[[], int]) -> int:
    """Return the exit code of a command; what ends it early is said in words."""
    from advisor.cli import output

    try:
        return run()
    except SystemExit as end:  # argparse, after help
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        output.write_messages("interrupted")
        return INTERRUPTED
    except Exception as error:
        return _report_error(error)


def _report_error(error: Exception) -> int:
    """Say what went wrong and return the exit code that goes with it."""
    from advisor.cli import output, supervision

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
        left_out = supervision.plugins_left_out().items()  # one of them may be what the command lacks
        output.write_messages(
            str(error), *getattr(error, "__notes__", ()), *(f"plugin {name}: {why}" for name, why in left_out)
        )
        return error.exit_code
    if isinstance(error, OSError) and error.filename is not None:
        output.write_messages(f"{os.fsdecode(error.filename)}: {error.strerror}")
        return AdvisorError.exit_code
    if isinstance(error, MemoryError):
        output.write_messages("there is not enough memory for this (see ulimit -v)")
        return AdvisorError.exit_code
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    output.write_messages(f"internal error: {what} (set {DEBUG_VARIABLE}=1 for a traceback)")
    return INTERNAL
