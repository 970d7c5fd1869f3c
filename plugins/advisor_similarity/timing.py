"""The CPU time of a command on this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def measure_cpu_seconds(command: Sequence[str], stdin: Path | None = None, runs: int = 3, fails: bool = False) -> float:
    """Return the least CPU time of some runs of a command, in seconds, with that of all its children.

    Raises ``UsageError`` where a run fails; of a program that ``fails`` anyway, as old ones do whose ``main`` returns
    nothing in particular, where a signal ends it.
    """
    times = []
    for _ in range(runs):
        with (
            (stdin or Path(os.devnull)).open("rb") as file,
            subprocess.Popen(command, stdin=file, stdout=subprocess.DEVNULL) as process,
        ):
            _, status, used = os.wait4(process.pid, 0)  # to the microsecond; os.times counts ticks of 10 ms
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode < 0 or (process.returncode and not fails):
            raise UsageError(f"{command[0]} ended with exit code {process.returncode} when it was timed")
        times.append(used.ru_utime + used.ru_stime)
    return min(times)
