"""The commands of gapwatch itself, in the order in which the help lists them: one thin module each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from advisor.cli import advise, demo, machines, plugins, rules, run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


class BuiltIn(Protocol):
    """What a module of a command holds."""

    NAME: str
    HELP: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Give the command its arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do what the command does and return the exit code."""


_MODULES: tuple[BuiltIn, ...] = (advise, demo, run, rules, machines, plugins)
COMMANDS: Mapping[str, BuiltIn] = {module.NAME: module for module in _MODULES}
