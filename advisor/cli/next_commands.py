"""The commands that advice proposes, filled in with what is known: the user's own command, paths, cores, the machine.

What is not known stays in capitals. Nothing here runs a command.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from advisor.cli import user_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from advisor.model.records import Advice, Profile

_LAUNCH: Final = re.compile(r"mpirun -n \d+ (?=\S*PROGRAM|valgrind|perf|eztrace|tau_exec|env|likwid)")
_CORES: Final = re.compile(r"--cores N\b")
_PATH: Final = re.compile(r"(?<![\w$/=.-])(?:PATH|DIRECTORY)\b")
_NAME: Final = re.compile(r"(?<![\w./])PROGRAM\b")
_INCORE: Final = "gapwatch incore"
_PROBE: Final = "gapwatch machines probe"


def fill_commands(advice: Advice, paths: Sequence[Path]) -> Advice:
    """Return the advice with commands that can be run as they stand, as far as the run and the machine tell."""
    fill_command = _filler(advice.profile, paths)

    def fill_optional(command: str | None) -> str | None:
        return fill_command(command) if command else command

    return replace(
        advice,
        needs=tuple(replace(need, command=fill_command(need.command)) for need in advice.needs),
        bounds=tuple(replace(bound, collect=fill_optional(bound.collect)) for bound in advice.bounds),
        grade=replace(
            advice.grade, notes=tuple(replace(note, collect=fill_optional(note.collect)) for note in advice.grade.notes)
        ),
    )


def _filler(profile: Profile, paths: Sequence[Path]) -> Callable[[str], str]:
    launch, program = split_command(profile)
    name = PurePath(profile.executable or profile.program).name
    here = {processor.host for processor in profile.processors} == {platform.node()}
    probed = user_folders.probed_here() is not None

    def fill_command(command: str) -> str:
        if "SOURCE" not in command:
            if launch is not None:
                command = _LAUNCH.sub(lambda _: launch, command)
            if program is not None:
                command = command.replace("./PROGRAM", program)
        if profile.executable:
            command = _NAME.sub(lambda _: shlex.quote(name), command)
        if here:
            command = _CORES.sub(f"--cores {len(os.sched_getaffinity(0))}", command)
        command = _PATH.sub(lambda _: shlex.join(map(str, paths)), command)
        if _INCORE in command and _PROBE not in command and not probed:
            command = f"{_PROBE} && {command}"
        return command

    return fill_command


def split_command(profile: Profile) -> tuple[str | None, str | None]:
    """Return what started the ranks, with a space behind, and the program with its arguments, for a shell.

    Of a run whose command is not known, the program alone; None for what is not known.
    """
    command = profile.parameters.get("command")
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        words = []
    for at, word in enumerate(words):
        if PurePath(word).name == profile.program:
            launch = shlex.join(words[:at])
            return (f"{launch} " if launch else ""), shlex.join(words[at:])
    return None, _shown_path(profile.executable) if profile.executable else None


def _shown_path(executable: str) -> str:
    """Return how a program is called from the current directory, where it lies below it."""
    file = Path(executable)
    try:
        inner = file.resolve().relative_to(Path.cwd())
    except (ValueError, OSError):
        return shlex.quote(executable)
    return shlex.quote(f"./{inner}")
