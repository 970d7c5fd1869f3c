"""Programs that go on in the background after the command that started them has ended, such as daemons."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from advisor.collect.recorder.session import FOLDER, Session
from advisor.model.errors import InputError
from advisor.trace.recordings.processes import Process, process_files, read_process

_SHORTEST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0


def await_background(session: Session, tell: Callable[[str], None]) -> None:
    """Wait until the recorded program has ended in the background, too; an interrupt ends the wait."""
    pause_s = _SHORTEST_PAUSE_S
    told = False
    with suppress(KeyboardInterrupt):
        while running := find_background(session):
            if not told:
                listed = ", ".join(map(str, running))
                tell(f"the program goes on in the background (process {listed}): waiting for its end or Ctrl-C")
                told = True
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def find_background(session: Session) -> list[int]:
    """Return the processes that go on in a program of the recording that has ended, as children of fork do.

    What a script leaves behind is no part of its run, and ranks of MPI that outlive their run have lost it.
    """
    recorded = []
    for file in process_files(session.folder):
        with suppress(InputError):
            recorded.append(read_process(file))
    left = {one.program for one in recorded if one.rank is None and not _is_running(one)}
    if not left:
        return []
    mark = "\0".join(("", *(f"{name}={value}" for name, value in session.variables.items() if name == FOLDER), ""))
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return sorted(
        number for number in numbers if _find_program(number) in left and mark.encode() in _environment(number)
    )


def _is_running(process: Process) -> bool:
    """Return whether a process is there; its number may have become that of another program."""
    return _find_program(process.pid) == process.program


def _find_program(number: int) -> str | None:
    """Return the file of the program that a process runs, None for one that has ended or is another user's."""
    try:
        return os.readlink(f"/proc/{number}/exe")
    except OSError:
        return None


def _environment(number: int) -> bytes:
    """Return the variables with which a process started, a zero byte before and behind each."""
    try:
        return b"\0" + Path(f"/proc/{number}/environ").read_bytes()
    except OSError:
        return b""
