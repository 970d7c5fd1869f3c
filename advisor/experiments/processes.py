"""Processes of experiments: timed or recorded, in a process group of their own that ends with them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import AdvisorError
from advisor.support import child_process

if TYPE_CHECKING:
    from advisor.support.child_process import ProgramRun

#: So much of the end of a program's output is handed back (bytes).
_TAIL_B: Final = 600
#: What our own messages behind the output of a program begin with.
_OWN: Final = "gapwatch: "


def run_timed(
    words: Sequence[str], folder: Path, output: Path, limit_s: float, variables: Mapping[str, str] | None = None
) -> ProgramRun:
    """Run a command in ``folder`` with ``variables`` beside our own; what it prints goes to ``output``.

    It has no standard input and no shell. Raises ``AdvisorError`` where it cannot be started.
    """
    with output.open("wb") as stream:
        try:
            return child_process.run_program(words, stream, max(0.1, limit_s), folder=folder, extra=variables)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise AdvisorError(f"can't start {words[0]}: {why}") from error


def record_run(
    words: Sequence[str], folder: Path, target: Path, limit_s: float, variables: Mapping[str, str] | None = None
) -> str:
    """Record a command into ``target`` by ``gapwatch run``; return the end of what the command printed.

    Raises ``AdvisorError`` for a command that fails, does not end in time, or leaves no recording.
    """
    advice, output = (target.with_name(f"{target.name}.{kind}") for kind in ("advice", "output"))
    command = [sys.executable, "-m", "gapwatch", "run", "--profile", str(target), "-o", str(advice), "--", *words]
    run = run_timed(command, folder, output, limit_s, variables)
    tail = read_tail(output)
    if run.status is None:
        raise AdvisorError("the budget ran out before the command ended; it was stopped")
    if run.status:
        raise AdvisorError(f"the command failed with status {run.status}; it printed at last: {tail}")
    if not target.exists():
        raise AdvisorError(f"nothing was recorded: {tail}")
    lines = tail.splitlines()
    while lines and lines[-1].startswith(_OWN):
        lines.pop()
    return "\n".join(lines)


def read_tail(output: Path) -> str:
    """Return the end of what a program printed."""
    with output.open("rb") as stream:
        return child_process.read_tail(stream, _TAIL_B).strip()
