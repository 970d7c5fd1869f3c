"""How the run of a recording was started: the command line, the directory, and what the shell said to OpenMP."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError

NAME: Final = "command"
_MAGIC: Final = "gapwatch/trace/1 command"
_LIMIT_B: Final = 1 << 20
_ESCAPE: Final = re.compile(r"\\x([0-9a-f]{2})")
_SPECIAL: Final = re.compile(r"[\x00-\x1f\x7f\\]")
#: Numbers of threads and where they run decide what a run does; nothing else of the environment is kept.
_KEPT: Final = ("OMP_NUM_THREADS", "OMP_SCHEDULE", "OMP_PROC_BIND", "OMP_PLACES", "OMP_DYNAMIC")


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A command line, the directory in which it was given, and the ``settings`` of OpenMP beside it.

    ``job`` is the batch job that it was part of, ``input`` the file that was its standard input; empty where there was
    none.
    """

    arguments: tuple[str, ...]
    directory: str
    settings: tuple[str, ...] = ()
    job: str = ""
    input: str = ""

    @property
    def line(self) -> str:
        """The command for a shell, settings first."""
        words = shlex.join(self.arguments)
        return " ".join((*(_quoted(setting) for setting in self.settings), words))


def current_command(arguments: Sequence[str], variables: Mapping[str, str] = os.environ) -> RunCommand:
    """Return how a program is being started here and now."""
    settings = tuple(f"{name}={variables[name]}" for name in _KEPT if name in variables)
    return RunCommand(tuple(arguments), os.getcwd(), settings, input=_find_input())


def _find_input() -> str:
    """Return the path of the file that is the standard input; nothing where that is none, or was removed."""
    try:
        if not stat.S_ISREG(os.fstat(0).st_mode):
            return ""
        path = os.readlink("/proc/self/fd/0")
        return path if os.path.samestat(os.stat(path), os.fstat(0)) else ""
    except OSError:
        return ""


def write_command(folder: Path, command: RunCommand) -> None:
    """Write the command into a recording; raises ``OSError``."""
    lines = [_MAGIC, f"directory {_escape(command.directory)}"]
    lines += [f"setting {_escape(setting)}" for setting in command.settings]
    lines += [f"job {_escape(command.job)}"] if command.job else []
    lines += [f"input {_escape(command.input)}"] if command.input else []
    lines += [f"argument {_escape(argument)}" for argument in command.arguments]
    text = "\n".join([*lines, ""])
    (folder / NAME).write_text(text, encoding="utf-8", errors="surrogateescape")


def read_command(folder: Path) -> RunCommand | None:
    """Return how the run of a recording was started, None where it does not say; ``InputError`` for damage."""
    path = folder / NAME
    try:
        with path.open("rb") as stream:
            text = stream.read(_LIMIT_B).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(path, error.strerror or "may not be read") from error
    first, *lines = text.split("\n")[:-1] or [""]
    if first != _MAGIC:
        raise InputError(path, f"does not begin with {_MAGIC!r}", "line 1")
    found: dict[str, list[str]] = {"directory": [], "setting": [], "job": [], "input": [], "argument": []}
    for number, line in enumerate(lines, 2):
        key, _, rest = line.partition(" ")
        if key not in found:
            raise InputError(path, f"not understood: {line[:80]!r}", f"line {number}")
        found[key].append(_ESCAPE.sub(lambda code: chr(int(code[1], 16)), rest))
    if not found["argument"]:
        return None
    directory, job, source = ("".join(found[key][:1]) for key in ("directory", "job", "input"))
    return RunCommand(tuple(found["argument"]), directory, tuple(found["setting"]), job, source)


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _quoted(setting: str) -> str:
    name, _, value = setting.partition("=")
    return f"{name}={shlex.quote(value)}"
