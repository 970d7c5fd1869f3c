"""A plugin's command: how it is registered, what it may request, and what it returns.

A command is ``run(args, services) -> Report``. It prints nothing: the report is data, and ``output`` draws it as
text or JSON. This module imports nothing heavy, so that commands can be listed quickly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from advisor.model.errors import PluginError

if TYPE_CHECKING:
    from argparse import Namespace
    from contextlib import AbstractContextManager

    from advisor.advice.earlier_runs import AppliedAction
    from advisor.analysis.machines import Machine
    from advisor.model.records import Advice, Profile
    from advisor.model.reports import Picture, Report
    from advisor.trace.events import Trace

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")

ArgumentType = type[str] | type[int] | type[float] | type[Path] | type[bool]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a command, positional or an option where ``name`` begins with ``--``.

    The command finds its value in ``args``, under its name with underscores (``--node-hours``: ``args.node_hours``):
    of ``type``, a list of them when ``several``, ``default`` when it is not given. An option of type ``bool`` is a
    flag. A ``remainder`` takes everything after ``--``, for example a command and its arguments, as a list of strings.
    Help shows ``metavar`` for the value: by default ``N``, ``X`` or ``FILE`` for an option of type int, float or path,
    else the name in capitals.
    """

    name: str
    help: str
    type: ArgumentType = str
    default: str | int | float | bool | None = None
    required: bool = False
    several: bool = False
    choices: tuple[str, ...] = ()
    remainder: bool = False
    metavar: str = ""

    @property
    def is_option(self) -> bool:
        """Whether the argument is given by name."""
        return self.name.startswith("--")


class CommandServices(Protocol):
    """What a command may ask the application for."""

    def read(self, path: Path) -> Profile:
        """Return the newest run recorded at ``path``; raises ``InputError``."""

    def read_all(self, path: Path) -> tuple[Profile, ...]:
        """Return every run recorded at ``path``, the oldest first; raises ``InputError``."""

    def advise(self, path: Path) -> Advice:
        """Return the advice on the run recorded at ``path``; raises ``InputError``."""

    def read_trace(self, path: Path) -> Trace:
        """Return the events of the trace at ``path``; raises ``InputError``, also for what is no trace."""

    def load_history(self, program: str) -> tuple[Advice, ...]:
        """Return the advice on the newest runs of a program that the daemon knows, at most 1,000, the oldest first.

        Their profiles hold no arrays. Empty where there is no history.
        """

    def find_applied_actions(self) -> tuple[AppliedAction, ...]:
        """Return what was applied to any program that the daemon knows, and what it won there."""

    def load_machine(self, name: str | None) -> Machine:
        """Return a model of a machine by its name or file, of this host for None; raises ``DocumentError``."""

    def show_progress(self, words: str, total: int | None = None) -> AbstractContextManager[Callable[[int], None]]:
        """Show on a terminal what takes long; call what it yields with the number of steps that are done so far."""

    def write_picture(self, picture: Picture, path: Path) -> None:
        """Draw a part of a report into a PNG or SVG file; ``UsageError`` for another kind of file.

        Raises ``AdvisorError`` where matplotlib is missing.
        """

    def find_service(self, name: str) -> Callable[..., object]:
        """Return the service that a plugin offers under ``name``; raises ``PluginError`` if there is none."""

    def user_folder(self, purpose: Literal["cache", "data", "config"]) -> Path:
        """Return the user's directory of gapwatch for that purpose; it exists, and only the user may enter it."""


Run = Callable[["Namespace", CommandServices], "Report"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a plugin: ``gapwatch NAME ARGUMENTS``, described by one line of ``help``."""

    plugin: str
    name: str
    help: str
    arguments: tuple[Argument, ...]
    run: Run


class CommandRegistry:
    """Collects the commands that one plugin registers; handed to the hook ``advisor_commands``."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._commands: dict[str, Command] = {}

    def __call__(self, name: str, help: str, arguments: Sequence[Argument], run: Run) -> None:
        """Register ``gapwatch NAME``; raises ``PluginError`` where that can't be a command."""
        self._refuse_if(not _NAME.fullmatch(name), f"{name!r} is not a valid command name")
        self._refuse_if(name in self._commands, f"the command {name!r} is registered twice")
        self._refuse_if(not help.strip(), f"the command {name!r} has no help text")
        for argument in arguments:
            bare = argument.name.removeprefix("--")
            self._refuse_if(not _NAME.fullmatch(bare), f"{argument.name!r} is not a valid argument name of {name!r}")
            misplaced = argument.remainder and (argument.is_option or argument.type is not str)
            self._refuse_if(misplaced, f"{argument.name!r} is the remainder of {name!r}: no option, and of type str")
        remainders = sum(argument.remainder for argument in arguments)
        self._refuse_if(remainders > 1, f"{name!r} has more than one remainder")
        self._commands[name] = Command(self._plugin, name, help.strip().splitlines()[0], tuple(arguments), run)

    @staticmethod
    def _refuse_if(wrong: bool, reason: str) -> None:
        if wrong:
            raise PluginError(reason)

    @property
    def commands(self) -> tuple[Command, ...]:
        """What was registered, in that order."""
        return tuple(self._commands.values())


@dataclass(frozen=True, slots=True)
class DeferredFunction:
    """A function of a module that is imported when it is called: to offer it costs no time."""

    module: str
    function: str

    def __call__(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - whatever the function takes and returns
        """Import the module and call the function."""
        return getattr(import_module(self.module), self.function)(*args, **options)
