"""Kernel coupling: which kernels of a loop hurt or help each other, and what the program takes because of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.commands import Argument
from advisor.hookspecs import hookimpl

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.commands import Registry, Services
    from advisor.reports import Report

advisor_api = 1

_ARGUMENTS = (
    Argument("manifest", "the experiment (YAML), or the results of one (JSON)", Path),
    Argument("--results", "where the results are kept (default: beside the manifest, NAME.coupling.json)", Path),
    Argument("--predict", "where to predict besides: 'N=64 P=4'; may be given again", several=True),
    Argument("--machine", "the machine whose caches are named (default: the one measured on)"),
    Argument("--dry-run", "list the runs that are left to do, and run none", bool),
)


@hookimpl
def advisor_commands(register: Registry) -> None:
    """Register ``gapwatch couple``."""
    register("couple", "Measure which kernels hurt or help each other, and predict from it.", _ARGUMENTS, _couple)


def _couple(args: Namespace, services: Services) -> Report:
    from advisor_coupling.command import run

    return run(args, services)
