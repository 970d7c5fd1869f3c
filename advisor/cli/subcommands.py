"""Commands inside a command, such as ``gapwatch rules list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command_group(parser: argparse.ArgumentParser) -> Commands:
    """Return the place of the commands inside; one of them has to be named."""
    return parser.add_subparsers(dest="what", metavar="COMMAND", required=True)


def add_command(commands: Commands, name: str, words: str) -> argparse.ArgumentParser:
    """Return the parser of one more command; ``words`` describe it in the list and in its own help."""
    words = words[:1].upper() + words[1:]
    return commands.add_parser(name, help=words, description=f"{words}.", allow_abbrev=False)
