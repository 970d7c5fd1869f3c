"""``gapwatch model``: light code; what is heavy is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.commands import Argument
from advisor.model.errors import InputError, UsageError
from advisor.model.reports import Code, Report
from advisor.support.atomic_write import atomic_write

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandRegistry, CommandServices


def register_command(registry: CommandRegistry) -> None:
    """Register the command."""
    registry(
        "model",
        "write an application model of a recorded run",
        (
            Argument("path", "a recorded run", Path),
            Argument("--save", "write the model to this file", Path),
        ),
        run_model,
    )


def run_model(args: Namespace, services: CommandServices) -> Report:
    """Return the model as a file to copy; raises InputError where the run tells too little."""
    from advisor_simulation.model.from_profile import render_model

    profile = services.read(args.path)
    text = render_model(profile)
    if text is None:
        raise InputError(args.path, "the work of its processors is not known, so there is nothing to model")
    if args.save:
        try:
            with atomic_write(args.save) as partial:
                partial.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--save {args.save}: {error.strerror or error}") from None
    return Report(f"A model of {profile.program}", (Code("", "yaml", text),))
