"""The commands as their parsers know them: names, help and options, for completion and the manual page."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.cli import parsers
from advisor.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Actions of argparse whose option takes no value.
_FLAGS: Final = (argparse._StoreTrueAction, argparse._StoreFalseAction, argparse._HelpAction, argparse._CountAction)


@dataclass(frozen=True, slots=True)
class CommandOption:
    """An option or a positional argument (no ``names``): its value's name ('' for none), its choices, its help."""

    names: tuple[str, ...]
    value: str
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command or subcommand: the words that call it, one line on what it does, its arguments."""

    words: tuple[str, ...]
    help: str
    options: tuple[CommandOption, ...]

    @property
    def name(self) -> str:
        """The words as they are typed."""
        return " ".join(self.words)


def list_command_entries(plugin_commands: Iterable[tuple[str, str]] = ()) -> tuple[CommandEntry, ...]:
    """Return gapwatch's commands with their options, subcommands after their command, then those of plugins."""
    found = [entry for name, module in COMMANDS.items()
             for entry in _list_entries((name,), parsers.build_command_parser(module))]  # fmt: skip
    return (*found, *(CommandEntry((name,), words, ()) for name, words in plugin_commands))


def _list_entries(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[CommandEntry]:
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    options = tuple(_build_option(action) for action in parser._actions if action not in inner)
    yield CommandEntry(words, " ".join((parser.description or "").split()), options)
    for action in inner:
        for name, one in action.choices.items():
            yield from _list_entries((*words, name), one)


def _build_option(action: argparse.Action) -> CommandOption:
    choices = tuple(map(str, action.choices)) if isinstance(action.choices, Collection) else ()
    takes_value = not isinstance(action, _FLAGS) and action.nargs != 0
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if choices and action.option_strings:
        value = "|".join(choices)
    words = " ".join((action.help or "").replace("%%", "%").split())
    return CommandOption(tuple(action.option_strings), value if takes_value else "", choices, words)
