"""The commands of gapwatch itself, in the order in which the help lists them: one thin module each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from advisor.cli import (
    advise,
    compare,
    config,
    demo,
    explain,
    history,
    keeping,
    lifecycle,
    machines,
    plugins,
    report,
    rules,
    run,
    stamp,
    status,
    watch,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


class BuiltIn(Protocol):
    """What a module of a command holds."""

    @property
    def NAME(self) -> str:
        """What the command is called."""

    @property
    def HELP(self) -> str:
        """One line on what it does."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Give the command its arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do what the command does and return the exit code."""


_MODULES: tuple[BuiltIn, ...] = (
    advise, explain, demo, run,
    watch, status, history, compare,
    lifecycle.applied, lifecycle.ack, lifecycle.suppress, stamp,
    report, keeping.export, keeping.backup, config,
    rules, machines, plugins,
)  # fmt: skip
COMMANDS: Mapping[str, BuiltIn] = {module.NAME: module for module in _MODULES}
