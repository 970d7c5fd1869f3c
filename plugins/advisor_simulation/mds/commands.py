"""``gapwatch simulate``: light code; what is heavy is imported when the command runs."""

from __future__ import annotations

from pathlib import Path

from advisor.extension.commands import Argument, CommandRegistry, DeferredFunction


def register_command(registry: CommandRegistry) -> None:
    """Register the command."""
    registry(
        "simulate",
        "execute an application model on a machine model",
        (
            Argument("model", "application model, a YAML file (docs/plugins/simulation.md)", Path),
            Argument("--machine", "machine model (default: this machine)", metavar="MODEL"),
            Argument("--processors", "number of processors (default: that of the model, else 4)", int),
            Argument("--finite", "finite caches, of the machine's size", bool, False),
            Argument("--without-data", "ignore references to data", bool, False),
            Argument("--save", "write the simulated run to FILE, as a profile that gapwatch reads", Path),
            Argument("--addresses", "write all references to FILE", Path),
        ),
        DeferredFunction("advisor_simulation.mds.report", "build_report"),
    )
