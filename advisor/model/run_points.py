"""At which point of a study a run was: as many ranks, and the same problem."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.model.records import Profile

_COMMAND: Final = "command"
#: The parameter that holds the command which a file names for its run: how its recording began is not said.
STATED: Final = "command as stated"
#: Parameters that say where, with what and how a run was made and measured, not what it computed: another checkout,
#: compiler or MPI library is a change whose effect is asked for, and what sampling counted differs in every run.
CIRCUMSTANCES: Final = frozenset(
    {
        STATED, "target", "directory", "MPI library", "memory_bytes", "exit status", "samples", "sampling interval (s)",
        "CPU time of sampling (s)", "calls of each benchmark", "caliper", "Compiler Name", "Compiler Version",
        "compiler", "compilerversion",
    }
)  # fmt: skip


def is_same_point(one: Profile, other: Profile) -> bool:
    """Return whether a run can repeat another: as many ranks, and no parameter that both state differs.

    Runs of one build at several points are a study of it.
    """
    return not find_differences(one, other)


def find_differences(one: Profile, other: Profile) -> tuple[str, ...]:
    """Return in what the points of two runs differ, in words: ``ranks: 4, not 8``."""
    stated = sorted((one.parameters.keys() & other.parameters.keys()) - CIRCUMSTANCES)
    values: list[tuple[str, str | float, str | float]] = [("ranks", one.ranks, other.ranks)]
    values += [(name, _state_parameter(one, name), _state_parameter(other, name)) for name in stated]
    return tuple(f"{name}: {mine}, not {theirs}" for name, mine, theirs in values if mine != theirs)


def _state_parameter(profile: Profile, name: str) -> str | float:
    """Return the value of a parameter; in a command, the program without its directory: builds lie in several."""
    value = profile.parameters[name]
    if name != _COMMAND or not isinstance(value, str):
        return value
    own = {profile.program, PurePath(profile.executable or "").name} - {""}
    try:
        words = shlex.split(value)
    except ValueError:  # it was cut short
        return value
    return shlex.join(PurePath(word).name if PurePath(word).name in own else word for word in words)
