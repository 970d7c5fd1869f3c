"""The commands that advice proposes, filled in with what is known: the user's own command, paths, cores, the machine.

What is not known stays in capitals. Nothing here runs a command.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from advisor.cli import user_folders
from advisor.model.run_points import STATED
from advisor.support.extras import install_line
from advisor.support.launchers import find_launched_program, find_launcher_place, is_interpreter, split_line

if TYPE_CHECKING:
    from advisor.model.records import Advice, Profile

_LAUNCH: Final = re.compile(r"mpirun -n \d+ (?=\S*PROGRAM|valgrind|perf|eztrace|tau_exec|env|likwid)")
#: What follows the processes that a launcher starts on this node, and so has to start the launcher.
_FOLLOWS: Final = re.compile(r"(nsys profile [^&;#]*)(?=\./PROGRAM)")
_RECORDED: Final = re.compile(r"(gapwatch run(?: --deep| --from-outside)? -- )(?:mpirun -n (\d+) )?\./PROGRAM\b")
_CORES: Final = re.compile(r"--cores N\b")
_PATH: Final = re.compile(r"(?<![\w$/=.-])(?:PATH|DIRECTORY)\b")
_NAME: Final = re.compile(r"(?<![\w./])PROGRAM\b")
_INCORE: Final = "gapwatch incore"
_RECORD: Final = "gapwatch run -- "
_DEEP: Final = "gapwatch run --deep"
_WITH_MACHINE: Final = "gapwatch advise --machine host"
_PROBE: Final = "gapwatch machines probe"
_BINARY: Final = "gapwatch advise --binary"
#: What Debian and its relatives call the packages of the tools that commands name.
_PACKAGES: Final = {
    "valgrind": "valgrind", "perf": "linux-perf", "likwid-perfctr": "likwid", "eztrace": "eztrace",
    "tau_exec": "tau", "hpcrun": "hpctoolkit", "libdarshan.so": "darshan",
}  # fmt: skip


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
    settings, words = _split_settings(profile)
    launch, program = split_command(profile)
    name = PurePath(profile.executable or profile.program).name
    here = {processor.host for processor in profile.processors} == {os.uname().nodename}
    probed = user_folders.find_probed_model() is not None
    elsewhere = _elsewhere(profile)
    made = _commands_made(profile)
    source = profile.parameters.get("input")
    redirection = f" < {shlex.quote(source)}" if isinstance(source, str) else ""

    def fill_command(command: str) -> str:
        runs = "./PROGRAM" in command
        if words:
            command = _RECORDED.sub(lambda found: found[1] + shlex.join(_with_ranks(words, found[2])), command)
        if "SOURCE" not in command:
            if launch is not None:
                command = _LAUNCH.sub(lambda _: launch, command)
                command = _FOLLOWS.sub(lambda found: found[1] + launch, command)
            if program is not None:
                binary = shlex.split(program)[0]  # without its arguments
                command = command.replace(f"{_BINARY} ./PROGRAM", f"{_BINARY} {shlex.quote(binary)}")
                command = command.replace("./PROGRAM", program)
        if profile.executable:
            command = _NAME.sub(lambda _: shlex.quote(name), command)
        if here:
            command = _CORES.sub(f"--cores {len(os.sched_getaffinity(0))}", command)
        command = _PATH.sub(lambda _: shlex.join(map(str, paths)), command)
        if _INCORE in command and _PROBE not in command and not probed:
            command = f"{_PROBE} && {command}"
        if runs and "PROGRAM" not in command:
            command += redirection
            command = f"(cd {elsewhere} && {settings}{command})" if elsewhere else f"{settings}{command}"
        return command + _missing_tools(command)

    def fill_chain(commands: str) -> str:
        parts = commands.split("; ")
        if any(part.startswith(_DEEP) for part in parts):  # which measures the machine as well
            parts = [part for part in parts if not part.startswith(_WITH_MACHINE)]
        return "; ".join(
            fill_command(part) for part in parts if not part.startswith(made) or _is_other_run(part, profile)
        )

    return fill_chain


def _with_ranks(words: Sequence[str], ranks: str | None) -> Sequence[str]:
    """Return the user's command with another number of ranks, where one is asked for."""
    if not ranks:
        return words
    from advisor.support.launchers import find_rank_option

    option = find_rank_option(words)
    return words if option is None else option.replace_ranks(words, int(ranks))


def _is_other_run(command: str, profile: Profile) -> bool:
    """Return whether a command records the program with another number of ranks."""
    found = _RECORDED.match(command)
    return found is not None and found[2] is not None and int(found[2]) != profile.ranks


def _commands_made(profile: Profile) -> tuple[str, ...]:
    """Return the beginnings of commands that brought what is known of this run, and would bring nothing more."""
    readers = set(profile.reader.split("+"))
    if "recording" not in readers:
        return ()
    if profile.language == "python":  # the interpreter's own code says nothing of the script
        return (_RECORD, _BINARY, *((_DEEP,) if "passes" in profile.parameters else ()))
    return (_RECORD, _DEEP) if {"incore", "count"} <= readers else (_RECORD,)


def _missing_tools(command: str) -> str:
    """Return a comment for the shell that says how to install what a command needs and this machine lacks."""
    words = re.split(r"[\s;&|=]+", command)
    lacking = [word for word in _PACKAGES if word in words and shutil.which(word) is None]
    lines = [f"apt install {_PACKAGES[word]}" for word in lacking if word != "libdarshan.so"]
    if "libdarshan.so" in lacking and not any(Path("/usr/lib").glob("*/libdarshan.so")):
        lines.append("Darshan (https://www.mcs.anl.gov/research/projects/darshan)")
    if _DEEP in command and shutil.which("valgrind") is None:
        lines.append("apt install valgrind")
    if (_DEEP in command or _INCORE in command) and importlib.util.find_spec("capstone") is None:
        lines.append(install_line("processor"))
    return f"  # needs {' and '.join(dict.fromkeys(lines))}" if lines else ""


def _elsewhere(profile: Profile) -> str:
    """Return the directory in which the program was run, for a shell; nothing where we are there."""
    directory = profile.parameters.get("directory")
    if not isinstance(directory, str) or not directory or os.path.realpath(directory) == os.getcwd():
        return ""
    return shlex.quote(directory)


def _split_settings(profile: Profile) -> tuple[str, list[str]]:
    """Return the variables that were set for the run, with a space behind each, and the words of its command."""
    settings, words = split_line(profile.parameters.get("command", profile.parameters.get(STATED)))
    parts = (setting.partition("=") for setting in settings)
    return "".join(f"{name}={shlex.quote(value)} " for name, _, value in parts), words


def split_command(profile: Profile) -> tuple[str | None, str | None]:
    """Return what started the ranks, with a space behind, and the program with its arguments, for a shell.

    Of a run whose command is not known, the program alone; None for what is not known.
    """
    _, words = _split_settings(profile)
    at = program_place(words, profile.program)
    if at is None and words and "command" not in profile.parameters:
        # What an output states is a command alone, and its program may have a name of its own there (gmx_mpi).
        at = find_launched_program(words) if find_launcher_place(words) is not None else 0
    if at is not None:
        launch = shlex.join(words[:at])
        return (f"{launch} " if launch else ""), shlex.join(words[at:])
    return None, _shown_path(profile.executable) if profile.executable else None


def program_place(words: Sequence[str], program: str) -> int | None:
    """Return where in a command line the program stands, before a script its interpreter; None if it does not."""
    for at, word in enumerate(words):
        if PurePath(word).name == program:
            return at - 1 if at and is_interpreter(words[at - 1]) else at
    return None


def _shown_path(executable: str) -> str:
    """Return how a program is called from the current directory, where it lies below it."""
    file = Path(executable)
    try:
        inner = file.resolve().relative_to(Path.cwd())
    except (ValueError, OSError):
        return shlex.quote(executable)
    return shlex.quote(f"./{inner}")
