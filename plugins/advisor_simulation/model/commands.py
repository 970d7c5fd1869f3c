"""``gapwatch model``: light code; what is heavy is imported when the command runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.commands import Argument, CommandRegistry, CommandServices
from advisor.model.errors import InputError, UsageError
from advisor.model.reports import Code, Report
from advisor.support.atomic_write import atomic_write
from advisor.support.launchers import split_settings

if TYPE_CHECKING:
    from argparse import Namespace


def register_command(registry: CommandRegistry) -> None:
    """Register the command."""
    registry(
        "model",
        "write an application model of a program or of a recorded run",
        (
            Argument("path", "recorded run, to be modelled without running it", Path, default="", several=True),
            Argument("--run", "recorded run whose program is run again and traced", Path, metavar="PATH"),
            Argument("--source", "directory of the program's sources", Path, metavar="DIR"),
            Argument("--save", "write the model to FILE, and its tables to a directory beside it", Path),
            Argument(
                "--limit", "maximum accesses and marks that a traced process may write (default: by free memory)", int
            ),
            Argument("--unchecked", "skip the comparison with valgrind's cache simulation", bool),
            Argument("command", "command that runs the program to be traced", remainder=True),
        ),
        run_model,
    )


def run_model(args: Namespace, services: CommandServices) -> Report:
    """Return the model as a file to copy; raises InputError if the run holds too little."""
    paths = [path for path in args.path if str(path) not in ("", ".")]
    if args.command or args.run:
        if paths:
            raise UsageError("a recorded run and a command: which of the two is to be modelled?")
        return _model_program(args, services)
    if len(paths) != 1:
        raise UsageError("which program? gapwatch model -- ./app arguments, or a recorded run: gapwatch model RUN")
    return _model_run(paths[0], args, services)


def _model_run(path: Path, args: Namespace, services: CommandServices) -> Report:
    from advisor_simulation.model.from_profile import render_model

    profile = services.read(path)
    text = render_model(profile)
    if text is None:
        raise InputError(path, "the work of its processors is not known, so there is nothing to model")
    if args.save:
        _save_text(args.save, text)
    return Report(f"A model of {profile.program}", (Code("", "yaml", text),))


def _model_program(args: Namespace, services: CommandServices) -> Report:
    from advisor.collect.binaries.executables import find_program
    from advisor_simulation.program.model_report import build_report

    words = list(args.command)
    if args.run:
        command = services.read(args.run).parameters.get("command")
        if not isinstance(command, str):
            raise InputError(args.run, "does not tell the command that was run; give it behind --")
        words = words or shlex.split(command)
    settings, words = split_settings(words)
    variables = dict(setting.split("=", 1) for setting in settings)
    program = find_program(words, Path.cwd())
    if program is None:
        raise UsageError(f"{shlex.join(words)}: no program is in it that could be traced")
    report, text = build_report(words, variables, program, args, services)
    if args.save:
        _save_text(args.save, text)
    return report


def _save_text(target: Path, text: str) -> None:
    try:
        with atomic_write(target) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--save {target}: {error.strerror or error}") from None
