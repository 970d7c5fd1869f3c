"""Arguments of the API, held to the same limits as the options of the command line."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Sequence
from typing import TypeVar

from advisor.model.errors import UsageError

PathLike = str | os.PathLike[str]
T = TypeVar("T")


def check_option(name: str, parse: Callable[[str], T], text: str) -> T:
    """Return what the command line would make of an option's text; raises ``UsageError`` with the argument's name."""
    try:
        return parse(text)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{name}: {error}") from error


def split_command(command: PathLike | Sequence[PathLike]) -> list[str]:
    """Return the words of a command: text split as a shell would, a path alone as a program without arguments.

    Raises ``UsageError`` for none, and for a quotation that does not end.
    """
    try:
        if isinstance(command, str):
            words = shlex.split(command)
        elif isinstance(command, os.PathLike):
            words = [os.path.join(os.curdir, command)]
        else:
            words = [os.fspath(word) for word in command]
    except ValueError as error:
        raise UsageError(f"{command!r}: {error}") from error
    if not words:
        raise UsageError("no program given")
    return words
