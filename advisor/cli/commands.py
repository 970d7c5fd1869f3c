"""The commands of gapwatch itself, in the order in which the help lists them: one thin module each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    import argparse


class BuiltInCommand(Protocol):
    """What a module of a command holds."""

    @property
    def NAME(self) -> str:
        """What the command is called."""

    @property
    def HELP(self) -> str:
        """One line on what it does."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Give the command its arguments."""

    def run_command(self, args: argparse.Namespace) -> int:
        """Do what the command does and return the exit code."""


#: Where each command is: a module of this package, and in it an object where it holds several.
_PLACES: Final = {
    "advise": "advise",
    "explain": "explain",
    "demo": "demo",
    "run": "run",
    "watch": "watch",
    "status": "status",
    "history": "history",
    "compare": "compare",
    "applied": "lifecycle:applied",
    "ack": "lifecycle:ack",
    "suppress": "lifecycle:suppress",
    "stamp": "stamp",
    "report": "report",
    "convert": "convert",
    "export": "export_backup:export",
    "backup": "export_backup:backup",
    "restore": "export_backup:restore",
    "config": "config",
    "rules": "rules",
    "machines": "machines",
    "plugins": "plugins",
    "serve": "serve",
    "completion": "completion",
    "mcp": "mcp",
    "tune": "tune",
    "bisect": "bisect",
}


class _CommandModules(Mapping[str, BuiltInCommand]):
    """The commands by name; each module is imported on first use, so that no command pays for another's imports."""

    def __getitem__(self, name: str) -> BuiltInCommand:
        module, _, part = _PLACES[name].partition(":")
        loaded = import_module(f"advisor.cli.{module}")
        return cast("BuiltInCommand", getattr(loaded, part) if part else loaded)

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)

    def __contains__(self, name: object) -> bool:
        return name in _PLACES


COMMANDS: Final[Mapping[str, BuiltInCommand]] = _CommandModules()
