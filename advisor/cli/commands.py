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
    "epilog": "epilog",
    "completion": "completion",
    "mcp": "mcp",
    "tune": "tune",
    "bisect": "bisect",
}
#: One line on what each command does: here, so that the help of all imports none of them.
HELP: Final = {
    "advise": "show where the time of a run goes, and rank what to do next",
    "explain": "explain how each number was computed: formula, inputs, thresholds, rules",
    "demo": "advise on a bundled trace (no profiler needed)",
    "run": "run a program, record it and advise (no profiler needed)",
    "watch": "watch directories and advise on every new run",
    "status": "show whether the daemon runs, file states, and problems",
    "history": "list the runs of a program and the state of each recommendation",
    "compare": "compare two builds or runs: which gaps changed, where, and whether by more than noise",
    "applied": "mark an action as carried out, so that the next build shows what it gained",
    "ack": "acknowledge an item: it stays listed, but not as new",
    "suppress": "suppress an item for good or until a given day, with a reason",
    "stamp": "record the build of the profiles in a directory (gapwatch.json; default: git commit)",
    "report": "write HTML pages by program and build, from directories or the history",
    "convert": "convert a run to the format of another tool: tables, call trees, timelines",
    "export": "export all advice as JSON Lines, or the newest as OpenMetrics",
    "backup": "back up the history (safe while the daemon runs)",
    "restore": "replace the history by a backup",
    "config": "show or validate the daemon's configuration, or write a systemd unit",
    "rules": "list, show, check or test rules",
    "machines": "list or show machine models, or measure this machine",
    "plugins": "list plugins: origin, purpose, and why any failed to load",
    "serve": "serve the history as read-only pages and JSON over HTTP",
    "epilog": "summarize a batch job in three lines, for its output, mail or chat",
    "completion": "print the completion script for bash, zsh or fish",
    "mcp": "serve a coding agent: measure, advise, prove (Model Context Protocol over stdio)",
    "tune": "try compiler flags, threads, binding and other settings, and measure what they gain",
    "bisect": "find the commit that changed the run time or a gap, despite noise",
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
