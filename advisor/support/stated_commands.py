"""The command that a file names for its run, kept so that advice can say it again; none that may hold a secret."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from advisor.model.run_points import STATED

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST: Final = 500
#: Words beside which a command may hold what nobody should read in a report.
_SECRET: Final = re.compile(r"pass(?:wd|word|phrase)?\b|secret|token|credential|api.?key|://[^/\s]*@", re.IGNORECASE)
#: Characters of a name that the kernel keeps.
_COMM: Final = 15


def state_command(command: str, ranks: int = 1) -> dict[str, str | float]:
    """Return the parameter that holds a command, started on ``ranks`` by ``mpirun``; none where it can't be said."""
    text = command.strip()
    if not text or len(text) > _LONGEST or not text.isprintable() or _SECRET.search(text):
        return {}
    try:
        words = shlex.split(text)
    except ValueError:
        return {}
    return {STATED: f"mpirun -n {ranks} {shlex.join(words)}" if ranks > 1 else shlex.join(words)} if words else {}


def state_recorded(command: str, program: str) -> dict[str, str | float]:
    """Return the same of a command that records another one: its words from the program on."""
    try:
        words: Sequence[str] = shlex.split(command)
    except ValueError:
        return {}
    names = [PurePath(word).name[:_COMM] for word in words]
    at = names.index(program[:_COMM], 1) if program and program[:_COMM] in names[1:] else len(words)
    return state_command(shlex.join(words[at:]))
